//! A client and a server, the two links between them, and a clock that only this world moves.
//!
//! Everything that is going to happen is in one queue by time; what stands there for the same moment happens in an
//! order that the seed decides. Nothing else is random and nothing is read from the machine, so that a seed is the run.

mod judge;

mod handlers;
mod links;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use steadfast_model::{ClientCapabilities, Implementation, Method, ProgressToken, ServerCapabilities};
use steadfast_proto::Moment;
use steadfast_proto::connection::{
    Call, ClientDescription, ClientOrServerDescription, Connection, PeerInfo, ServerDescription,
};

use super::lines::{self, ConversationState};
use super::link::Link;
use super::party::Party;
use super::script::{LONGEST_MESSAGE, Part, Script, stream};
use super::workload::{Action, HandlerPlan, HandlerStep, Kind, PlannedCall, RawLine, WhenStopped};
use crate::checkers::Report;
use crate::endpoint::{Effect, Endpoint, Reply};
use crate::law::Violation;
use crate::observation::ledger::{Settings, Side};
use crate::observation::message::Id;
use crate::observation::trace::Trace;
use crate::observation::{CallNumber, Execution};
use crate::script::rng::Random;

/// The member of `params` that names the plan of the handler. It is on the wire, and so its spelling is part of every trace.
const HANDLER_PLAN: &str = "temper";

/// An event in the queue of the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum QueuedEvent {
    Part(usize),
    Read(Side),
    Write(Side),
    Timer(Side),
    HandlerStep(Side, Execution),
    WhenStopped(Side, Execution),
    GiveUp(Side, CallNumber),
}

/// A run that was made.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcome {
    pub(crate) violations: Vec<Violation>,
    pub(crate) hash: u64,
    pub(crate) requests: u64,
    pub(crate) cancels: u64,
    pub(crate) closes: u64,
    pub(crate) messages: u64,
    pub(crate) lines: Vec<String>,
}

/// Runs a script to its end.
pub(crate) fn run(script: &Script, trace: Trace) -> Outcome {
    let mut world = World::new(script, trace);
    world.open();
    world.run();
    world.judge_quiet();
    world.close();
    world.run();
    world.judge_closed();
    world.outcome()
}

struct World<'a> {
    script: &'a Script,
    server: Party,
    client: Party,
    to_server: Link,
    to_client: Link,
    trace: Trace,
    random: Random,
    now: Moment,
    /// By time, then by chance. No two entries have the same number, which is the third.
    queue: BinaryHeap<Reverse<(Moment, u64, u64, QueuedEvent)>>,
    queued: u64,
    /// How the handlers of requests behave, by the number in their parameters.
    plans: Vec<Arc<HandlerPlan>>,
    by_default: Arc<HandlerPlan>,
    /// Ids that were put on the wire by hand.
    by_hand: BTreeSet<Id>,
    numbers: usize,
    report: Report,
}

/// No run is longer; one that is, is stuck.
const MOST_STEPS: u64 = 200_000;

fn other(side: Side) -> Side {
    match side {
        Side::Server => Side::Client,
        Side::Client => Side::Server,
    }
}

impl<'a> World<'a> {
    fn new(script: &'a Script, trace: Trace) -> Self {
        let settings =
            |side| Arc::new(Settings { side, limits: script.limits.clone(), longest_frame: LONGEST_MESSAGE });
        let server = ServerDescription::new(
            Implementation::new("sim", "1"),
            ServerCapabilities::new().with_tools(true).with_logging(),
        );
        let client =
            ClientDescription::new(Implementation::new("sim", "1"), ClientCapabilities::new().with_roots(false));
        let connection = |hello: ClientOrServerDescription| Connection::new(hello, script.limits.clone());
        let link = |shape: &super::link::Shape, stream| Link::new(shape.clone(), Random::new(script.seed, stream));
        Self {
            script,
            server: Party::new(
                Endpoint::new("server", connection(server.into()), settings(Side::Server)),
                LONGEST_MESSAGE,
            ),
            client: Party::new(
                Endpoint::new("client", connection(client.into()), settings(Side::Client)),
                LONGEST_MESSAGE,
            ),
            to_server: link(&script.to_server, stream::LINK_TO_SERVER),
            to_client: link(&script.to_client, stream::LINK_TO_CLIENT),
            trace,
            random: Random::new(script.seed, stream::WORLD),
            now: Moment::ORIGIN,
            queue: BinaryHeap::new(),
            queued: 0,
            plans: Vec::new(),
            by_default: Arc::new(HandlerPlan {
                steps: vec![
                    (Duration::from_millis(2), HandlerStep::Respond(Reply::Result { padding: 0 })),
                    (Duration::ZERO, HandlerStep::End),
                ],
                when_stopped: WhenStopped::End(Duration::ZERO),
            }),
            by_hand: BTreeSet::new(),
            numbers: 0,
            report: Report::default(),
        }
    }

    /// Opens the connection, as the revision has it, and puts the script in the queue.
    fn open(&mut self) {
        if self.script.revision.is_stateless() {
            let mut peer = PeerInfo::new(self.script.revision);
            peer.server_capabilities = ServerCapabilities::new().with_tools(true);
            self.client.endpoint.open_stateless(&mut self.trace, peer);
        } else {
            self.client.endpoint.initialize(&mut self.trace, Call::new(Method::Initialize, None), self.script.revision);
        }
        self.follow_up(Side::Client);
        for (place, part) in self.script.parts.iter().enumerate() {
            let at = match part {
                Part::Item(item) => item.at,
                Part::Fault(fault) => fault.at,
            };
            self.queue_up(Moment::ORIGIN + at, QueuedEvent::Part(place));
        }
    }

    fn run(&mut self) {
        for _ in 0..MOST_STEPS {
            let Some(Reverse((when, _, _, event))) = self.queue.pop() else { return };
            self.now = self.now.max(when);
            (self.server.endpoint.now, self.client.endpoint.now) = (self.now, self.now);
            self.handle(event);
        }
        self.report
            .broken(crate::law::Law::Bounded, "expected the run to come to rest, observed more events than the limit");
    }

    fn queue_up(&mut self, when: Moment, event: QueuedEvent) {
        self.queued += 1;
        let shuffle = self.random.next();
        self.queue.push(Reverse((when.max(self.now), shuffle, self.queued, event)));
    }

    fn party(&mut self, side: Side) -> &mut Party {
        match side {
            Side::Server => &mut self.server,
            Side::Client => &mut self.client,
        }
    }

    /// A party, the link that it writes to and the one that it reads from.
    fn ends(&mut self, side: Side) -> (&mut Party, &mut Link, &mut Link, &mut Trace) {
        match side {
            Side::Server => (&mut self.server, &mut self.to_client, &mut self.to_server, &mut self.trace),
            Side::Client => (&mut self.client, &mut self.to_server, &mut self.to_client, &mut self.trace),
        }
    }

    fn handle(&mut self, event: QueuedEvent) {
        match event {
            QueuedEvent::Part(place) => match self.script.parts.get(place) {
                Some(Part::Item(item)) => self.run_action(&item.action, place),
                Some(Part::Fault(fault)) => self.strike(fault.strikes),
                None => {}
            },
            QueuedEvent::Read(side) => self.read(side),
            QueuedEvent::Write(side) => self.write(side),
            QueuedEvent::Timer(side) => {
                let now = self.now;
                let party = self.party(side);
                party.timer = None;
                if party.endpoint.deadline().is_some_and(|deadline| deadline <= now) {
                    let (party, _, _, trace) = self.ends(side);
                    party.endpoint.time_out(trace);
                }
                self.follow_up(side);
            }
            QueuedEvent::HandlerStep(side, execution) => self.run_handler_step(side, execution),
            QueuedEvent::WhenStopped(side, execution) => self.stop_at_last(side, execution),
            QueuedEvent::GiveUp(side, call) => {
                let (party, _, _, trace) = self.ends(side);
                party.endpoint.give_up(trace, call);
                self.follow_up(side);
            }
        }
    }

    fn run_action(&mut self, action: &Action, place: usize) {
        match action {
            Action::Call(call) => self.call(call, place),
            Action::Notify(side) => {
                let (party, _, _, trace) = self.ends(*side);
                party.endpoint.notify(trace, Method::ToolListChanged);
                self.follow_up(*side);
            }
            Action::Inject { to, line } => self.inject(*to, *line),
        }
    }

    fn call(&mut self, planned: &PlannedCall, place: usize) {
        // The older revisions need a handshake first; what comes before it is refused.
        let patience = Moment::ORIGIN + Duration::from_secs(2);
        let opened = self.server.endpoint.ledger.opened.is_some() && self.client.endpoint.ledger.opened.is_some();
        if !opened && !self.script.revision.is_stateless() && self.now < patience {
            return self.queue_up(self.now + Duration::from_millis(10), QueuedEvent::Part(place));
        }
        let plan = self.plans.len();
        self.plans.push(Arc::new(planned.plan.clone()));
        self.numbers += 1;
        let token = planned.progress.then(|| format!("t{}", self.numbers));
        let mut call = self.request(planned.by, planned.kind, Some(plan), token.as_deref());
        call.timeout = planned.timeout;
        call.total_timeout = planned.total_timeout;
        let by = planned.by;
        let (party, _, _, trace) = self.ends(by);
        let (number, taken) = party.endpoint.call(trace, call, None);
        if let Some((after, times)) = planned.give_up.filter(|_| taken) {
            for again in 0..u32::from(times) {
                self.queue_up(self.now + after + Duration::from_micros(300) * again, QueuedEvent::GiveUp(by, number));
            }
        }
        self.follow_up(by);
    }

    fn request(&self, by: Side, kind: Kind, plan: Option<usize>, token: Option<&str>) -> Call {
        let (method, mut params) = match (kind, by) {
            (Kind::Ping, _) => (Method::Ping, json!({})),
            (Kind::Handled, Side::Client) => (Method::CallTool, json!({"name":"t","arguments":{}})),
            (Kind::Handled, Side::Server) => (Method::ListRoots, json!({})),
        };
        if self.script.revision.is_stateless() {
            params["_meta"] = lines::modern_meta();
        }
        if let Some(token) = token {
            params["_meta"]["progressToken"] = json!(token);
        }
        if let Some(plan) = plan {
            params[HANDLER_PLAN] = json!(plan);
        }
        let mut call = Call::new(method, Some(params.to_string().into()));
        call.progress_token = token.map(ProgressToken::from);
        call
    }

    fn inject(&mut self, to: Side, line: RawLine) {
        self.numbers += 1;
        let (from, back) = match to {
            Side::Server => (&self.client, &self.server),
            Side::Client => (&self.server, &self.client),
        };
        let known = ConversationState {
            last: from.last_call.as_ref(),
            last_back: back.last_call.as_ref(),
            number: self.numbers,
            revision: self.script.revision,
            to_server: to == Side::Server,
        };
        if matches!(
            line,
            RawLine::DuplicateOfLast | RawLine::CancelLast | RawLine::CancelLastAsText | RawLine::AnswerLast
        ) {
            self.by_hand.extend(known.last.cloned());
            self.by_hand.extend(known.last_back.cloned());
        }
        let lines = lines::bytes(line, &known);
        let from = other(to);
        for line in lines {
            self.party(from).put(line);
        }
        self.write_soon(from);
    }

    /// Does what an end asks for after something was done to it.
    fn follow_up(&mut self, side: Side) {
        let effects = self.party(side).endpoint.effects();
        for effect in effects {
            match effect {
                Effect::Start { execution, request } => self.start(side, execution, &request),
                Effect::Stop { execution } => self.stop(side, execution),
                Effect::Closed => {
                    let (_, out, input, _) = self.ends(side);
                    out.end();
                    input.stop_reading();
                    self.read_at(other(side), self.now);
                    self.unblock(other(side));
                }
            }
        }
        let party = self.party(side);
        let (deadline, set) = (party.endpoint.deadline(), party.timer);
        if let Some(deadline) = deadline.filter(|deadline| set.is_none_or(|set| *deadline < set)) {
            // Timers are late, sometimes.
            let late =
                if self.random.chance(20) { self.random.delay(Duration::from_millis(2)) } else { Duration::ZERO };
            self.party(side).timer = Some(deadline);
            self.queue_up(deadline + late, QueuedEvent::Timer(side));
        }
        if self.party(side).endpoint.has_output() {
            self.write_soon(side);
        }
        if self.party(side).endpoint.wants_input() && self.party(side).read_due.is_none() {
            let (_, _, input, _) = self.ends(side);
            if input.is_waiting() {
                self.read_at(side, self.now);
            }
        }
    }
}
