//! What happens in one run over HTTP, before anything runs: a list of steps drawn from a seed, each of which can be left out.

mod draw;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use steadfast::Limits;
use steadfast::transport::http::{HttpServerOptions, SseEventLogLimits};

use super::{bias, changes};
use crate::script::changes::{Change, Filter};
use crate::script::rng::Random;
use crate::seed::Seed;
use draw::{Writer, limits, tuning};

/// One run.
#[derive(Debug, Clone)]
pub(super) struct Script {
    /// For everything that is drawn while it runs.
    pub(super) seed: u64,
    pub(super) limits: Limits,
    pub(super) tuning: Tuning,
    /// The revision of each client; `None` for 2026-07-28.
    pub(super) clients: Vec<Option<&'static str>>,
    /// Questions of the server that clients never answer, in a hundred.
    pub(super) silent: u64,
    /// The server has prompts and resources too.
    pub(super) changes: bool,
    pub(super) steps: Vec<Step>,
}

/// What is chosen of the service's options.
#[derive(Debug, Clone)]
pub(super) struct Tuning {
    pub(super) session_idle: Duration,
    pub(super) stream_after: Duration,
    pub(super) resumable_after: Duration,
    pub(super) keep_alive: Duration,
    pub(super) body_timeout: Duration,
    pub(super) log: SseEventLogLimits,
    /// Events may be dropped before a client resumes.
    pub(super) forgetful: bool,
}

impl Tuning {
    pub(super) fn options(&self, limits: &Limits) -> HttpServerOptions {
        let mut options = HttpServerOptions::new().limits(limits.clone());
        options = options.session_idle_timeout(self.session_idle);
        options = options.stream_after(self.stream_after);
        options = options.resumable_after(self.resumable_after);
        options = options.comment_interval(self.keep_alive);
        options = options.body_timeout(self.body_timeout);
        options = options.event_log(self.log.clone());
        options
    }
}

/// One step.
#[derive(Debug, Clone)]
pub(super) struct Step {
    /// After the step before it.
    pub(super) delay: Duration,
    pub(super) client: usize,
    pub(super) action: Action,
}

/// What a client, or the surroundings, do. `back` counts from the newest.
#[derive(Debug, Clone)]
pub(super) enum Action {
    Call(Call, ClientBehavior),
    /// The same request once more, with the id that it had.
    Again {
        back: usize,
    },
    /// Something that the connection answers by itself.
    Ping(u64, ClientBehavior),
    /// An older client says that it does not want the answer; a newer one hangs up.
    Cancel {
        back: usize,
    },
    /// Hangs up on one response.
    HangUp {
        back: usize,
    },
    /// Hangs up on all of them, and says nothing.
    Abandon,
    Listen(ClientBehavior),
    Resume {
        back: usize,
        from: ResumeFrom,
        behavior: ClientBehavior,
    },
    Delete,
    /// An older client gets everything that it has missed.
    Collect,
    StrayAnswer(u64),
    ChangeTools,
    Change(Change),
    /// A client of 2026-07-28 opens a subscription.
    Subscribe {
        number: u64,
        filter: Filter,
        behavior: ClientBehavior,
    },
    /// An older client subscribes to a resource, or does so no more.
    SubscribeTo {
        number: u64,
        uri: &'static str,
        on: bool,
    },
    Wait(Duration),
    ShutDown,
    DropService,
}

/// The event id that a client resumes from.
#[derive(Debug, Clone, Copy)]
pub(super) enum ResumeFrom {
    /// The last that it saw.
    Last,
    /// One before that.
    Earlier(usize),
    /// One that never was.
    Unknown(&'static str),
    /// One that another client saw.
    Other,
}

/// How a client sends a request, reads its response, and goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClientBehavior {
    pub(super) upload: Upload,
    pub(super) hang: Hang,
    pub(super) pace: Pace,
}

/// How a body is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Upload {
    Whole,
    Pieces,
    /// The rest never comes.
    Stalls,
    Breaks,
}

/// When a client hangs up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hang {
    Never,
    /// Where it is polled this often.
    Polls(u64),
    After(Duration),
    /// With so many bytes of the body: in the middle of an event, mostly.
    Bytes(usize),
}

/// How a client reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    Eager,
    Slow,
    /// Not at all.
    Stuck,
}

/// A call of a tool.
#[derive(Debug, Clone)]
pub(super) struct Call {
    /// Names this call to its handler, and is the id of its request.
    pub(super) tag: u64,
    pub(super) kind: Kind,
    pub(super) plan: Vec<Op>,
    /// The answer has this many bytes.
    pub(super) size: usize,
    pub(super) token: bool,
    /// A client of 2026-07-28 wants its log messages.
    pub(super) logs: bool,
}

impl Call {
    pub(super) fn asks(&self) -> bool {
        self.plan.iter().any(|op| matches!(op, Op::Elicit | Op::Sample | Op::Roots))
    }

    pub(super) fn releases(&self) -> bool {
        self.plan.contains(&Op::Release)
    }
}

/// What kind of handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Async,
    Cooperative,
    Blocking,
}

/// What a handler does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Sleep(Duration),
    Yield,
    Progress(u8),
    Log(u8),
    Elicit,
    Sample,
    Roots,
    /// Lets the client's connection go.
    Release,
    Shield(Duration),
    /// `None` never ends.
    OnCancel(Option<Duration>),
    Panic,
    AwaitCancel,
    Never,
    Change(Change),
}

/// Ids that no event has, or that are no ids.
const UNKNOWN: [&str; 6] = ["0-999", "999-0", "", "x", "0-18446744073709551615", "00-0"];

const REVISIONS: [Option<&str>; 5] = [None, None, Some("2025-11-25"), Some("2025-11-25"), Some("2025-06-18")];

impl Script {
    /// The script of a seed.
    pub(super) fn of(seed: Seed) -> Self {
        let mut script = Self::draw(seed.number);
        if !seed.plain {
            bias::apply(&mut script);
            changes::add(&mut script);
        }
        script
    }

    /// The script as it is first drawn.
    fn draw(seed: u64) -> Self {
        let mut random = Random::new(seed, 21);
        let count = random.between(1, 3);
        let clients: Vec<_> = (0..count).map(|_| *random.pick(&REVISIONS)).collect();
        let limits = limits(&mut random);
        let tuning = tuning(&mut random);
        let silent = *random.pick(&[0, 20, 100]);
        let mut writer = Writer { random, next: 0, steps: Vec::new() };
        let hurry = writer.random.chance(30);
        for _ in 0..writer.random.between(1, 28) {
            let client = writer.random.index(clients.len());
            let action = writer.draw_action(clients[client].is_none());
            let delay = writer.delay(hurry);
            writer.steps.push(Step { delay, client, action });
        }
        if writer.random.chance(60) {
            for client in 0..clients.len() {
                writer.steps.push(Step { delay: Duration::ZERO, client, action: Action::Collect });
            }
        }
        writer.close();
        Self { seed, limits, tuning, clients, silent, changes: false, steps: writer.steps }
    }

    /// Its calls by their tags.
    pub(super) fn calls(&self) -> BTreeMap<u64, Call> {
        let calls = self.steps.iter().filter_map(|step| match &step.action {
            Action::Call(call, _) => Some((call.tag, call.clone())),
            _ => None,
        });
        calls.collect()
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
        writeln!(formatter, "{:?}\n{:?}", self.tuning, self.limits)?;
        for (client, revision) in self.clients.iter().enumerate() {
            writeln!(formatter, "  client {client}: {}", revision.unwrap_or("2026-07-28"))?;
        }
        for step in &self.steps {
            writeln!(formatter, "  +{:?} client {} {:?}", step.delay, step.client, step.action)?;
        }
        Ok(())
    }
}
