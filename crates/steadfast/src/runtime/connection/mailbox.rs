//! What handlers and callers tell the driver: in order, without waiting, without awaiting.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Waker};

use serde_json::Value;
use steadfast_model::{LoggingLevel, Principal, Revision};
use steadfast_proto::connection::{Call, CallKey, Key, Limits, Peer};
use steadfast_proto::encode::Answer;

use super::calls::CallSlot;
use super::notifications::PendingNotifications;
use crate::runtime::handler::output_budget::OutputBudget;
use crate::runtime::threads::driver_migration::Callers;

/// Something for the driver to do.
pub(crate) enum DriverCommand {
    /// A handler has its answer, and its execution goes on (a shield, a cleanup).
    Answer { key: Key, answer: Answer },
    /// A handler has its answer, and its execution has ended.
    Finished { key: Key, answer: Answer },
    /// An execution has ended.
    Ended { key: Key },
    /// An execution has reported progress: the newest is with the execution.
    Progress { key: Key },
    /// A log message.
    Log { key: Key, level: LoggingLevel, logger: Option<String>, data: Value },
    /// Call the peer.
    Call { key: CallKey, call: Call, slot: Arc<CallSlot> },
    /// Call the peer to open the connection.
    Initialize { key: CallKey, call: Call, offered: Revision, slot: Arc<CallSlot> },
    /// The peer turned out to speak 2026-07-28.
    SpeakModern(Box<Peer>),
    /// Nobody waits for this call any more.
    CancelCall(CallKey),
    /// Tell the peer all of these.
    Notices(Arc<PendingNotifications>),
    /// The handler of this request lets its client's connection go.
    ReleaseStream { key: Key },
    /// Shut down, with the drain window or without.
    ShutDown { at_once: bool },
}

/// The way to one driver.
pub(crate) struct Mailbox {
    state: Mutex<State>,
    budget: OutputBudget,
    next_call: AtomicU64,
    /// Resources and tasks that one subscription of the connection may name.
    pub(crate) subscribed: usize,
    /// Whose connection it is, if the transport knows, as the newest message said it: a token may have been renewed since.
    principal: OnceLock<Mutex<Principal>>,
    /// Buffers of large answers that were written, for the next ones.
    spare: Mutex<Vec<Vec<u8>>>,
    /// Who calls, where that decides who drives.
    callers: OnceLock<Callers>,
    /// By which its owner is woken, on a thread that has one.
    #[cfg(feature = "http")]
    bell: Option<Arc<crate::runtime::threads::http_threads::Bell>>,
}

/// Buffers of this size are worth keeping, and larger ones are not worth the memory.
const KEPT: std::ops::Range<usize> = 16 * 1024..1024 * 1024;

/// So many are kept.
const SPARES: usize = 8;

#[derive(Default)]
struct State {
    commands: Vec<DriverCommand>,
    driver: Option<Waker>,
    closed: bool,
}

impl Mailbox {
    /// For a connection with these limits.
    pub(crate) fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            budget: OutputBudget::new(limits.outbox_bytes, limits.in_flight_bytes),
            next_call: AtomicU64::new(0),
            subscribed: limits.subscribed,
            principal: OnceLock::new(),
            spare: Mutex::default(),
            callers: OnceLock::new(),
            #[cfg(feature = "http")]
            bell: crate::runtime::threads::http_threads::bell(),
        })
    }

    /// Puts a letter in. Gives it back if the connection is closed.
    pub(crate) fn post(&self, command: DriverCommand) -> Result<(), DriverCommand> {
        let mut state = self.lock();
        if state.closed {
            return Err(command);
        }
        if let DriverCommand::Answer { answer, .. } | DriverCommand::Finished { answer, .. } = &command {
            self.budget.post(answer.len());
        }
        state.commands.push(command);
        let driver = state.driver.take();
        drop(state);
        if let Some(driver) = driver {
            self.wake(driver);
        }
        Ok(())
    }

    #[cfg_attr(not(feature = "http"), allow(clippy::unused_self, reason = "only carriers of HTTP have a bell"))]
    fn wake(&self, driver: Waker) {
        #[cfg(feature = "http")]
        if let Some(bell) = &self.bell {
            return bell.wake(driver);
        }
        driver.wake();
    }

    /// Says whose message comes next. That it is the same one's as before is for the transport to see to.
    pub(crate) fn identify(&self, principal: Option<&Principal>) {
        let Some(principal) = principal else { return };
        if let Err(newer) = self.principal.set(Mutex::new(principal.clone()))
            && let Some(known) = self.principal.get()
        {
            *known.lock().unwrap_or_else(PoisonError::into_inner) =
                newer.into_inner().unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Who sent the message that was handled last, as the transport has established it.
    pub(crate) fn principal(&self) -> Option<Principal> {
        self.principal.get().map(|principal| principal.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// What tells whose connection it is from all others, for what belongs to them.
    pub(crate) fn owner(&self) -> Option<String> {
        self.principal().map(|principal| principal.identity())
    }

    /// Counts who calls from now on.
    pub(crate) fn count_callers(&self, callers: Callers) {
        // A mailbox has one driver.
        let _ = self.callers.set(callers);
    }

    /// Who calls, if they are counted.
    pub(crate) fn callers(&self) -> Option<&Callers> {
        self.callers.get()
    }

    /// A key for a call that nobody else has.
    pub(crate) fn next_call(&self) -> CallKey {
        CallKey::new(self.next_call.fetch_add(1, Ordering::Relaxed))
    }

    /// An empty buffer for an answer of about that size.
    pub(crate) fn buffer(&self, size: usize) -> Vec<u8> {
        let size = size.saturating_add(256);
        let spare = if KEPT.contains(&size) { self.spares().pop() } else { None };
        let mut buffer = spare.unwrap_or_default();
        buffer.reserve(size);
        buffer
    }

    /// A buffer that is not needed any more.
    pub(crate) fn give_back(&self, mut buffer: Vec<u8>) {
        if !KEPT.contains(&buffer.capacity()) {
            return;
        }
        buffer.clear();
        let mut spares = self.spares();
        if spares.len() < SPARES {
            spares.push(buffer);
        }
    }

    /// The room for answers.
    pub(crate) fn budget(&self) -> &OutputBudget {
        &self.budget
    }

    /// Swaps what is there for `commands`, which is empty.
    pub(crate) fn collect(&self, commands: &mut Vec<DriverCommand>) {
        std::mem::swap(&mut self.lock().commands, commands);
        let bytes = commands.iter().map(|command| match command {
            DriverCommand::Answer { answer, .. } | DriverCommand::Finished { answer, .. } => answer.len(),
            _ => 0,
        });
        self.budget.collect(bytes.sum());
    }

    /// Whether letters wait to be collected.
    pub(crate) fn has_letters(&self) -> bool {
        !self.lock().commands.is_empty()
    }

    /// Has the driver woken by the next letter. Returns whether there is one already. Done last before the driver sleeps:
    /// a driver that is awake need not be woken, and waking it is what costs.
    pub(crate) fn listen(&self, cx: &mut Context<'_>) -> bool {
        let mut state = self.lock();
        if !state.commands.is_empty() {
            return true;
        }
        if !state.driver.as_ref().is_some_and(|driver| driver.will_wake(cx.waker())) {
            state.driver = Some(cx.waker().clone());
        }
        false
    }

    /// The driver holds this many bytes. Returns whether handlers still wait although there is room.
    pub(crate) fn update_room(&self, held: usize) -> bool {
        self.budget.update(held)
    }

    /// The connection is closed: letters that are there, and those that come, are given back.
    pub(crate) fn close(&self) -> Vec<DriverCommand> {
        let mut state = self.lock();
        state.closed = true;
        state.driver = None;
        let commands = std::mem::take(&mut state.commands);
        drop(state);
        self.budget.open();
        commands
    }

    fn spares(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
