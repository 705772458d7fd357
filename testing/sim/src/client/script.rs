//! What happens in one run, before anything runs: what the program does with its client, and what the server does to it.

use std::fmt;
use std::time::Duration;

use steadfast::client::NegotiationMode;
use steadfast::{Limits, Revision};

use super::TransportKind;
use super::bias;
use super::writer::Writer;
use crate::script::rng::Random;
use crate::seed::Seed;

/// One run.
#[derive(Debug, Clone)]
pub(super) struct Script {
    /// For everything that is drawn while it runs.
    pub(super) seed: u64,
    pub(super) transport_kind: TransportKind,
    /// What the client tries.
    pub(super) era: NegotiationMode,
    /// What the server speaks; `None` for 2026-07-28.
    pub(super) handshake: Option<Revision>,
    pub(super) opening: Opening,
    /// The program does not wait for longer than this until the client is there.
    pub(super) give_up: Option<Duration>,
    pub(super) limits: Limits,
    /// The client reconnects to a server that it has lost, and the server is restarted.
    pub(super) returns: bool,
    /// The program asks for a retry whenever a request is not authorized (HTTP).
    pub(super) stubborn: bool,
    /// The client takes tasks for results.
    pub(super) tasks: bool,
    pub(super) steps: Vec<Step>,
}

/// How the server meets the first request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    Plain,
    Slow(Duration),
    Silent,
    /// Bytes that are no message come first.
    Garbled,
    /// A request of the server's comes right behind the answer.
    Asks,
    /// Of the second opening and later ones only the first half is answered.
    TornLater,
    WrongShape,
    Refuses,
    Dies,
}

/// One step.
#[derive(Debug, Clone)]
pub(super) struct Step {
    /// After the step before it.
    pub(super) delay: Duration,
    pub(super) action: Action,
}

/// What the program, the server or the surroundings do.
#[derive(Debug, Clone)]
pub(super) enum Action {
    Call(Call),
    /// Drops one of the calls that wait, the `back`th from the last.
    Drop {
        back: usize,
    },
    /// Cancels one of them from elsewhere.
    Cancel {
        back: usize,
    },
    /// Reads a resource, whose result may be cached.
    Read(Reading),
    /// Begins to listen to changes.
    Listen(Listening),
    /// Stops, the `back`th from the last.
    StopListening {
        back: usize,
    },
    /// A resource changes at the server, and its subscribers are notified.
    Change(u8),
    /// The server sends an unsolicited message.
    ServerAction(ServerAction),
    /// The server does not read for a while.
    Pause(Duration),
    /// Waits until everything that can end has.
    Settle,
    /// The server ends its output, and lives.
    EndOutput,
    /// The server closes its input; over HTTP it forgets the session.
    StopReading,
    Die,
    /// The program closes the client, and waits for it.
    Close,
    /// The program drops the client.
    Forget,
}

/// A call of a tool.
#[derive(Debug, Clone)]
pub(super) struct Call {
    /// Names this call to the server.
    pub(super) tag: u64,
    pub(super) timeout: Duration,
    pub(super) total: Duration,
    pub(super) progress: ProgressMode,
    /// It does no harm if the server does it twice.
    pub(super) idempotent: bool,
    /// The program drops it when it has been polled so often.
    pub(super) polls: Option<u32>,
    /// What the server does when it has the call.
    pub(super) plan: Vec<ServerAction>,
    /// How it responds, over HTTP.
    pub(super) response_mode: ResponseMode,
}

/// How the program hears of the progress of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgressMode {
    Nothing,
    Called,
    Stream,
}

/// A resource is read.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    /// Names it to the journal.
    pub(super) number: u64,
    pub(super) resource: u8,
    /// A cached result will not do.
    pub(super) fresh: bool,
    pub(super) total: Duration,
}

/// Changes are listened to.
#[derive(Debug, Clone)]
pub(super) struct Listening {
    /// Names the listener to the server: it also subscribes to a resource that no other listener uses.
    pub(super) number: u64,
    pub(super) resource: u8,
    pub(super) acknowledged: AcknowledgeMode,
    /// The server ends it, after a while.
    pub(super) end: Option<(Duration, StreamEnd)>,
    /// What becomes of the response, over HTTP.
    pub(super) cut: Option<usize>,
}

/// How a server meets one who wants to listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AcknowledgeMode {
    Once,
    Late(Duration),
    Twice,
    Never,
    /// Behind a change.
    Behind,
    Refused,
}

/// How a server ends a stream of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamEnd {
    Result,
    Error,
    /// As one takes back a request.
    Cancelled,
    /// Without a word (HTTP).
    Broken,
}

/// What a server wants to know before it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    Roots,
    /// Of a handler that fails.
    Fails,
    /// Of a handler that never ends.
    Hangs,
    /// There is no handler for it.
    Unheard,
    /// Nothing: it wants to be asked again.
    Nothing,
}

/// A task, and its status each time that it is polled. The last is repeated for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TaskPlan {
    /// How often it wants to be asked for, in milliseconds.
    pub(super) pace: Option<u64>,
    pub(super) steps: [TaskStep; 4],
}

/// A status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskStep {
    Works,
    /// It asks, under a key that stays until it is answered.
    Asks(Question),
    /// It asks under another key each time.
    AsksAnew,
    /// It is called by another name.
    Renamed,
    /// The server has forgotten it.
    Vanished,
    WrongShape,
    Silent,
    /// It is answered twice, and the second contradicts the first.
    Twice,
    Completed,
    /// It is completed, and has no result.
    Empty,
    Failed,
    Cancelled,
    Dies,
}

/// What a server does, with the call that it is about if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerAction {
    Wait(Duration),
    Progress,
    /// For an unknown token.
    StrayProgress,
    Garbage(u8),
    /// A response under an unknown id.
    StrayAnswer,
    /// The id of the call as text.
    TextAnswer,
    /// Asks for the client's roots: a request of its own on the older wires.
    Ask,
    Result,
    Error,
    WrongShape,
    Both,
    /// Asks back in place of a result, where the revision has it: in so many rounds.
    AskBack(Question, u64),
    /// Goes on as a task, where the revision has them.
    Task(TaskPlan),
    /// Takes its last question back, on the older wires.
    Withdraw,
    /// Half of an answer, and then nothing ever again.
    Torn,
    Die,
    EndOutput,
    StopReading,
}

/// How a server of HTTP responds to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseMode {
    Json,
    /// A stream, whose responses break after so many bytes each, or end there as if that was all.
    Events {
        cut: Option<usize>,
        clean: bool,
        /// Its events have ids.
        named: bool,
    },
    Unreachable,
    /// It breaks before there is a response; perhaps after the server has read the request.
    Broken {
        taken: bool,
    },
    Status(u16),
    /// An error of the protocol with status 400, under the id of the call or under none.
    Refused {
        named: bool,
    },
    /// 202 and nothing more.
    Accepted,
    Silent,
}

impl Script {
    /// The script of a seed.
    pub(super) fn of(seed: Seed, transport_kind: TransportKind) -> Self {
        let mut script = Self::draw(seed.number, transport_kind);
        if !seed.plain {
            bias::apply(&mut script);
        }
        script
    }

    /// The script as it is first drawn.
    fn draw(seed: u64, transport_kind: TransportKind) -> Self {
        let mut random = Random::new(seed, 30);
        let older = [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25];
        let handshake = random.chance(50).then(|| *random.pick(&older));
        let era = match random.below(10) {
            0..5 => NegotiationMode::Auto,
            5 => NegotiationMode::Stateless,
            6 => NegotiationMode::Handshake(Revision::V2025_11_25),
            _ => handshake.map_or(NegotiationMode::Stateless, NegotiationMode::Handshake),
        };
        let opening = match random.below(100) {
            0..80 => Opening::Plain,
            80..84 => Opening::Slow(random.delay(Duration::from_secs(4))),
            84..87 => Opening::Silent,
            87..91 => Opening::Garbled,
            91..94 => Opening::WrongShape,
            94..97 => Opening::Refuses,
            _ => Opening::Dies,
        };
        let give_up = random.chance(4).then(|| random.delay(Duration::from_secs(2)));
        let mut limits = Limits::default();
        if random.chance(10) {
            limits.calls = usize::try_from(random.between(1, 4)).unwrap_or(1);
        }
        let (stubborn, returns) = (random.chance(50), random.chance(40));
        let tasks = random.chance(90);
        let steps = Writer::new(random, transport_kind, returns).write();
        Self { seed, transport_kind, era, handshake, opening, give_up, limits, returns, stubborn, tasks, steps }
    }

    /// Whether the client has to come to terms with the server.
    pub(super) fn is_compatible(&self) -> bool {
        matches!(
            (self.era, self.handshake),
            (NegotiationMode::Auto, _) | (NegotiationMode::Stateless, None) | (NegotiationMode::Handshake(_), Some(_))
        )
    }
}

impl crate::executor::world::Script for Script {
    type Step = Step;

    fn kind(step: &Step) -> String {
        crate::script::bias::kind(&step.action)
    }

    fn steps(&self) -> &[Step] {
        &self.steps
    }

    fn with_steps(&self, steps: &[Step]) -> Self {
        Self { steps: steps.to_vec(), ..self.clone() }
    }
}

impl fmt::Display for Script {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { transport_kind, era, opening, give_up, limits, returns, .. } = self;
        let speaks = self.handshake.map_or("2026-07-28", Revision::as_str);
        writeln!(
            formatter,
            "{transport_kind:?}, {era:?} to {speaks}, {opening:?}, {give_up:?}, {} calls, returns: {returns}",
            limits.calls
        )?;
        for step in &self.steps {
            writeln!(formatter, "  +{:?} {:?}", step.delay, step.action)?;
        }
        Ok(())
    }
}
