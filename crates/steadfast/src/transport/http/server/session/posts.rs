//! The POSTs of a session whose requests have not ended.

use std::task::Waker;

use steadfast_proto::connection::InboundRequestKey;
use steadfast_proto::http::resume::SseStreamKey;

use super::ServerHttpSessionState;
use crate::transport::http::server::load::ServerLoadPermit;

/// Identifies a POST within its session.
pub(super) type PostNumber = u64;

/// One POST of the client that holds requests.
pub(super) struct ServerSessionPost {
    /// The keys of the requests in this POST.
    pub(super) keys: Vec<InboundRequestKey>,
    pub(super) destination: PostResponseDestination,
    /// All requests that the client sent in the POST have ended.
    pub(super) done: bool,
    /// The handler of the request in this POST has released the client's connection: the client has to reconnect for
    /// the response.
    pub(super) released: bool,
    /// The request in the POST was cancelled before the server sent any message about the request, and the server
    /// will send none.
    pub(super) withdrawn: bool,
    /// Wakes the HTTP response that waits for the first message.
    pub(super) waker: Option<Waker>,
    /// Counts the requests towards the load of the service, whether or not the client waits. `None` if the requests have ended
    /// and their executions have not: then the permit is in [`ServerHttpSessionState::lingering`].
    permit: Option<ServerLoadPermit>,
}

/// Where the messages about the requests of a POST go.
pub(super) enum PostResponseDestination {
    /// Messages are buffered, because it is not decided yet whether the HTTP response is JSON or an event stream.
    Buffer(Vec<Vec<u8>>),
    /// Messages about the requests of the POST go to this event stream of the session.
    Stream(SseStreamKey),
    /// Messages are dropped, because the client has disconnected before it got an event stream.
    Discard,
}

impl ServerSessionPost {
    pub(super) fn wake(&mut self) {
        self.waker.take().into_iter().for_each(Waker::wake);
    }

    /// The first message that is buffered for the HTTP response to the POST, if any.
    pub(super) fn into_first_message(self) -> Option<Vec<u8>> {
        match self.destination {
            PostResponseDestination::Buffer(messages) => messages.into_iter().next(),
            PostResponseDestination::Stream(_) | PostResponseDestination::Discard => None,
        }
    }
}

impl ServerHttpSessionState {
    pub(super) fn open_post(&mut self, permit: ServerLoadPermit) -> PostNumber {
        let number = self.next_post;
        self.next_post += 1;
        let post = ServerSessionPost {
            keys: Vec::new(),
            destination: PostResponseDestination::Buffer(Vec::new()),
            done: false,
            released: false,
            withdrawn: false,
            waker: None,
            permit: Some(permit),
        };
        self.posts.insert(number, post);
        number
    }

    /// Removes unread messages about requests that the client has just cancelled (law L3).
    pub(super) fn withdraw_cancelled(&mut self) {
        for post in self.posts.values_mut().filter(|post| !post.done) {
            let [key] = &*post.keys else { continue };
            if self.engine.connection.is_open(*key) {
                continue;
            }
            match &mut post.destination {
                PostResponseDestination::Buffer(messages) => {
                    messages.clear();
                    post.withdrawn = true;
                }
                PostResponseDestination::Stream(stream) => self.log.withdraw(*stream),
                PostResponseDestination::Discard => {}
            }
        }
    }

    /// Called when a handler releases the connection of its client: the client has to reconnect for the response. Only
    /// clients that got a priming event can reconnect.
    pub(super) fn release(&mut self, key: InboundRequestKey) {
        if !self.primes() {
            return;
        }
        let Some(post) = self.routes.get(&key).and_then(|number| self.posts.get_mut(number)) else { return };
        match post.destination {
            PostResponseDestination::Stream(stream) => {
                self.log.cut(stream);
                self.wake_reader(stream);
            }
            PostResponseDestination::Buffer(_) => {
                post.released = true;
                post.wake();
            }
            PostResponseDestination::Discard => {}
        }
    }

    /// Drops the load permits of ended requests of whose executions nothing goes on.
    pub(super) fn release_lingering(&mut self) {
        let connection = &self.engine.connection;
        self.lingering.retain(|(keys, _)| keys.iter().any(|key| connection.is_live(*key)));
    }

    /// Completes the HTTP response to a POST if all requests of the POST have ended.
    pub(super) fn settle(&mut self, number: PostNumber) {
        let Some(post) = self.posts.get_mut(&number) else { return };
        if post.done || post.keys.iter().any(|key| self.engine.connection.is_open(*key)) {
            return;
        }
        post.done = true;
        if post.keys.iter().any(|key| self.engine.connection.is_live(*key)) {
            let keys = post.keys.clone();
            self.lingering.extend(post.permit.take().map(|permit| (keys, permit)));
        }
        for key in &post.keys {
            self.routes.remove(key);
        }
        post.wake();
        match post.destination {
            PostResponseDestination::Buffer(_) => {}
            PostResponseDestination::Stream(stream) => {
                self.posts.remove(&number);
                self.log.close(stream);
                self.wake_reader(stream);
            }
            PostResponseDestination::Discard => drop(self.posts.remove(&number)),
        }
    }
}
