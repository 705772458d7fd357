//! What happens in one run, before anything runs: what the program does with its client, and what the server does to it.

use std::fmt;
use std::time::Duration;

use steadfast::client::Era;
use steadfast::{Limits, Revision};

use crate::rng::Random;

/// One run.
#[derive(Debug, Clone)]
pub(super) struct Script {
    /// For everything that is drawn while it runs.
    pub(super) seed: u64,
    pub(super) over: Over,
    /// What the client tries.
    pub(super) era: Era,
    /// What the server speaks; `None` for 2026-07-28.
    pub(super) handshake: Option<Revision>,
    pub(super) opening: Opening,
    /// The program does not wait for longer than this until the client is there.
    pub(super) give_up: Option<Duration>,
    pub(super) limits: Limits,
    /// The client comes back to a server that it has lost, and the server comes back from the dead.
    pub(super) returns: bool,
    /// Somebody asks for another try whenever a request is not let in (HTTP).
    pub(super) stubborn: bool,
    pub(super) steps: Vec<Step>,
}

/// How the server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    Stream,
    Http,
}

/// How the server meets the first request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    Plain,
    Slow(Duration),
    Silent,
    /// Bytes that are no message come first.
    Garbled,
    WrongShape,
    Refuses,
    Dies,
}

/// One step.
#[derive(Debug, Clone)]
pub(super) struct Step {
    /// After the step before it.
    pub(super) delay: Duration,
    pub(super) act: Act,
}

/// What the program, the server or the surroundings do.
#[derive(Debug, Clone)]
pub(super) enum Act {
    Call(Call),
    /// Drops one of the calls that wait, the `back`th from the last.
    Drop {
        back: usize,
    },
    /// The server says something that nobody asked for.
    Say(Say),
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
    pub(super) progress: bool,
    /// It does no harm if the server does it twice.
    pub(super) idempotent: bool,
    /// What the server does when it has the call.
    pub(super) plan: Vec<Say>,
    /// How it responds, over HTTP.
    pub(super) manner: Manner,
}

/// What a server does, with the call that it is about if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Say {
    Wait(Duration),
    Progress,
    /// For a token that nobody has.
    StrayProgress,
    Garbage(u8),
    /// An answer under an id that nobody has.
    StrayAnswer,
    /// The id of the call as text.
    TextAnswer,
    /// Asks for the client's roots: a request of its own on the older wires.
    Ask,
    Result,
    Error,
    WrongShape,
    Both,
    /// Asks back in place of a result, where the revision has it.
    AskBack,
    /// Half of an answer, and then nothing ever again.
    Torn,
    Die,
    EndOutput,
    StopReading,
}

/// How a server of HTTP responds to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    Json,
    /// A stream, whose responses break after so many bytes each, or end there as if that was all.
    Events {
        cut: Option<usize>,
        clean: bool,
        /// Its events have ids.
        named: bool,
    },
    Unreachable,
    /// It breaks before there is a response; perhaps behind the server's having taken it.
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
    pub(super) fn of(seed: u64, over: Over) -> Self {
        let mut random = Random::new(seed, 30);
        let older = [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25];
        let handshake = random.chance(60).then(|| *random.pick(&older));
        let era = match random.below(10) {
            0..5 => Era::Any,
            5 => Era::Modern,
            6 => Era::Handshake(Revision::V2025_11_25),
            _ => handshake.map_or(Era::Modern, Era::Handshake),
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
        let mut writer = Writer { random, over, returns, tag: 0, steps: Vec::new() };
        writer.write();
        Self { seed, over, era, handshake, opening, give_up, limits, returns, stubborn, steps: writer.steps }
    }

    /// Whether the client has to come to terms with the server.
    pub(super) fn is_compatible(&self) -> bool {
        matches!((self.era, self.handshake), (Era::Any, _) | (Era::Modern, None) | (Era::Handshake(_), Some(_)))
    }
}

struct Writer {
    random: Random,
    over: Over,
    returns: bool,
    tag: u64,
    steps: Vec<Step>,
}

impl Writer {
    fn write(&mut self) {
        let count = self.random.between(1, 25);
        let hurry = self.random.chance(30);
        for _ in 0..count {
            let act = self.act();
            let still = hurry || self.random.chance(50);
            let delay = if still { Duration::ZERO } else { self.random.delay(Duration::from_millis(800)) };
            self.steps.push(Step { delay, act });
        }
        if self.random.chance(50) {
            self.steps.push(Step { delay: Duration::ZERO, act: Act::Settle });
        }
        let ends = [Act::Close, Act::Close, Act::Forget, Act::Die, Act::EndOutput, Act::StopReading];
        for _ in 0..self.random.between(1, 2) {
            let (delay, act) = (self.random.delay(Duration::from_secs(2)), self.random.pick(&ends).clone());
            self.steps.push(Step { delay, act });
        }
    }

    fn act(&mut self) -> Act {
        if self.returns && self.random.chance(12) {
            return self.random.pick(&[Act::Die, Act::EndOutput, Act::StopReading]).clone();
        }
        match self.random.below(100) {
            0..65 => Act::Call(self.call()),
            65..80 => Act::Drop { back: self.random.index(4) },
            80..90 => Act::Say(self.oddity()),
            90..95 => Act::Pause(self.random.delay(Duration::from_secs(3))),
            95..98 => Act::Settle,
            98 => Act::Die,
            _ => Act::EndOutput,
        }
    }

    fn call(&mut self) -> Call {
        self.tag += 1;
        let timeout = *self.random.pick(&[1, 3, 3, 5]);
        let total = timeout * self.random.between(1, 4);
        let count = self.random.below(5);
        let mut plan: Vec<Say> = (0..count).map(|_| self.before()).collect();
        plan.push(self.answer());
        if self.random.chance(20) {
            let late = self.before();
            plan.push(late);
            plan.push(self.answer());
        }
        Call {
            tag: self.tag,
            timeout: Duration::from_secs(timeout),
            total: Duration::from_secs(total),
            progress: self.random.chance(50),
            idempotent: self.random.chance(30),
            plan,
            manner: self.manner(),
        }
    }

    /// What comes before the answer.
    fn before(&mut self) -> Say {
        match self.random.below(100) {
            0..50 => Say::Wait(self.random.delay(Duration::from_secs(3))),
            50..75 => Say::Progress,
            75..85 => Say::Ask,
            85..98 => self.oddity(),
            98 => Say::EndOutput,
            _ => Say::Die,
        }
    }

    fn answer(&mut self) -> Say {
        match self.random.below(100) {
            0..60 => Say::Result,
            60..68 => Say::Error,
            68..73 => Say::WrongShape,
            73..76 => Say::Both,
            76..86 => Say::AskBack,
            86..89 => Say::TextAnswer,
            // Never.
            89..95 => Say::StrayAnswer,
            95..97 => Say::Torn,
            97 => Say::Die,
            98 => Say::EndOutput,
            _ => Say::StopReading,
        }
    }

    fn oddity(&mut self) -> Say {
        match self.random.below(4) {
            0 => Say::Garbage(u8::try_from(self.random.below(8)).unwrap_or(0)),
            1 => Say::StrayAnswer,
            2 => Say::StrayProgress,
            _ => Say::Ask,
        }
    }

    fn manner(&mut self) -> Manner {
        if self.over == Over::Stream {
            return Manner::Json;
        }
        match self.random.below(100) {
            0..25 => Manner::Json,
            25..70 => {
                let cut = self.random.chance(60).then(|| 1 + self.random.index(400));
                Manner::Events { cut, clean: self.random.chance(50), named: self.random.chance(80) }
            }
            70..75 => Manner::Unreachable,
            75..81 => Manner::Broken { taken: self.random.chance(50) },
            81..88 => Manner::Status(*self.random.pick(&[303, 307, 400, 401, 403, 404, 429, 500, 503])),
            88..93 => Manner::Refused { named: self.random.chance(50) },
            93..96 => Manner::Accepted,
            _ => Manner::Silent,
        }
    }
}

impl crate::world::Script for Script {
    type Step = Step;

    fn steps(&self) -> &[Step] {
        &self.steps
    }

    fn with_steps(&self, steps: &[Step]) -> Self {
        Self { steps: steps.to_vec(), ..self.clone() }
    }
}

impl fmt::Display for Script {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { over, era, opening, give_up, limits, returns, .. } = self;
        let speaks = self.handshake.map_or("2026-07-28", Revision::as_str);
        writeln!(
            formatter,
            "{over:?}, {era:?} to {speaks}, {opening:?}, {give_up:?}, {} calls, returns: {returns}",
            limits.calls
        )?;
        for step in &self.steps {
            writeln!(formatter, "  +{:?} {:?}", step.delay, step.act)?;
        }
        Ok(())
    }
}
