//! The mailbox of a driver: handlers and callers post commands to it, in order, without blocking and without awaiting.

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

/// A command for the driver.
pub(crate) enum DriverCommand {
    /// Send the response of a handler, whose execution goes on (a shield, a cleanup).
    Respond { key: InboundRequestKey, response: EncodedResponse },
    /// Send the response of a handler, whose execution has ended.
    RespondAndEnd { key: InboundRequestKey, response: EncodedResponse },
    /// An execution has ended.
    EndExecution { key: InboundRequestKey },
    /// A handler has reported progress: send its newest report, which is stored in its execution.
    SendProgress { key: InboundRequestKey },
    /// A handler has logged a message: send it to the client as `notifications/message`.
    Log { key: InboundRequestKey, level: LoggingLevel, logger: Option<String>, data: Value },
    /// Send a request to the peer. The slot receives its end.
    Call { key: CallKey, call: Call, slot: Arc<CallSlot> },
    /// Send `initialize` to the server. The slot receives its end.
    Initialize { key: CallKey, call: Call, offered: Revision, slot: Arc<CallSlot> },
    /// Open the connection in the stateless revision that the server has shown to support.
    OpenStateless(Box<PeerInfo>),
    /// Cancel a call.
    CancelCall(CallKey),
    /// Send all these notifications.
    Notify(Arc<OutboundNotifications>),
    /// Send a notification of a vendor: of a request of the peer, or of none.
    NotifyVendor { request: Option<InboundRequestKey>, method: VendorMethod, params: Box<str> },
    /// Close the HTTP stream of a request whose handler has released it: the client reconnects and resumes the stream later.
    ReleaseStream { key: InboundRequestKey },
    /// Shut the connection down, with the drain window or, if `at_once`, without it.
    ShutDown { at_once: bool },
}

/// The mailbox of one driver, and what handlers and callers share with it.
pub(crate) struct DriverMailbox {
    state: Mutex<MailboxState>,
    budget: OutputBudget,
    next_call: AtomicU64,
    /// The bytes of notifications of a vendor that belong to no request and are in the mailbox.
    vendor_bytes: AtomicUsize,
    /// How many resources and tasks one subscription of the connection may name.
    pub(crate) subscribed: usize,
    /// The authenticated peer, if the transport knows it, as of the newest message: a token may have been renewed.
    principal: OnceLock<Mutex<Principal>>,
    /// Buffers of large responses that were written, for reuse.
    spare_buffers: Mutex<Vec<Vec<u8>>>,
    /// Counts calls, to decide on which thread the driver runs.
    callers: OnceLock<WorkerCallCounter>,
    /// Wakes the driver in one batch with other tasks, if it runs on an HTTP thread.
    #[cfg(feature = "http")]
    wake_batcher: Option<Arc<crate::runtime::threads::http_threads::ThreadWakeBatcher>>,
}

/// Buffers with these capacities are reused. Smaller ones are not worth it, larger ones take too much memory.
const REUSED_CAPACITIES: std::ops::Range<usize> = 16 * 1024..1024 * 1024;

/// How many bytes of notifications of a vendor may be in the mailbox, before the last one that is added.
#[cfg(feature = "client")]
const MAX_VENDOR_BYTES: usize = 1 << 20;

/// How many buffers wait for reuse.
const MAX_SPARE_BUFFERS: usize = 8;

#[derive(Default)]
struct MailboxState {
    commands: Vec<DriverCommand>,
    /// The waker of the driver, while it sleeps.
    driver: Option<Waker>,
    closed: bool,
}

impl DriverMailbox {
    /// A mailbox for a connection with these limits.
    pub(crate) fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            budget: OutputBudget::new(limits.outbox_bytes, limits.in_flight_bytes),
            next_call: AtomicU64::new(0),
            vendor_bytes: AtomicUsize::new(0),
            subscribed: limits.subscribed,
            principal: OnceLock::new(),
            spare_buffers: Mutex::default(),
            callers: OnceLock::new(),
            #[cfg(feature = "http")]
            wake_batcher: crate::runtime::threads::http_threads::wake_batcher(),
        })
    }

    /// Posts a command. Returns it if the connection is closed.
    #[allow(clippy::result_large_err, reason = "a command that is not taken is given back as it is")]
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
        if let Some(driver) = driver {
            self.wake(driver);
        }
        Ok(())
    }

    #[cfg_attr(not(feature = "http"), allow(clippy::unused_self, reason = "only HTTP threads batch their wakes"))]
    fn wake(&self, driver: Waker) {
        #[cfg(feature = "http")]
        if let Some(wake_batcher) = &self.wake_batcher {
            return wake_batcher.wake(driver);
        }
        driver.wake();
    }

    /// Posts a notification of a vendor that belongs to no request. Returns false if it is dropped: too many bytes of them wait
    /// for the driver, or the connection is closed.
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

    /// The driver has taken a notification of a vendor with so many bytes.
    pub(crate) fn release_vendor_bytes(&self, bytes: usize) {
        self.vendor_bytes.fetch_sub(bytes, Ordering::SeqCst);
    }

    /// Sets who sent the message that is handled next. The transport has to check that it is the same peer as before.
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

    /// The identity of the authenticated peer, which owns the tasks that it creates.
    pub(crate) fn owner(&self) -> Option<String> {
        self.principal().map(|principal| principal.identity())
    }

    /// Counts calls from now on.
    pub(crate) fn count_callers(&self, callers: WorkerCallCounter) {
        // A mailbox has one driver.
        let _ = self.callers.set(callers);
    }

    /// The count of calls, if they are counted.
    pub(crate) fn callers(&self) -> Option<&WorkerCallCounter> {
        self.callers.get()
    }

    /// A unique key for a call.
    pub(crate) fn next_call_key(&self) -> CallKey {
        CallKey::new(self.next_call.fetch_add(1, Ordering::Relaxed))
    }

    /// An empty buffer for a response of about that size.
    pub(crate) fn buffer(&self, size: usize) -> Vec<u8> {
        let size = size.saturating_add(256);
        let spare = if REUSED_CAPACITIES.contains(&size) { self.spare_buffers().pop() } else { None };
        let mut buffer = spare.unwrap_or_default();
        buffer.reserve(size);
        buffer
    }

    /// Returns a buffer that is no longer needed, for reuse.
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

    /// Takes all commands by swapping them with `commands`, which is empty.
    pub(crate) fn take_commands(&self, commands: &mut Vec<DriverCommand>) {
        std::mem::swap(&mut self.lock().commands, commands);
        let bytes = commands.iter().map(|command| match command {
            DriverCommand::Respond { response, .. } | DriverCommand::RespondAndEnd { response, .. } => response.len(),
            _ => 0,
        });
        self.budget.subtract_posted(bytes.sum());
    }

    /// Whether there are commands that the driver has not taken yet.
    pub(crate) fn has_commands(&self) -> bool {
        !self.lock().commands.is_empty()
    }

    /// Registers the driver to be woken by the next command. Returns whether there is one already. This is the last thing that a
    /// driver does before it sleeps: while it is awake no command has to wake it, and wakes are what costs.
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

    /// Closes the mailbox with its connection. Returns the commands in it; later ones are rejected.
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
