//! Comments on an idle event stream, so that no proxy between server and client closes it.

use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use steadfast_proto::frame::sse;

use crate::runtime::{Runtime, Timer};

/// The keep-alive timer of one event stream.
#[derive(Default)]
pub(crate) struct SseKeepAliveTimer {
    /// The timer is set while the event stream is idle.
    timer: Option<Box<dyn Timer>>,
}

impl SseKeepAliveTimer {
    /// Notes that an event was sent.
    pub(crate) fn reset(&mut self) {
        self.timer = None;
    }

    /// Ready with a comment to send, when nothing was sent on the stream for `interval`.
    pub(crate) fn poll(&mut self, runtime: &dyn Runtime, interval: Duration, cx: &mut Context<'_>) -> Poll<Bytes> {
        let timer = self.timer.get_or_insert_with(|| {
            let mut timer = runtime.timer();
            timer.reset(Some(runtime.now() + interval));
            timer
        });
        std::task::ready!(timer.poll(cx));
        self.timer = None;
        let mut out = Vec::new();
        sse::write_comment("", &mut out);
        Poll::Ready(out.into())
    }
}
