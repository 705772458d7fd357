//! A runtime for tests in which time stands still and every random byte is the same.

use std::task::{Context, Poll};

use steadfast_proto::Moment;

use super::{Runtime, RuntimeTask, Timer};

pub(crate) struct FrozenRuntime {
    pub(crate) now: Moment,
    pub(crate) random_byte: u8,
}

impl Runtime for FrozenRuntime {
    fn now(&self) -> Moment {
        self.now
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(FrozenTimer)
    }

    fn spawn(&self, _task: RuntimeTask) {}

    fn spawn_thread(&self, _job: Box<dyn FnOnce() + Send>) {}

    fn fill_random(&self, bytes: &mut [u8]) -> std::io::Result<()> {
        bytes.fill(self.random_byte);
        Ok(())
    }
}

/// Never fires.
struct FrozenTimer;

impl Timer for FrozenTimer {
    fn reset(&mut self, _when: Option<Moment>) {}

    fn poll(&mut self, _cx: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}
