//! The lifetimes of handlers and of what they start, each recorded by the journal of a run.

use std::sync::Arc;

use steadfast_proto::Moment;

/// What lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LifetimeKind {
    Handler,
    Thread,
    Shield,
    Cleanup,
    Call,
    /// Added by code that held the context beyond the handler: the only promise is that it is dropped.
    Late,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LifetimeEnd {
    Done,
    Panicked,
    Dropped,
}

/// What is known of one.
pub(crate) struct LifetimeFacts {
    pub(crate) tag: u64,
    pub(crate) what: LifetimeKind,
    /// A cleanup has begun.
    pub(crate) running: bool,
    pub(crate) began: Moment,
    pub(crate) ended: Option<(Moment, LifetimeEnd)>,
}

/// Records the end of each lifetime.
pub(crate) trait LifetimeObserver: Send + Sync {
    /// A cleanup begins to run.
    fn running(&self, number: u64);
    fn ended(&self, number: u64, how: LifetimeEnd);
}

/// Something that lives until this is dropped.
pub(crate) struct Lifetime {
    witness: Arc<dyn LifetimeObserver>,
    number: u64,
    done: bool,
}

impl Lifetime {
    pub(crate) fn new(witness: Arc<dyn LifetimeObserver>, number: u64) -> Self {
        Self { witness, number, done: false }
    }

    /// It came to its end by itself.
    pub(crate) fn done(mut self) {
        self.done = true;
    }

    /// A cleanup begins to run.
    pub(crate) fn running(&self) {
        self.witness.running(self.number);
    }
}

impl Drop for Lifetime {
    fn drop(&mut self) {
        let how = match (self.done, std::thread::panicking()) {
            (true, _) => LifetimeEnd::Done,
            (false, true) => LifetimeEnd::Panicked,
            (false, false) => LifetimeEnd::Dropped,
        };
        self.witness.ended(self.number, how);
    }
}

impl LifetimeKind {
    /// For people.
    pub(crate) fn began(self) -> &'static str {
        match self {
            Self::Handler => "   handler begins",
            Self::Thread => "   thread begins",
            Self::Shield => "   shield added",
            Self::Cleanup => "   cleanup added",
            Self::Call => "   call made",
            Self::Late => "   late addition",
        }
    }

    /// For people.
    pub(crate) fn ended(self, how: LifetimeEnd) -> &'static str {
        match (self, how) {
            (Self::Handler, LifetimeEnd::Done) => "   handler returns",
            (Self::Handler, LifetimeEnd::Panicked) => "   handler panics",
            (Self::Handler, LifetimeEnd::Dropped) => "   handler dropped",
            (Self::Thread, LifetimeEnd::Done) => "   thread returns",
            (Self::Thread, _) => "   thread panics",
            (Self::Shield, LifetimeEnd::Done) => "   shield done",
            (Self::Shield, _) => "   shield dropped",
            (Self::Cleanup, LifetimeEnd::Done) => "   cleanup done",
            (Self::Cleanup, _) => "   cleanup dropped",
            (Self::Call, LifetimeEnd::Done) => "   call ends",
            (Self::Call, _) => "   call dropped",
            (Self::Late, LifetimeEnd::Done) => "   late addition done",
            (Self::Late, _) => "   late addition dropped",
        }
    }
}
