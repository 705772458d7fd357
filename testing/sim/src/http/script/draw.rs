//! Draws the actions of a script from its seed.

use std::time::Duration;

use steadfast::Limits;
use steadfast::transport::http::SseEventLogLimits;

use super::{Action, Call, ClientBehavior, Hang, Kind, Op, Pace, ResumeFrom, Step, Tuning, UNKNOWN, Upload};
use crate::script::rng::Random;

pub(super) fn limits(random: &mut Random) -> Limits {
    let mut limits = Limits::default();
    limits.handler_deadline = Some(Duration::from_secs(5));
    if random.chance(15) {
        limits.in_flight = usize::try_from(random.between(1, 6)).unwrap_or(1);
    }
    if random.chance(10) {
        limits.drain_window = Duration::ZERO;
    }
    limits
}

pub(super) fn tuning(random: &mut Random) -> Tuning {
    let mut log = SseEventLogLimits::default();
    let forgetful = random.chance(20);
    if forgetful {
        log.events = *random.pick(&[1, 4, 20]);
        log.age = Duration::from_secs(*random.pick(&[1, 10, 300]));
    }
    Tuning {
        session_idle: Duration::from_secs(*random.pick(&[2, 15, 15, 600])),
        stream_after: Duration::from_millis(*random.pick(&[0, 200, 5_000])),
        resumable_after: Duration::from_millis(*random.pick(&[0, 0, 250])),
        keep_alive: Duration::from_secs(*random.pick(&[1, 15])),
        body_timeout: Duration::from_secs(*random.pick(&[1, 30])),
        log,
        forgetful,
    }
}

pub(super) struct Writer {
    pub(super) random: Random,
    pub(super) next: u64,
    pub(super) steps: Vec<Step>,
}

impl Writer {
    pub(super) fn delay(&mut self, hurry: bool) -> Duration {
        if hurry || self.random.chance(40) { Duration::ZERO } else { self.random.delay(Duration::from_millis(800)) }
    }

    pub(super) fn draw_action(&mut self, modern: bool) -> Action {
        if modern {
            return match self.random.below(100) {
                0..70 => Action::Call(self.call(), self.behavior()),
                70..90 => Action::Cancel { back: self.back() },
                90..94 => Action::Ping(self.number(), self.behavior()),
                94..96 => Action::ChangeTools,
                _ => Action::Wait(self.random.delay(Duration::from_secs(8))),
            };
        }
        match self.random.below(100) {
            0..38 => Action::Call(self.call(), self.behavior()),
            38..46 => Action::Cancel { back: self.back() },
            46..56 => Action::HangUp { back: self.back() },
            56..63 => Action::Listen(self.behavior()),
            63..80 => Action::Resume { back: self.back(), from: self.from(), behavior: self.behavior() },
            80..83 => Action::Delete,
            83..86 => Action::Ping(self.number(), self.behavior()),
            86..88 => Action::Again { back: self.back() },
            88..90 => Action::StrayAnswer(self.number()),
            90..92 => Action::Abandon,
            92..94 => Action::ChangeTools,
            94..97 => Action::Collect,
            _ => Action::Wait(self.random.delay(Duration::from_secs(20))),
        }
    }

    fn back(&mut self) -> usize {
        usize::try_from(self.random.delay(Duration::from_micros(6)).as_micros()).unwrap_or(0)
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next * 1_000 + self.random.below(1_000)
    }

    fn from(&mut self) -> ResumeFrom {
        match self.random.below(100) {
            0..60 => ResumeFrom::Last,
            60..82 => ResumeFrom::Earlier(1 + self.back()),
            82..91 => {
                let id = *self.random.pick(&UNKNOWN);
                ResumeFrom::Unknown(id)
            }
            _ => ResumeFrom::Other,
        }
    }

    fn behavior(&mut self) -> ClientBehavior {
        let upload = match self.random.below(100) {
            0..80 => Upload::Whole,
            80..94 => Upload::Pieces,
            94..97 => Upload::Stalls,
            _ => Upload::Breaks,
        };
        let hang = match self.random.below(100) {
            0..50 => Hang::Never,
            50..65 => Hang::Polls(self.random.below(8)),
            65..80 => Hang::After(self.random.delay(Duration::from_secs(4))),
            _ => Hang::Bytes(self.random.index(700)),
        };
        let pace = match self.random.below(100) {
            0..75 => Pace::Eager,
            75..95 => Pace::Slow,
            _ => Pace::Stuck,
        };
        ClientBehavior { upload, hang, pace }
    }

    pub(super) fn call(&mut self) -> Call {
        let tag = self.number();
        let kind =
            *self.random.pick(&[Kind::Async, Kind::Async, Kind::Async, Kind::Async, Kind::Cooperative, Kind::Blocking]);
        let count = self.random.below(7);
        let plan = (0..count).map(|_| self.op(kind)).collect();
        let size = *self.random.pick(&[0, 0, 10, 3_000]);
        Call { tag, kind, plan, size, token: self.random.chance(60), logs: self.random.chance(60) }
    }

    fn op(&mut self, kind: Kind) -> Op {
        let nap = |random: &mut Random| random.delay(Duration::from_secs(3));
        match self.random.below(100) {
            0..26 => Op::Sleep(nap(&mut self.random)),
            26..30 => Op::Yield,
            30..40 => Op::Progress(u8::try_from(self.random.between(1, 4)).unwrap_or(1)),
            40..56 => Op::Log(u8::try_from(self.random.between(1, 5)).unwrap_or(1)),
            56..60 => Op::Elicit,
            60..63 => Op::Sample,
            63..68 => Op::Roots,
            68..76 => Op::Release,
            76..81 => Op::Shield(nap(&mut self.random)),
            81..92 => Op::OnCancel(self.random.chance(90).then(|| self.random.delay(Duration::from_millis(900)))),
            92..95 => Op::Panic,
            95..97 if kind == Kind::Cooperative => Op::AwaitCancel,
            _ => Op::Never,
        }
    }

    /// How it ends.
    pub(super) fn close(&mut self) {
        let ends: [&[Action]; 4] = [
            &[Action::ShutDown],
            &[Action::ShutDown],
            &[Action::Wait(Duration::from_secs(700)), Action::ShutDown],
            &[Action::DropService],
        ];
        for action in self.random.pick(&ends).to_vec() {
            let delay = self.random.delay(Duration::from_millis(1_500));
            self.steps.push(Step { delay, client: 0, action });
        }
    }
}
