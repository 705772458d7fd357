//! A small world around one real connection, and everything that can happen in it next.
//!
//! What may happen is counted out in advance, so that the world is finite: each message arrives so many times, each handler
//! answers so many times, each fault strikes once. In which order, is for the search to try.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use steadfast_model::Method;
use steadfast_proto::connection::Call;

use crate::endpoint::{Endpoint, Reply};
use crate::observation::message::Message;
use crate::observation::trace::Trace;
use crate::observation::{CallNumber, Execution};

/// What a world is made of.
pub(crate) struct Plan {
    pub(crate) name: &'static str,
    /// The end, before anything that is searched.
    pub(crate) begin: Box<dyn Fn() -> Endpoint + Send + Sync>,
    pub(crate) inputs: Vec<Input>,
    pub(crate) calls: Vec<PlannedCall>,
    pub(crate) handlers: Handlers,
    pub(crate) faults: Faults,
    /// How many calls the writer takes before it writes.
    pub(crate) hand: usize,
    /// A notification that this side may want to send.
    pub(crate) notice: Option<Method>,
}

/// A message that may arrive.
pub(crate) struct Input {
    pub(crate) label: &'static str,
    pub(crate) message: Arc<Message>,
    pub(crate) times: u8,
}

/// A call that may be made, once.
pub(crate) struct PlannedCall {
    pub(crate) call: Call,
    /// The execution that makes it; it has to have started.
    pub(crate) parent: Option<Execution>,
    /// How often it may be cancelled.
    pub(crate) give_up: u8,
    /// It is the opening of an older revision.
    pub(crate) opens: Option<steadfast_model::Revision>,
}

/// How often each handler may do what.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Handlers {
    pub(crate) responds: u8,
    pub(crate) progress: u8,
    pub(crate) logs: u8,
}

/// Which ends may come.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Faults {
    pub(crate) end_of_input: bool,
    pub(crate) peer_gone: bool,
    pub(crate) failed_write: bool,
    pub(crate) shut_down: bool,
    pub(crate) shut_down_now: bool,
}

/// One thing that can happen next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Receive(u8),
    Call(u8),
    GiveUp(u8),
    Respond(Execution),
    Progress(Execution),
    Log(Execution),
    EndExecution(Execution),
    Take,
    Write,
    Flush,
    FailWrite,
    EndInput,
    PeerGone,
    ShutDown,
    ShutDownNow,
    Notify,
    Wait,
}

/// The world as it is now.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) plan: Arc<Plan>,
    pub(crate) endpoint: Endpoint,
    trace: Trace,
    /// How often each input has come.
    received: Vec<u8>,
    /// The call that was made, and how often it was cancelled.
    calls: Vec<Option<(CallNumber, u8)>>,
    handlers: Vec<HandlerProgress>,
    /// Calls that the writer has and has not written.
    hand: Vec<CallNumber>,
    unflushed: bool,
    /// Faults that have struck.
    struck: u8,
    notified: bool,
}

/// What a handler has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
struct HandlerProgress {
    responds: u8,
    progress: u8,
    logs: u8,
    ended: bool,
}

const FAULTS: [Action; 5] =
    [Action::EndInput, Action::PeerGone, Action::FailWrite, Action::ShutDown, Action::ShutDownNow];

impl World {
    pub(crate) fn new(plan: Arc<Plan>, trace: Trace) -> Self {
        let mut end = (plan.begin)();
        end.effects();
        let handlers = vec![HandlerProgress::default(); end.executions()];
        Self {
            endpoint: end,
            trace,
            received: vec![0; plan.inputs.len()],
            calls: vec![None; plan.calls.len()],
            handlers,
            hand: Vec::new(),
            unflushed: false,
            struck: 0,
            notified: false,
            plan,
        }
    }

    pub(crate) fn trace(&self) -> &Trace {
        &self.trace
    }

    /// What can happen now.
    pub(crate) fn actions(&self, actions: &mut Vec<Action>) {
        actions.clear();
        if self.endpoint.ledger.panicked {
            return;
        }
        let closed = self.endpoint.is_closed();
        if !closed {
            self.wire_actions(actions);
            self.call_actions(actions);
        }
        for (execution, did) in (0..).zip(&self.handlers) {
            if did.ended {
                continue;
            }
            let may = self.plan.handlers;
            if did.responds < may.responds {
                actions.push(Action::Respond(execution));
            }
            // What is reported to a closed connection is the same as what is reported for an ended request.
            if did.progress < may.progress && !closed {
                actions.push(Action::Progress(execution));
            }
            if did.logs < may.logs && !closed {
                actions.push(Action::Log(execution));
            }
            actions.push(Action::EndExecution(execution));
        }
    }

    fn wire_actions(&self, actions: &mut Vec<Action>) {
        let ledger = &self.endpoint.ledger;
        if self.endpoint.wants_input() {
            for (place, (input, received)) in (0..).zip(self.plan.inputs.iter().zip(&self.received)) {
                if *received < input.times {
                    actions.push(Action::Receive(place));
                }
            }
        }
        if self.endpoint.has_output() && self.hand.len() < self.plan.hand {
            actions.push(Action::Take);
        }
        if !self.hand.is_empty() {
            actions.push(Action::Write);
        } else if self.unflushed {
            actions.push(Action::Flush);
        }
        let faults = self.plan.faults;
        let may = [
            faults.end_of_input && !ledger.input_ended,
            faults.peer_gone && !ledger.input_ended,
            faults.failed_write && !ledger.output_failed,
            faults.shut_down,
            faults.shut_down_now,
        ];
        for (place, (fault, may)) in FAULTS.into_iter().zip(may).enumerate() {
            if may && self.struck & (1 << place) == 0 {
                actions.push(fault);
            }
        }
        if self.plan.notice.is_some() && !self.notified {
            actions.push(Action::Notify);
        }
        if self.endpoint.deadline().is_some() {
            actions.push(Action::Wait);
        }
    }

    fn call_actions(&self, actions: &mut Vec<Action>) {
        for (place, (planned, made)) in (0..).zip(self.plan.calls.iter().zip(&self.calls)) {
            match made {
                None => {
                    let parent = planned
                        .parent
                        .is_none_or(|parent| self.handlers.get(as_index(parent)).is_some_and(|did| !did.ended));
                    if parent {
                        actions.push(Action::Call(place));
                    }
                }
                Some((_, given_up)) if *given_up < planned.give_up => actions.push(Action::GiveUp(place)),
                Some(_) => {}
            }
        }
    }

    /// Lets something happen. Nothing happens if it cannot now: that is so when a path was shortened.
    pub(crate) fn run_action(&mut self, action: Action) {
        let mut possible = Vec::new();
        self.actions(&mut possible);
        if possible.contains(&action) {
            self.run_possible(action);
        }
    }

    /// Lets something happen that can.
    pub(crate) fn run_possible(&mut self, action: Action) {
        let plan = Arc::clone(&self.plan);
        let trace = &mut self.trace;
        match action {
            Action::Receive(place) => {
                let place = usize::from(place);
                self.received[place] += 1;
                self.endpoint.receive(trace, Arc::clone(&plan.inputs[place].message));
            }
            Action::Call(place) => {
                let planned = &plan.calls[usize::from(place)];
                let (call, _) = match planned.opens {
                    Some(revision) => self.endpoint.initialize(trace, planned.call.clone(), revision),
                    None => self.endpoint.call(trace, planned.call.clone(), planned.parent),
                };
                self.calls[usize::from(place)] = Some((call, 0));
            }
            Action::GiveUp(place) => {
                if let Some((call, times)) = &mut self.calls[usize::from(place)] {
                    *times += 1;
                    self.endpoint.give_up(trace, *call);
                }
            }
            Action::Respond(execution) => {
                self.handlers[as_index(execution)].responds += 1;
                self.endpoint.respond(trace, execution, Reply::Result { padding: 0 });
            }
            Action::Progress(execution) => {
                let did = &mut self.handlers[as_index(execution)];
                did.progress += 1;
                self.endpoint.progress(trace, execution, f64::from(did.progress));
            }
            Action::Log(execution) => {
                self.handlers[as_index(execution)].logs += 1;
                self.endpoint.log(trace, execution);
            }
            Action::EndExecution(execution) => {
                self.handlers[as_index(execution)].ended = true;
                self.endpoint.end_execution(trace, execution);
            }
            Action::Take => {
                if let Some(frame) = self.endpoint.take_frame(trace) {
                    // When the first byte of anything but a call is written is of no interest to the connection.
                    self.hand.extend(frame.call);
                    self.unflushed = true;
                }
            }
            Action::Write => {
                let call = self.hand.remove(0);
                self.endpoint.first_byte(trace, call);
            }
            Action::Flush => {
                self.unflushed = false;
                self.endpoint.flushed(trace);
            }
            Action::FailWrite => {
                self.hand.clear();
                self.unflushed = false;
                self.strike(action);
                self.endpoint.fail_write(&mut self.trace);
            }
            Action::EndInput => {
                self.strike(action);
                self.endpoint.end_input(&mut self.trace);
            }
            Action::PeerGone => {
                self.strike(action);
                self.endpoint.peer_gone(&mut self.trace);
            }
            Action::ShutDown => {
                self.strike(action);
                self.endpoint.shut_down(&mut self.trace, false);
            }
            Action::ShutDownNow => {
                self.strike(action);
                self.endpoint.shut_down(&mut self.trace, true);
            }
            Action::Notify => {
                self.notified = true;
                if let Some(notice) = plan.notice {
                    self.endpoint.notify(trace, notice);
                }
            }
            Action::Wait => {
                if let Some(deadline) = self.endpoint.deadline() {
                    self.endpoint.now = self.endpoint.now.max(deadline);
                }
                self.endpoint.time_out(trace);
            }
        }
        self.endpoint.effects();
        self.handlers.resize(self.endpoint.executions(), HandlerProgress::default());
    }

    /// Counts a fault.
    fn strike(&mut self, fault: Action) {
        for (place, known) in FAULTS.into_iter().enumerate() {
            if known == fault {
                self.struck |= 1 << place;
            }
        }
    }

    /// Whether nothing is under way: no frame is to be written and no timer runs. Handlers may go on for ever, and the peer
    /// may begin something new.
    pub(crate) fn is_quiet(&self) -> bool {
        let idle = !self.endpoint.has_output()
            && self.hand.is_empty()
            && !self.unflushed
            && self.endpoint.deadline().is_none();
        (idle || self.endpoint.is_closed()) && !self.endpoint.ledger.panicked
    }

    /// Nothing is under way any more.
    pub(crate) fn quiet(&mut self) {
        self.endpoint.quiet(&mut self.trace);
    }

    /// What an action is, in words.
    pub(crate) fn describe(&self, action: Action) -> String {
        Described(action, &self.plan).to_string()
    }
}

fn as_index(execution: Execution) -> usize {
    usize::try_from(execution).unwrap_or(usize::MAX)
}

impl Hash for World {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.endpoint.hash(hasher);
        (&self.received, &self.calls, &self.handlers, &self.hand).hash(hasher);
        (self.unflushed, self.struck, self.notified).hash(hasher);
    }
}

struct Described<'a>(Action, &'a Plan);

impl fmt::Display for Described<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Action::Receive(place) => write!(formatter, "receive {}", self.1.inputs[usize::from(place)].label),
            Action::Call(place) => write!(formatter, "call {}", self.1.calls[usize::from(place)].call.method),
            other => write!(formatter, "{other:?}"),
        }
    }
}
