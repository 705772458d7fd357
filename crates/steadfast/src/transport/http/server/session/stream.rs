//! The two ways in which a response reads a session: waiting for how a POST is answered, and events.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use steadfast_proto::http::resume::{Cursor, CursorRead};
use steadfast_proto::mutant;

use super::{Destination, Post, Session, State};
use crate::runtime::Timer;
use crate::transport::http::server::keep_alive::KeepAlive;

/// How a POST is answered.
pub(crate) enum PostReply {
    /// With one message.
    Answer(Vec<u8>),
    /// With events.
    Events(SessionStream),
    /// Not at all: the session has ended without a word about it. What it was to do was begun.
    Lost,
}

/// Waits until it is known how a POST is answered. Dropping it cancels nothing.
pub(crate) struct AnswerWait {
    session: Arc<Session>,
    post: u64,
    timer: Option<Box<dyn Timer>>,
}

impl AnswerWait {
    pub(crate) fn new(session: Arc<Session>, post: u64) -> Self {
        session.lock().open += 1;
        Self { session, post, timer: None }
    }
}

impl Future for AnswerWait {
    type Output = PostReply;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<PostReply> {
        let waiting = &mut *self;
        let session = Arc::clone(&waiting.session);
        let mut guard = session.lock();
        let state = &mut *guard;
        let over = state.over;
        let Some(post) = state.posts.get_mut(&waiting.post) else { return Poll::Ready(PostReply::Lost) };
        let Destination::Held(messages) = &mut post.to else { return Poll::Ready(PostReply::Lost) };
        if over && !post.done && messages.is_empty() {
            return Poll::Ready(PostReply::Lost);
        }
        if post.done && messages.len() == 1 {
            let answer = messages.pop().unwrap_or_default();
            state.posts.remove(&waiting.post);
            return Poll::Ready(PostReply::Answer(answer));
        }
        if !post.done && !post.released && messages.is_empty() {
            post.waker = Some(cx.waker().clone());
            let timer = waiting.timer.get_or_insert_with(|| {
                let mut timer = session.runtime.timer();
                timer.reset(Some(session.runtime.now() + session.timing.resumable_after));
                timer
            });
            // What takes longer has to be on a stream that can be resumed.
            std::task::ready!(timer.poll(cx));
        }
        match state.stream_post(&session, waiting.post) {
            Some(stream) => Poll::Ready(PostReply::Events(stream)),
            None => Poll::Ready(PostReply::Lost),
        }
    }
}

impl Drop for AnswerWait {
    fn drop(&mut self) {
        let mut state = self.session.lock();
        if let Some(Post { to: to @ Destination::Held(_), done, .. }) = state.posts.get_mut(&self.post) {
            // Its requests go on, and their questions still have to find another way.
            *to = Destination::Nobody;
            if *done {
                state.posts.remove(&self.post);
            }
        }
        state.response_closed(self.session.runtime.now());
    }
}

impl State {
    /// The messages of a POST become events, those that it has and those that come.
    fn stream_post(&mut self, session: &Arc<Session>, number: u64) -> Option<SessionStream> {
        let now = session.runtime.now();
        let stream = self.log.open();
        self.prime(now, stream, session.timing.retry);
        let post = self.posts.get_mut(&number)?;
        let Destination::Held(messages) = std::mem::replace(&mut post.to, Destination::Stream(stream)) else {
            return None;
        };
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
        Some(SessionStream::attached(Arc::clone(session), self, cursor))
    }
}

/// The events of one stream. Dropping it cancels nothing.
pub(crate) struct SessionStream {
    session: Arc<Session>,
    cursor: Cursor,
    keep_alive: KeepAlive,
}

impl SessionStream {
    /// Reads with a cursor that was just made: the one before learns that it has lost its stream.
    pub(super) fn attached(session: Arc<Session>, state: &mut State, cursor: Cursor) -> Self {
        state.wake_reader(cursor.stream());
        state.open += 1;
        Self { session, cursor, keep_alive: KeepAlive::default() }
    }

    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut state = self.session.lock();
        match state.log.read(&mut self.cursor) {
            CursorRead::Event(event) => {
                self.keep_alive.spoken();
                return Poll::Ready(Some(event));
            }
            CursorRead::Ended | CursorRead::Superseded | CursorRead::Lost => return Poll::Ready(None),
            CursorRead::Waiting if state.over => return Poll::Ready(None),
            CursorRead::Waiting => {}
        }
        state.readers.insert(self.cursor.stream(), cx.waker().clone());
        drop(state);
        let Session { runtime, timing, .. } = &*self.session;
        self.keep_alive.poll(&**runtime, timing.keep_alive, cx).map(Some)
    }
}

impl Drop for SessionStream {
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
        state.response_closed(self.session.runtime.now());
    }
}
