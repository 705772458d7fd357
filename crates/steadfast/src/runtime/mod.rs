//! The I/O around the protocol core: one driver for each connection, one task for each handler.
//!
//! ```text
//!   transport --bytes--> driver --events--> handler tasks (one for each request) --> the user's handlers
//!        ^                 |  ^                |
//!        +-----bytes-------+  +---- mailbox ---+   responses, progress, log messages, calls
//! ```
//!
//! The driver owns an engine, the engine owns the [`Connection`](steadfast_proto::connection::Connection), and nothing else
//! touches either of them. The driver runs on an I/O loop (`threads/io_loop`): a handler that blocks its thread cannot delay
//! cancellations, deadlines or the end of input, because another thread takes the loop over. (While a client is called in quick
//! succession its driver runs on the workers instead; the I/O loop takes it back as soon as the workers stop polling it.) All
//! other code sends commands to the driver through its mailbox. Posting a command never blocks and never awaits.
//!
//! All that the I/O code around the protocol core needs from its environment is the small [`Runtime`] trait: tokio in
//! programs, the simulator's executor in tests.

mod bounded_queue;
pub(crate) mod connection;
#[cfg(test)]
pub(crate) mod frozen;
pub(crate) mod handler;
mod log;
pub(crate) mod threads;
pub(crate) mod timeout;
mod tokio;

use std::any::Any;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use steadfast_proto::Moment;

pub use crate::runtime::tokio::TokioRuntime;
pub use connection::engine::ConnectionCloseReport;

pub(crate) use bounded_queue::LossyChannel;
pub(crate) use connection::calls::{CallSlot, OnProgress, OutboundCallOptions, PendingCall, progress_bytes};
pub(crate) use connection::driver::{ConnectionDriver, PeerExitReason};
pub(crate) use connection::engine::{ConnectionEngine, InboundDispatchResult, InboundDispatcher};
pub(crate) use connection::exchange::RequestExchange;
#[cfg(feature = "http")]
pub(crate) use connection::exchange::RequestExchangeGuard;
pub(crate) use connection::mailbox::{DriverCommand, DriverMailbox};
pub(crate) use connection::notification_handlers::PeerNotification;
pub(crate) use connection::notifications::OutboundNotifications;
#[cfg(feature = "http-client")]
pub(crate) use handler::catch_panic::drop_catching_panics;
pub(crate) use handler::catch_panic::poll_catching_panics;
pub(crate) use handler::execution::{HandlerExecution, ShieldFuture};
pub(crate) use handler::input_rounds::{HandlerInputStatus, HandlerInputs, InputRoundState, InputRoundStore};
pub(crate) use handler::launch::HandlerJob;
pub(crate) use handler::prepared::{HandlerOutputEncoder, PreparedHandler};
#[cfg(feature = "http-client")]
pub(crate) use log::{PeerWarningRecord, RateLimitedLog};
pub(crate) use threads::io_loop::history::FirstPollHistory;
#[cfg(feature = "http")]
pub(crate) use threads::io_loop::{IoLoop, for_http as io_loops_for_http, spawn_off_workers};
pub(crate) use threads::io_loop::{main as main_io_loop, main_handle as io_handle};
#[cfg(feature = "http-client")]
pub(crate) use threads::workers::{on_workers, poll_as_handler};

/// A boxed future without output, for a [`Runtime`] to poll to completion.
pub type RuntimeTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What servers and clients need from their environment: a clock, timers, tasks, threads and random numbers.
///
/// [`TokioRuntime`] is the one for programs. Implement `Runtime` to run MCP servers and clients in a simulator of
/// your own.
pub trait Runtime: Any + Send + Sync {
    /// Returns the current time, counted from an origin that never changes.
    fn now(&self) -> Moment;

    /// Creates a timer that is not set.
    fn timer(&self) -> Box<dyn Timer>;

    /// Spawns a task, which may run user code such as handlers.
    fn spawn(&self, task: RuntimeTask);

    /// Spawns a task of the library that never runs user code and must not wait for it.
    ///
    /// A runtime that has a thread on which no handler runs should poll the task there, so that a handler that blocks
    /// its thread does not delay it. The default implementation of `spawn_io` calls [`spawn`](Runtime::spawn).
    fn spawn_io(&self, task: RuntimeTask) {
        self.spawn(task);
    }

    /// Spawns the task of a handler that should be polled for the first time without a switch to another thread.
    ///
    /// A runtime may poll such a task once on the thread that polls the tasks of [`spawn_io`](Runtime::spawn_io), in
    /// between. If that poll blocks its thread, the runtime has to poll those tasks on another thread meanwhile. The
    /// default implementation of `spawn_quick` calls [`spawn`](Runtime::spawn).
    fn spawn_quick(&self, task: RuntimeTask) {
        self.spawn(task);
    }

    /// Runs a job on a thread that it may block. If the runtime limits the number of such threads, the job waits for one.
    fn spawn_thread(&self, job: Box<dyn FnOnce() + Send>);

    /// Fills `bytes` with random numbers that an attacker cannot predict: session ids and retry jitter are made from them.
    ///
    /// By default the random numbers come from the operating system. A simulator can derive random numbers from its
    /// seed.
    ///
    /// # Errors
    ///
    /// Returns an error when the operating system provides no random numbers.
    fn fill_random(&self, bytes: &mut [u8]) -> io::Result<()> {
        getrandom::fill(bytes).map_err(|error| io::Error::other(error.to_string()))
    }
}

impl dyn Runtime {
    /// Casts this runtime to a [`TokioRuntime`]; `None` if it is another type of runtime. Handlers are spawned on
    /// tokio without boxing their task once more, and its watchdog watches each poll of a handler.
    pub(crate) fn as_tokio(&self) -> Option<&TokioRuntime> {
        let runtime: &dyn Any = self;
        runtime.downcast_ref()
    }
}

/// A timer that can be set again and again.
pub trait Timer: Send {
    /// Sets the timer to a moment, or unsets it.
    fn reset(&mut self, when: Option<Moment>);

    /// Ready once when the moment has come; after that, pending until the timer is set again.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()>;
}
