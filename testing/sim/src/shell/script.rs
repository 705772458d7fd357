//! What happens in one run, before anything runs: a list of steps drawn from a seed, each of which can be left out.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use steadfast::Limits;

use super::{bias, changes};
use crate::script::changes::{Change, Filter};
use crate::script::rng::Random;
use crate::seed::Seed;

/// One run.
#[derive(Debug, Clone)]
pub(super) struct Script {
    /// For everything that is drawn while it runs.
    pub(super) seed: u64,
    /// `None` for the stateless form of 2026-07-28.
    pub(super) handshake: Option<&'static str>,
    pub(super) limits: Limits,
    /// Calls of the server that the peer never answers, in a hundred.
    pub(super) silent: u64,
    /// The server has prompts and resources too.
    pub(super) changes: bool,
    pub(super) steps: Vec<Step>,
}

/// One step.
#[derive(Debug, Clone)]
pub(super) struct Step {
    /// After the step before it.
    pub(super) delay: Duration,
    pub(super) action: Action,
}

/// What the peer, or the surroundings, do.
#[derive(Debug, Clone)]
pub(super) enum Action {
    Call(Call),
    /// Names a request by its id.
    Cancel(String),
    /// Something that the connection answers by itself; cancellations sent before it have been taken in by then.
    Ask(String),
    ListTools(String),
    /// Bytes that are no message.
    Garbage(Vec<u8>),
    /// An answer to nothing.
    StrayAnswer(String),
    /// The peer does not read for a while.
    Pause(Duration),
    /// The list of tools changes.
    ChangeTools,
    Change(Change),
    /// Opens a subscription of 2026-07-28.
    Listen {
        id: String,
        filter: Filter,
    },
    /// An older peer subscribes to a resource, or does so no more.
    Subscribe {
        id: String,
        uri: &'static str,
        on: bool,
    },
    /// Waits until everything that can be answered is.
    Settle,
    /// The peer sends no more; perhaps without the last newline.
    EndInput {
        torn: bool,
    },
    StopReading,
    Cut,
    ShutDown,
    /// The future of the server is dropped.
    DropServer,
}

/// A call of a tool.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) id: String,
    /// Names this call to its handler.
    pub(super) tag: u64,
    pub(super) kind: Kind,
    pub(super) plan: Vec<Op>,
    /// The answer has this many bytes.
    pub(super) size: usize,
    pub(super) token: bool,
    /// One byte is replaced by another, at about this thousandth of the line.
    pub(super) corrupt: Option<(usize, u8)>,
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
    /// Asks the client for its roots, and waits.
    Roots,
    /// Asks, and does not wait.
    RootsDropped,
    Shield(Duration),
    ShieldPanics,
    /// `None` never ends.
    OnCancel(Option<Duration>),
    Panic,
    /// With a payload whose drop panics again.
    PanicOddly,
    /// Keeps something whose drop panics.
    PanicInDrop,
    /// Hands its context to code that uses it later.
    KeepContext(Duration),
    /// Runs until it is stopped.
    AwaitCancel,
    Never,
    Change(Change),
}

impl Op {
    /// Whether it ends without waiting for anything.
    pub(super) fn is_immediate(self) -> bool {
        !matches!(self, Self::Sleep(_) | Self::Roots | Self::Shield(_) | Self::AwaitCancel | Self::Never)
    }
}

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
        let mut random = Random::new(seed, 10);
        let handshakes = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
        let handshake = random.chance(75).then(|| *random.pick(&handshakes));
        let limits = limits(&mut random);
        let silent = *random.pick(&[0, 20, 100]);
        let mut writer = Writer { random, next: 0, ids: Vec::new(), steps: Vec::new() };
        let count = writer.random.between(1, 30);
        let hurry = writer.random.chance(30);
        for _ in 0..count {
            let action = writer.draw_action();
            let delay = writer.delay(hurry);
            writer.steps.push(Step { delay, action });
            if writer.random.chance(25) {
                // Behind a cancellation, mostly.
                let action = writer.ask();
                writer.steps.push(Step { delay: Duration::ZERO, action });
            }
        }
        if writer.random.chance(50) {
            writer.steps.push(Step { delay: Duration::ZERO, action: Action::Settle });
        }
        writer.close();
        Self { seed, handshake, limits, silent, changes: false, steps: writer.steps }
    }

    /// Its calls by their tags.
    pub(super) fn calls(&self) -> BTreeMap<u64, Call> {
        let calls = self.steps.iter().filter_map(|step| match &step.action {
            Action::Call(call) => Some((call.tag, call.clone())),
            _ => None,
        });
        calls.collect()
    }
}

fn limits(random: &mut Random) -> Limits {
    let mut limits = Limits::default();
    limits.handler_deadline = Some(Duration::from_secs(5));
    if random.chance(20) {
        limits.in_flight = usize::try_from(random.between(1, 6)).unwrap_or(1);
    }
    if random.chance(40) {
        limits.outbox_bytes = 4_000;
    }
    if random.chance(10) {
        limits.drain_window = Duration::ZERO;
    }
    limits
}

struct Writer {
    random: Random,
    next: u64,
    ids: Vec<String>,
    steps: Vec<Step>,
}

impl Writer {
    fn delay(&mut self, hurry: bool) -> Duration {
        if hurry || self.random.chance(50) { Duration::ZERO } else { self.random.delay(Duration::from_millis(400)) }
    }

    fn draw_action(&mut self) -> Action {
        match self.random.below(100) {
            0..50 => Action::Call(self.call()),
            50..75 => Action::Cancel(self.some_id()),
            75..80 => self.ask(),
            80..83 => Action::ListTools(self.id()),
            83..88 => Action::Garbage(self.garbage()),
            88..92 => Action::StrayAnswer(self.some_id()),
            92..96 => Action::Pause(self.random.delay(Duration::from_secs(2))),
            96..98 => Action::ChangeTools,
            _ => Action::Settle,
        }
    }

    fn ask(&mut self) -> Action {
        Action::Ask(self.id())
    }

    /// A new id. Text and number with the same digits are two.
    fn id(&mut self) -> String {
        let last = self.ids.last().filter(|last| !last.starts_with('"')).cloned();
        let id = match last {
            Some(last) if self.random.chance(20) => format!("\"{last}\""),
            _ => {
                self.next += 1;
                let number = self.next * 1_000_000 + self.random.below(1_000_000);
                if self.random.chance(30) { format!("\"r{number}\"") } else { number.to_string() }
            }
        };
        self.ids.push(id.clone());
        id
    }

    /// The id of some request, mostly a late one, now and then of none.
    fn some_id(&mut self) -> String {
        if self.ids.is_empty() || self.random.chance(5) {
            return self.random.below(1_000).to_string();
        }
        let back = self.random.delay(Duration::from_micros(self.ids.len() as u64)).as_micros();
        let index = self.ids.len().saturating_sub(1 + usize::try_from(back).unwrap_or(0));
        self.ids[index].clone()
    }

    fn call(&mut self) -> Call {
        let again = self.random.chance(8);
        let id = if again { self.some_id() } else { self.id() };
        self.next += 1;
        let tag = self.next * 1_009;
        let kind = *self.random.pick(&[Kind::Async, Kind::Async, Kind::Async, Kind::Cooperative, Kind::Blocking]);
        let count = self.random.below(6);
        let plan = (0..count).map(|_| self.op(kind)).collect();
        let size = *self.random.pick(&[0, 0, 0, 10, 3_000, 50_000]);
        let corrupt = self.random.chance(6).then(|| (self.random.index(1_000), self.byte()));
        Call { id, tag, kind, plan, size, token: self.random.chance(60), corrupt }
    }

    fn op(&mut self, kind: Kind) -> Op {
        let nap = |random: &mut Random| random.delay(Duration::from_secs(3));
        match self.random.below(100) {
            0..30 => Op::Sleep(nap(&mut self.random)),
            30..35 => Op::Yield,
            35..38 => Op::KeepContext(nap(&mut self.random)),
            38..52 => Op::Progress(u8::try_from(self.random.between(1, 5)).unwrap_or(1)),
            52..58 => Op::Log(u8::try_from(self.random.between(1, 80)).unwrap_or(1)),
            58..66 => Op::Roots,
            66..68 => Op::RootsDropped,
            68..74 => Op::Shield(nap(&mut self.random)),
            74..75 => Op::ShieldPanics,
            75..88 => Op::OnCancel(self.random.chance(90).then(|| self.random.delay(Duration::from_millis(900)))),
            88..91 => Op::Panic,
            91..92 => Op::PanicOddly,
            92..94 => Op::PanicInDrop,
            94..97 if kind == Kind::Cooperative => Op::AwaitCancel,
            _ => Op::Never,
        }
    }

    fn byte(&mut self) -> u8 {
        match u8::try_from(self.random.below(256)).unwrap_or(0) {
            b'\n' => 0xff,
            byte => byte,
        }
    }

    fn garbage(&mut self) -> Vec<u8> {
        let bad: [&[u8]; 8] = [
            b"",
            b"{",
            b"\xff\xfe\x00",
            b"null",
            b"{\"jsonrpc\":\"2.0\",\"method\":5}",
            b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":{}}}",
            b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/nothing\"}",
            b"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1,\"message\":\"x\"}}",
        ];
        self.random.pick(&bad).to_vec()
    }

    /// How it ends, in one of many orders.
    fn close(&mut self) {
        let ends: [&[Action]; 8] = [
            &[Action::EndInput { torn: false }],
            &[Action::EndInput { torn: true }],
            &[Action::EndInput { torn: false }, Action::StopReading],
            &[Action::StopReading, Action::EndInput { torn: false }],
            &[Action::Cut],
            &[Action::ShutDown],
            &[Action::ShutDown, Action::EndInput { torn: false }, Action::StopReading],
            &[Action::DropServer],
        ];
        for action in self.random.pick(&ends).to_vec() {
            let delay = self.random.delay(Duration::from_millis(1_500));
            self.steps.push(Step { delay, action });
        }
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
        writeln!(formatter, "{} with {:?}", self.handshake.unwrap_or("2026-07-28"), self.limits)?;
        for step in &self.steps {
            writeln!(formatter, "  +{:?} {:?}", step.delay, step.action)?;
        }
        Ok(())
    }
}
