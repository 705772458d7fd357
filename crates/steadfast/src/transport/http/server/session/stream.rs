//! How HTTP responses read the messages of a session: the response to a POST waits for its first messages, and an event
//! stream reads events.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use steadfast_proto::http::resume::{SseEventLogCursor, SseEventLogRead};
use steadfast_proto::mutant;

use super::posts::{PostNumber, PostResponseDestination, ServerSessionPost};
use super::{ServerHttpSession, ServerHttpSessionState};
use crate::runtime::Timer;
use crate::transport::http::server::keep_alive::SseKeepAliveTimer;

/// The HTTP response to a POST of a session.
pub(crate) enum SessionPostResponse {
    /// The HTTP response is one message, as JSON.
    Message(Vec<u8>),
    /// An event stream.
    Events(ServerHttpSessionStream),
    /// The session ended before the request got its response, although its handler may have started.
    SessionEnded,
}

/// Resolves when it is decided whether the response to a POST is JSON or an event stream. Dropping a
/// `PostReplyFuture` cancels no request.
pub(crate) struct PostReplyFuture {
    session: Arc<ServerHttpSession>,
    post: PostNumber,
    timer: Option<Box<dyn Timer>>,
}

impl PostReplyFuture {
    pub(crate) fn new(session: Arc<ServerHttpSession>, post: PostNumber) -> Self {
        session.lock().open_responses += 1;
        Self { session, post, timer: None }
    }
}

impl Future for PostReplyFuture {
    type Output = SessionPostResponse;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<SessionPostResponse> {
        let reply = &mut *self;
        let session = Arc::clone(&reply.session);
        let mut guard = session.lock();
        let state = &mut *guard;
        let ended = state.ended;
        let Some(post) = state.posts.get_mut(&reply.post) else {
            return Poll::Ready(SessionPostResponse::SessionEnded);
        };
        let PostResponseDestination::Buffer(messages) = &mut post.destination else {
            return Poll::Ready(SessionPostResponse::SessionEnded);
        };
        if ended && !post.done && messages.is_empty() {
            return Poll::Ready(SessionPostResponse::SessionEnded);
        }
        if post.done && messages.len() == 1 {
            let message = messages.pop().unwrap_or_default();
            state.posts.remove(&reply.post);
            return Poll::Ready(SessionPostResponse::Message(message));
        }
        if !post.done && !post.released && messages.is_empty() {
            post.waker = Some(cx.waker().clone());
            let timer = reply.timer.get_or_insert_with(|| {
                let mut timer = session.runtime.timer();
                timer.reset(Some(session.runtime.now() + session.timing.resumable_after));
                timer
            });
            // A response that takes longer goes on a stream that can be resumed.
            std::task::ready!(timer.poll(cx));
        }
        match state.stream_post(&session, reply.post) {
            Some(stream) => Poll::Ready(SessionPostResponse::Events(stream)),
            None => Poll::Ready(SessionPostResponse::SessionEnded),
        }
    }
}

impl Drop for PostReplyFuture {
    fn drop(&mut self) {
        let mut state = self.session.lock();
        if let Some(ServerSessionPost { destination: destination @ PostResponseDestination::Buffer(_), done, .. }) =
            state.posts.get_mut(&self.post)
        {
            // Its requests go on; requests of ours that belong to them go to the standalone stream.
            *destination = PostResponseDestination::Discard;
            if *done {
                state.posts.remove(&self.post);
            }
        }
        state.note_response_closed(self.session.runtime.now());
    }
}

impl ServerHttpSessionState {
    /// Turns the HTTP response to a POST into an event stream: its messages become events, those that are buffered and
    /// those that follow.
    fn stream_post(&mut self, session: &Arc<ServerHttpSession>, number: PostNumber) -> Option<ServerHttpSessionStream> {
        let now = session.runtime.now();
        let stream = self.log.open();
        self.prime(now, stream, session.timing.retry);
        let post = self.posts.get_mut(&number)?;
        let previous = std::mem::replace(&mut post.destination, PostResponseDestination::Stream(stream));
        let PostResponseDestination::Buffer(messages) = previous else { return None };
        let (done, released) = (post.done, post.released);
        for message in messages {
            self.append(now, stream, &message, false);
        }
        let cursor = self.log.attach(stream)?;
        if released {
            self.log.cut(stream);
        }
        if done {
            self.posts.remove(&number);
            self.log.close(stream);
        }
        Some(ServerHttpSessionStream::attached(Arc::clone(session), self, cursor))
    }
}

/// The events of one event stream of a session. Dropping a `ServerHttpSessionStream` cancels no request.
pub(crate) struct ServerHttpSessionStream {
    session: Arc<ServerHttpSession>,
    cursor: SseEventLogCursor,
    keep_alive: SseKeepAliveTimer,
}

impl ServerHttpSessionStream {
    /// Reads an event stream of the session from `cursor` on, for a new HTTP response. The HTTP response that has
    /// read the stream so far is woken to notice that it was superseded.
    pub(super) fn attached(
        session: Arc<ServerHttpSession>,
        state: &mut ServerHttpSessionState,
        cursor: SseEventLogCursor,
    ) -> Self {
        state.wake_reader(cursor.stream());
        state.open_responses += 1;
        Self { session, cursor, keep_alive: SseKeepAliveTimer::default() }
    }

    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut state = self.session.lock();
        match state.log.read(&mut self.cursor) {
            SseEventLogRead::Event(event) => {
                self.keep_alive.reset();
                return Poll::Ready(Some(event));
            }
            SseEventLogRead::Ended | SseEventLogRead::Superseded | SseEventLogRead::Lost => return Poll::Ready(None),
            SseEventLogRead::Waiting if state.ended => return Poll::Ready(None),
            SseEventLogRead::Waiting => {}
        }
        state.readers.insert(self.cursor.stream(), cx.waker().clone());
        drop(state);
        let ServerHttpSession { runtime, timing, .. } = &*self.session;
        self.keep_alive.poll(&**runtime, timing.keep_alive, cx).map(Some)
    }
}

impl Drop for ServerHttpSessionStream {
    fn drop(&mut self) {
        let mut state = self.session.lock();
        if state.log.is_current(&self.cursor) {
            state.readers.remove(&self.cursor.stream());
            if mutant!(CloseWithResponse) {
                state.log.close(self.cursor.stream());
            }
        }
        if mutant!(CutIsCancellation) {
            state.end(self.session.runtime.now());
        }
        state.note_response_closed(self.session.runtime.now());
    }
}
