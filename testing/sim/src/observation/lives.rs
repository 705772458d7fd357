//! The lives of handlers and of what they start, each written down by whoever watches a run.

use std::sync::Arc;

use steadfast_proto::Moment;

/// What lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Handler,
    Thread,
    Shield,
    Cleanup,
    Call,
    /// Added by somebody who kept the context beyond the handler: there is no promise but that it goes.
    Late,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Done,
    Panicked,
    Dropped,
}

/// What is known of one.
pub(crate) struct LifeFacts {
    pub(crate) tag: u64,
    pub(crate) what: What,
    /// A cleanup has begun.
    pub(crate) running: bool,
    pub(crate) began: Moment,
    pub(crate) ended: Option<(Moment, How)>,
}

/// Who writes down what becomes of a life.
pub(crate) trait Witness: Send + Sync {
    /// A cleanup begins to run.
    fn running(&self, number: u64);
    fn ended(&self, number: u64, how: How);
}

/// Something that lives until this is dropped.
pub(crate) struct Life {
    witness: Arc<dyn Witness>,
    number: u64,
    done: bool,
}

impl Life {
    pub(crate) fn new(witness: Arc<dyn Witness>, number: u64) -> Self {
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

impl Drop for Life {
    fn drop(&mut self) {
        let how = match (self.done, std::thread::panicking()) {
            (true, _) => How::Done,
            (false, true) => How::Panicked,
            (false, false) => How::Dropped,
        };
        self.witness.ended(self.number, how);
    }
}

impl What {
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
    pub(crate) fn ended(self, how: How) -> &'static str {
        match (self, how) {
            (Self::Handler, How::Done) => "   handler returns",
            (Self::Handler, How::Panicked) => "   handler panics",
            (Self::Handler, How::Dropped) => "   handler dropped",
            (Self::Thread, How::Done) => "   thread returns",
            (Self::Thread, _) => "   thread panics",
            (Self::Shield, How::Done) => "   shield done",
            (Self::Shield, _) => "   shield dropped",
            (Self::Cleanup, How::Done) => "   cleanup done",
            (Self::Cleanup, _) => "   cleanup dropped",
            (Self::Call, How::Done) => "   call ends",
            (Self::Call, _) => "   call dropped",
            (Self::Late, How::Done) => "   late addition done",
            (Self::Late, _) => "   late addition dropped",
        }
    }
}
