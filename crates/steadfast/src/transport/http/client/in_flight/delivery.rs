//! How far a message has come on its way to the server.
//!
//! Each message is a POST of its own, and one may overtake another. What is said of a request must not (L9): a server that is
//! told to give up what it has not heard of yet ignores that, and works on.

use std::sync::Arc;
use std::time::Duration;

use steadfast_proto::Moment;
use tokio::sync::watch;

use crate::runtime::Runtime;
use crate::runtime::timeout::{timeout_at, unless_stopped};
use crate::transport::http::client::task::RequestTask;

/// How long a request may take to arrive before it is said that it was given up. Servers that answer in JSON have nothing to say
/// before their answer: they are told after this, and those that say that they have it are told at once.
const ARRIVING: Duration = Duration::from_secs(1);

/// How far one message has come.
pub(crate) struct Delivery(watch::Sender<Stage>);

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    /// The server cannot have seen it, or has not let it in.
    Here,
    /// It was handed to whoever makes the requests.
    UnderWay(Moment),
    /// The head of its response has come, and was looked at; or it broke off, and nothing more will be known of it.
    Arrived,
}

impl Delivery {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(watch::Sender::new(Stage::Here)))
    }

    /// Whether the server may have seen it.
    pub(crate) fn has_left(&self) -> bool {
        *self.0.borrow() != Stage::Here
    }

    pub(crate) fn note_under_way(&self, now: Moment) {
        self.0.send_replace(Stage::UnderWay(now));
    }

    pub(crate) fn note_arrived(&self) {
        self.0.send_replace(Stage::Arrived);
    }

    /// It did not leave after all, or was not let in.
    pub(crate) fn note_back(&self) {
        self.0.send_replace(Stage::Here);
    }

    fn under_way_since(&self) -> Option<Moment> {
        match *self.0.borrow() {
            Stage::UnderWay(since) => Some(since),
            Stage::Here | Stage::Arrived => None,
        }
    }

    /// Waits until it is not under way any more.
    async fn is_settled(&self) {
        // The sender is here: it is never gone.
        let _ = self.0.subscribe().wait_for(|stage| !matches!(stage, Stage::UnderWay(_))).await;
    }
}

/// A request on its way, and how far it has come. Dropping it gives the request up.
pub(crate) struct SentRequest {
    pub(crate) task: RequestTask,
    pub(crate) delivery: Arc<Delivery>,
}

impl SentRequest {
    /// Whether it is not known to have arrived or to have failed, though it may yet.
    pub(crate) fn is_settling(&self, now: Moment) -> bool {
        self.delivery.under_way_since().is_some_and(|since| now < since + ARRIVING) && !self.task.is_over()
    }

    /// Gives it up: once it has arrived or failed, or has had the time to. True if the server may have it.
    pub(crate) async fn give_up(self, runtime: &dyn Runtime) -> bool {
        if let Some(since) = self.delivery.under_way_since() {
            let over = std::future::poll_fn(|cx| self.task.poll_over(cx));
            let _ = timeout_at(runtime, Some(since + ARRIVING), unless_stopped(over, self.delivery.is_settled())).await;
        }
        let Self { task, delivery } = self;
        drop(task);
        delivery.has_left()
    }
}
