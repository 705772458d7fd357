//! The sessions of a service, by id.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::session::{Driver, Session};

/// Sessions that are open. Nothing takes the lock of a session while it holds the one here. They are in the order of their
/// ids, so that a seed replays how they end.
pub(super) struct Sessions {
    most: usize,
    table: Mutex<BTreeMap<Box<str>, Arc<Session>>>,
}

/// There is no room for another.
#[derive(Debug)]
pub(super) struct Full;

impl Sessions {
    pub(super) fn new(most: usize) -> Self {
        Self { most, table: Mutex::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() >= self.most
    }

    pub(super) fn find(&self, id: &str) -> Option<Arc<Session>> {
        self.lock().get(id).map(Arc::clone)
    }

    /// Puts a session in, and has it driven until it ends.
    pub(super) fn enter(self: &Arc<Self>, session: &Arc<Session>) -> Result<(), Full> {
        let mut table = self.lock();
        if table.len() >= self.most {
            return Err(Full);
        }
        table.insert(session.id().into(), Arc::clone(session));
        drop(table);
        Driver::spawn(Arc::clone(session), Arc::downgrade(self));
        Ok(())
    }

    pub(super) fn remove(&self, id: &str) {
        self.lock().remove(id);
    }

    /// Every session has its drain window, and ends.
    pub(super) fn shut_down(&self) {
        for session in self.all() {
            session.shut_down();
        }
    }

    fn all(&self) -> Vec<Arc<Session>> {
        self.lock().values().map(Arc::clone).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Box<str>, Arc<Session>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Sessions {
    /// The service is gone: nobody can reach a session any more.
    fn drop(&mut self) {
        for session in self.all() {
            session.end();
        }
    }
}
