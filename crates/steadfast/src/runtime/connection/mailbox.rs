//! The mailbox of a connection's driver: handlers and callers put commands into the mailbox, in order, without blocking
//! and without awaiting.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Waker};

use serde_json::Value;
use steadfast_model::{LoggingLevel, Principal, Revision, VendorMethod};
use steadfast_proto::connection::{Call, CallKey, InboundRequestKey, Limits, PeerInfo};
use steadfast_proto::encode::EncodedResponse;

use super::calls::CallSlot;
use super::notifications::OutboundNotifications;
use crate::runtime::handler::output_budget::OutputBudget;
use crate::runtime::threads::driver_migration::WorkerCallCounter;
use crate::runtime::threads::io_loop::IoLoop;

/// A command for the driver of a connection.
pub(crate) enum DriverCommand {
    /// Send the response of a handler whose execution goes on, because a shield or a cleanup still runs.
    Respond { key: InboundRequestKey, response: EncodedResponse },
    /// Send the response of a handler whose execution has ended.
    RespondAndEnd { key: InboundRequestKey, response: EncodedResponse },
    /// The execution of a handler has ended, including its shields and cleanups.
    EndExecution { key: InboundRequestKey },
    /// A handler has reported progress: send its newest report, which is stored in its execution.
    SendProgress { key: InboundRequestKey },
    /// A handler has logged a message: send it to the client as `notifications/message`.
    Log { key: InboundRequestKey, level: LoggingLevel, logger: Option<String>, data: Value },
    /// Send a request to the peer. The slot receives the outcome of the call.
    Call { key: CallKey, call: Call, slot: Arc<CallSlot> },
    /// Send `initialize` to the server. The slot receives the outcome of the call.
    Initialize { key: CallKey, call: Call, offered: Revision, slot: Arc<CallSlot> },
    /// Open the client's connection in a stateless revision, which the server has shown to support.
    OpenStateless(Box<PeerInfo>),
    /// Cancel a call.
    CancelCall(CallKey),
    /// Send all notifications that are queued in the [`OutboundNotifications`].
    Notify(Arc<OutboundNotifications>),
    /// Send a vendor notification, which belongs to a request of the peer or to no request.
    NotifyVendor { request: Option<InboundRequestKey>, method: VendorMethod, params: Box<str> },
    /// Close the HTTP response stream of a request, because its handler has released the stream: the client reconnects
    /// and resumes the stream later.
    ReleaseStream { key: InboundRequestKey },
    /// Shut the connection down. If `at_once` is set, the handlers of the connection do not get the drain window to
    /// respond.
    ShutDown { at_once: bool },
}

/// The mailbox of one driver, and other state that handlers and callers share with the driver.
pub(crate) struct DriverMailbox {
    state: Mutex<MailboxState>,
    budget: OutputBudget,
    next_call: AtomicU64,
    /// The current size, in bytes, of the vendor notifications in the mailbox that belong to no request.
    vendor_bytes: AtomicUsize,
    /// The maximum number of resources and MCP tasks that one subscription of the connection may name.
    pub(crate) subscribed: usize,
    /// The authenticated peer, if the transport knows it, as of the newest message: the peer may have renewed its
    /// token.
    principal: OnceLock<Mutex<Principal>>,
    /// Buffers of large responses that were written, for reuse.
    spare_buffers: Mutex<Vec<Vec<u8>>>,
    /// Counts the calls of the program, to decide on which thread the driver runs.
    callers: OnceLock<WorkerCallCounter>,
    /// The I/O loop that the driver of the connection stays on, if there is one. A driver that stays on an I/O loop
    /// is woken through the loop.
    io_loop: Option<Arc<IoLoop>>,
}

/// The capacities, in bytes, of the response buffers that are reused. Smaller buffers are not worth reusing, larger
/// buffers take too much memory.
const REUSED_CAPACITIES: std::ops::Range<usize> = 16 * 1024..1024 * 1024;

/// A vendor notification that belongs to no request is dropped if the mailbox already holds this many bytes of such
/// notifications.
#[cfg(feature = "client")]
const MAX_VENDOR_BYTES: usize = 1 << 20;

/// The maximum number of buffers that are kept for reuse.
const MAX_SPARE_BUFFERS: usize = 8;

#[derive(Default)]
struct MailboxState {
    commands: Vec<DriverCommand>,
    /// The waker of the driver, while the driver sleeps.
    driver: Option<Waker>,
    closed: bool,
}

impl DriverMailbox {
    /// Creates a mailbox for a connection with these limits. `io_loop` is the I/O loop that the driver of the connection stays
    /// on, if there is one.
    pub(crate) fn new(limits: &Limits, io_loop: Option<Arc<IoLoop>>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            budget: OutputBudget::new(limits.outbox_bytes, limits.in_flight_bytes),
            next_call: AtomicU64::new(0),
            vendor_bytes: AtomicUsize::new(0),
            subscribed: limits.subscribed,
            principal: OnceLock::new(),
            spare_buffers: Mutex::default(),
            callers: OnceLock::new(),
            io_loop,
        })
    }

    /// Puts a command into the mailbox. Returns the command if the connection is closed.
    #[allow(clippy::result_large_err, reason = "a command that the mailbox rejects is returned unchanged")]
    pub(crate) fn post(&self, command: DriverCommand) -> Result<(), DriverCommand> {
        let mut state = self.lock();
        if state.closed {
            return Err(command);
        }
        if let DriverCommand::Respond { response, .. } | DriverCommand::RespondAndEnd { response, .. } = &command {
            self.budget.add_posted(response.len());
        }
        state.commands.push(command);
        let driver = state.driver.take();
        drop(state);
        match (driver, &self.io_loop) {
            (Some(driver), Some(io_loop)) => io_loop.wake(driver),
            (Some(driver), None) => driver.wake(),
            (None, _) => {}
        }
        Ok(())
    }

    /// Puts a vendor notification that belongs to no request into the mailbox. Returns false if the notification is
    /// dropped, because too many bytes of such notifications wait for the driver or the connection is closed.
    #[cfg(feature = "client")]
    pub(crate) fn notify_vendor(&self, method: VendorMethod, params: Box<str>) -> bool {
        let bytes = params.len();
        let waiting = self.vendor_bytes.fetch_add(bytes, Ordering::SeqCst);
        let command = DriverCommand::NotifyVendor { request: None, method, params };
        let posted = waiting < MAX_VENDOR_BYTES && self.post(command).is_ok();
        if !posted {
            self.release_vendor_bytes(bytes);
        }
        posted
    }

    /// Subtracts the size of a vendor notification that the driver has taken from the mailbox.
    pub(crate) fn release_vendor_bytes(&self, bytes: usize) {
        self.vendor_bytes.fetch_sub(bytes, Ordering::SeqCst);
    }

    /// Sets the authenticated sender of the message that is handled next. The transport has to check that the sender is
    /// the same peer as before.
    pub(crate) fn identify(&self, principal: Option<&Principal>) {
        let Some(principal) = principal else { return };
        if let Err(newer) = self.principal.set(Mutex::new(principal.clone()))
            && let Some(known) = self.principal.get()
        {
            *known.lock().unwrap_or_else(PoisonError::into_inner) =
                newer.into_inner().unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The authenticated sender of the message that was handled last, if the transport knows it.
    pub(crate) fn principal(&self) -> Option<Principal> {
        self.principal.get().map(|principal| principal.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// The identity of the authenticated peer, which owns the MCP tasks that it creates.
    pub(crate) fn owner(&self) -> Option<String> {
        self.principal().map(|principal| principal.identity())
    }

    /// Sets the counter of the program's calls, which decides on which thread the driver runs.
    pub(crate) fn count_callers(&self, callers: WorkerCallCounter) {
        // A mailbox has one driver.
        let _ = self.callers.set(callers);
    }

    /// Returns the counter of calls, if calls are counted.
    pub(crate) fn callers(&self) -> Option<&WorkerCallCounter> {
        self.callers.get()
    }

    /// Returns a unique key for a call.
    pub(crate) fn next_call_key(&self) -> CallKey {
        CallKey::new(self.next_call.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns an empty buffer for a response of about `size` bytes.
    pub(crate) fn buffer(&self, size: usize) -> Vec<u8> {
        let size = size.saturating_add(256);
        let spare = if REUSED_CAPACITIES.contains(&size) { self.spare_buffers().pop() } else { None };
        let mut buffer = spare.unwrap_or_default();
        buffer.reserve(size);
        buffer
    }

    /// Keeps a buffer that is no longer needed, to reuse it for another response.
    pub(crate) fn reuse_buffer(&self, mut buffer: Vec<u8>) {
        if !REUSED_CAPACITIES.contains(&buffer.capacity()) {
            return;
        }
        buffer.clear();
        let mut spares = self.spare_buffers();
        if spares.len() < MAX_SPARE_BUFFERS {
            spares.push(buffer);
        }
    }

    pub(crate) fn budget(&self) -> &OutputBudget {
        &self.budget
    }

    /// Takes all commands out of the mailbox by swapping them with `commands`, which has to be empty.
    pub(crate) fn take_commands(&self, commands: &mut Vec<DriverCommand>) {
        std::mem::swap(&mut self.lock().commands, commands);
        let bytes = commands.iter().map(|command| match command {
            DriverCommand::Respond { response, .. } | DriverCommand::RespondAndEnd { response, .. } => response.len(),
            _ => 0,
        });
        self.budget.subtract_posted(bytes.sum());
    }

    /// Whether there are commands in the mailbox that the driver has not taken yet.
    pub(crate) fn has_commands(&self) -> bool {
        !self.lock().commands.is_empty()
    }

    /// Registers the driver to be woken by the next command. Returns true, without registering the driver, if a command
    /// is already in the mailbox. A driver registers as its last step before it sleeps: while the driver is awake, no
    /// command has to wake it, and wakes are expensive.
    pub(crate) fn register_driver(&self, cx: &mut Context<'_>) -> bool {
        let mut state = self.lock();
        if !state.commands.is_empty() {
            return true;
        }
        if !state.driver.as_ref().is_some_and(|driver| driver.will_wake(cx.waker())) {
            state.driver = Some(cx.waker().clone());
        }
        false
    }

    /// Closes the mailbox, because its connection has ended. Returns the commands in the mailbox; later commands are
    /// rejected.
    pub(crate) fn close(&self) -> Vec<DriverCommand> {
        let mut state = self.lock();
        state.closed = true;
        state.driver = None;
        let commands = std::mem::take(&mut state.commands);
        drop(state);
        self.budget.release_all();
        commands
    }

    fn spare_buffers(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.spare_buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, MailboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
