//! A word now and then on a stream that has nothing to say, so that nobody between us and the client takes it for dead.

use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use steadfast_proto::frame::sse;

use crate::runtime::{Runtime, Timer};

/// The silence of one stream.
#[derive(Default)]
pub(crate) struct KeepAlive {
    /// Set while it is silent.
    timer: Option<Box<dyn Timer>>,
}

impl KeepAlive {
    /// Something was said.
    pub(crate) fn spoken(&mut self) {
        self.timer = None;
    }

    /// A comment, when it has been silent for so long.
    pub(crate) fn poll(&mut self, runtime: &dyn Runtime, silence: Duration, cx: &mut Context<'_>) -> Poll<Bytes> {
        let timer = self.timer.get_or_insert_with(|| {
            let mut timer = runtime.timer();
            timer.reset(Some(runtime.now() + silence));
            timer
        });
        std::task::ready!(timer.poll(cx));
        self.timer = None;
        let mut out = Vec::new();
        sse::write_comment("", &mut out);
        Poll::Ready(out.into())
    }
}
