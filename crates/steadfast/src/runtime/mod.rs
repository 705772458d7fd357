//! The shell around the core: one driver a connection, handlers behind a fence, one ordered way out.
//!
//! ```text
//!   transport --bytes--> driver --events--> fences (one a request) --> the user's handlers
//!        ^                 |  ^                |
//!        +-----bytes-------+  +---- mailbox ---+   answers, progress, logs, calls
//! ```
//!
//! The driver owns an engine, and that the [`Connection`](steadfast_proto::connection::Connection), and is the only one that
//! touches them. It runs on a thread that never runs a handler, so that no handler, whatever it blocks, keeps cancellations, deadlines or the
//! end of input from being seen; that of a client that is called in quick succession is with the workers meanwhile, and is
//! taken back as soon as they leave it alone. Everything else talks to it through its mailbox, which never waits and never awaits.
//!
//! What the shell needs from its surroundings is the small [`Runtime`] trait: tokio in earnest, the simulator's executor in
//! tests.

mod bounded_queue;
pub(crate) mod connection;
#[cfg(test)]
pub(crate) mod frozen;
pub(crate) mod handler;
mod log;
pub(crate) mod threads;
pub(crate) mod timeout;
mod tokio;

use std::pin::Pin;
use std::task::{Context, Poll};

use steadfast_proto::Moment;

pub use crate::runtime::tokio::TokioRuntime;
pub use connection::engine::ConnectionEnd;

pub(crate) use bounded_queue::Backlog;
pub(crate) use connection::calls::{CallOptions, CallSlot, OnProgress, PendingCall, progress_bytes};
pub(crate) use connection::driver::{Driver, ExitReason};
pub(crate) use connection::engine::{DispatchResult, Engine, Service};
pub(crate) use connection::exchange::Exchange;
#[cfg(feature = "http")]
pub(crate) use connection::exchange::ExchangeGuard;
pub(crate) use connection::mailbox::{DriverCommand, Mailbox};
pub(crate) use connection::notifications::PendingNotifications;
pub(crate) use handler::execution::{Execution, Shielded};
pub(crate) use handler::input_rounds::{InputRounds, InputStatus, RoundState, RoundStore};
pub(crate) use handler::prepared::{PreparedHandler, Route, Start};
#[cfg(feature = "http-client")]
pub(crate) use handler::task::drop_quietly;
pub(crate) use handler::task::{Job, poll_quietly};
#[cfg(feature = "http-client")]
pub(crate) use log::{PeerLogRecord, RateLimitedLog};
#[cfg(feature = "http")]
pub(crate) use threads::http_threads::{for_workers_of as carriers_for, spawn_apart};
pub(crate) use threads::io_thread::handle as io_handle;
#[cfg(feature = "http-client")]
pub(crate) use threads::workers::{on_workers, watched};

/// Work to be polled to its end.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What the shell needs from its surroundings.
///
/// [`TokioRuntime`] is the one for programs. Write another to run servers in a simulator of your own.
pub trait Runtime: Send + Sync + 'static {
    /// What time it is, from an origin that never changes.
    fn now(&self) -> Moment;

    /// A timer that is not set.
    fn timer(&self) -> Box<dyn Timer>;

    /// Polls a task to its end on the workers.
    fn spawn(&self, task: Task);

    /// Polls a task of a transport's to its end, where no handler is in its way if there is such a place.
    #[doc(hidden)]
    fn spawn_beside_drivers(&self, task: Task) {
        self.spawn(task);
    }

    /// Runs a job on a thread that may block. There may be a bound on them: then the job waits for one.
    fn spawn_thread(&self, job: Box<dyn FnOnce() + Send>);

    /// Lets other threads run first, if there are any.
    fn yield_now(&self) {}

    /// Random bytes that nobody can guess, for the names of sessions. A simulator takes them from its seed.
    #[doc(hidden)]
    fn fill_random(&self, bytes: &mut [u8]) -> Result<(), getrandom::Error> {
        getrandom::fill(bytes)
    }

    /// The tokio runtime behind it, if there is one: saves a box a request.
    #[doc(hidden)]
    fn tokio(&self) -> Option<&TokioRuntime> {
        None
    }
}

/// One timer.
pub trait Timer: Send {
    /// Sets it to a moment, or to none.
    fn reset(&mut self, when: Option<Moment>);

    /// Ready when the moment has come, and then not again until it is set.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()>;
}
