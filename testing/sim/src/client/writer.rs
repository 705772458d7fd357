//! Draws what happens in one run.

use std::time::Duration;

use super::TransportKind;
use super::script::{
    AcknowledgeMode, Action, Call, Listening, ProgressMode, Question, Reading, ResponseMode, ServerAction, Step,
    StreamEnd, TaskPlan, TaskStep,
};
use crate::script::rng::Random;

/// How many resources there are.
const RESOURCES: u64 = 2;

/// More rounds than a client goes along with.
const FOR_EVER: u64 = 1_000;

pub(super) struct Writer {
    random: Random,
    transport_kind: TransportKind,
    returns: bool,
    tag: u64,
    readings: u64,
    listeners: u64,
    steps: Vec<Step>,
}

impl Writer {
    pub(super) fn new(random: Random, transport_kind: TransportKind, returns: bool) -> Self {
        Self { random, transport_kind, returns, tag: 0, readings: 0, listeners: 0, steps: Vec::new() }
    }

    pub(super) fn write(mut self) -> Vec<Step> {
        let count = self.random.between(1, 30);
        let hurry = self.random.chance(30);
        for _ in 0..count {
            let action = self.draw_action();
            let still = hurry || self.random.chance(50);
            let delay = if still { Duration::ZERO } else { self.random.delay(Duration::from_millis(800)) };
            let resource = match &action {
                Action::Listen(Listening { resource, .. }) | Action::Read(Reading { resource, .. }) => Some(*resource),
                _ => None,
            };
            self.steps.push(Step { delay, action });
            if let Some(resource) = resource.filter(|_| self.random.chance(50)) {
                self.look_on(resource);
            }
        }
        if self.random.chance(50) {
            self.steps.push(Step { delay: Duration::ZERO, action: Action::Settle });
        }
        let ends = [Action::Close, Action::Close, Action::Forget, Action::Die, Action::EndOutput, Action::StopReading];
        for _ in 0..self.random.between(1, 2) {
            let (delay, action) = (self.random.delay(Duration::from_secs(2)), self.random.pick(&ends).clone());
            self.steps.push(Step { delay, action });
        }
        self.steps
    }

    fn draw_action(&mut self) -> Action {
        if self.returns && self.random.chance(12) {
            return self.random.pick(&[Action::Die, Action::EndOutput, Action::StopReading]).clone();
        }
        match self.random.below(100) {
            0..41 => Action::Call(self.call()),
            41..53 => Action::Drop { back: self.random.index(4) },
            53..55 => Action::Cancel { back: self.random.index(4) },
            55..65 => Action::Read(self.reading()),
            65..72 => Action::Listen(self.listening()),
            72..75 => Action::StopListening { back: self.random.index(2) },
            75..83 => Action::Change(self.resource()),
            83..91 => Action::ServerAction(self.oddity()),
            91..95 => Action::Pause(self.random.delay(Duration::from_secs(3))),
            95..98 => Action::Settle,
            98 => Action::Die,
            _ => Action::EndOutput,
        }
    }

    fn call(&mut self) -> Call {
        self.tag += 1;
        let timeout = *self.random.pick(&[1, 3, 3, 5]);
        let total = timeout * self.random.between(1, 4);
        let count = self.random.below(5);
        let mut plan: Vec<ServerAction> = (0..count).map(|_| self.before()).collect();
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
            progress: *self.random.pick(&[
                ProgressMode::Nothing,
                ProgressMode::Nothing,
                ProgressMode::Called,
                ProgressMode::Stream,
            ]),
            idempotent: self.random.chance(30),
            polls: None,
            plan,
            response_mode: self.response_mode(),
        }
    }

    /// What comes before the answer.
    fn before(&mut self) -> ServerAction {
        match self.random.below(100) {
            0..50 => ServerAction::Wait(self.random.delay(Duration::from_secs(3))),
            50..75 => ServerAction::Progress,
            75..85 => ServerAction::Ask,
            85..98 => self.oddity(),
            98 => ServerAction::EndOutput,
            _ => ServerAction::Die,
        }
    }

    fn answer(&mut self) -> ServerAction {
        match self.random.below(100) {
            0..45 => ServerAction::Result,
            45..52 => ServerAction::Error,
            52..56 => ServerAction::WrongShape,
            56..58 => ServerAction::Both,
            58..68 => self.ask_back(),
            68..86 => ServerAction::Task(self.task_plan()),
            86..89 => ServerAction::TextAnswer,
            // Never.
            89..95 => ServerAction::StrayAnswer,
            95..97 => ServerAction::Torn,
            97 => ServerAction::Die,
            98 => ServerAction::EndOutput,
            _ => ServerAction::StopReading,
        }
    }

    fn oddity(&mut self) -> ServerAction {
        match self.random.below(5) {
            0 => ServerAction::Garbage(u8::try_from(self.random.below(8)).unwrap_or(0)),
            1 => ServerAction::StrayAnswer,
            2 => ServerAction::StrayProgress,
            3 => ServerAction::Withdraw,
            _ => ServerAction::Ask,
        }
    }

    fn question(&mut self) -> Question {
        match self.random.below(100) {
            0..80 => Question::Roots,
            80..87 => Question::Fails,
            87..92 => Question::Hangs,
            92..95 => Question::Unheard,
            _ => Question::Nothing,
        }
    }

    fn ask_back(&mut self) -> ServerAction {
        let rounds = if self.random.chance(4) { FOR_EVER } else { self.random.between(1, 3) };
        ServerAction::AskBack(self.question(), rounds)
    }

    fn task_plan(&mut self) -> TaskPlan {
        let pace = *self.random.pick(&[None, Some(0), Some(50), Some(50), Some(300), Some(1_000_000)]);
        let ends = [
            TaskStep::Completed,
            TaskStep::Completed,
            TaskStep::Completed,
            TaskStep::Failed,
            TaskStep::Cancelled,
            TaskStep::Works,
        ];
        let last = *self.random.pick(&ends);
        let steps = [(); 3].map(|()| self.turn());
        TaskPlan { pace, steps: [steps[0], steps[1], steps[2], last] }
    }

    fn turn(&mut self) -> TaskStep {
        match self.random.below(100) {
            0..45 => TaskStep::Works,
            45..65 => TaskStep::Asks(self.question()),
            65..69 => TaskStep::AsksAnew,
            69..73 => TaskStep::Renamed,
            73..76 => TaskStep::Vanished,
            76..79 => TaskStep::WrongShape,
            79..82 => TaskStep::Silent,
            82..86 => TaskStep::Twice,
            86..93 => TaskStep::Completed,
            93..95 => TaskStep::Empty,
            95..97 => TaskStep::Failed,
            97..99 => TaskStep::Cancelled,
            _ => TaskStep::Dies,
        }
    }

    /// The resource is read, changes and is read again.
    fn look_on(&mut self, resource: u8) {
        for _ in 0..self.random.between(2, 5) {
            let action = if self.random.chance(40) {
                Action::Change(resource)
            } else {
                Action::Read(Reading { resource, ..self.reading() })
            };
            let delay = self.random.delay(Duration::from_millis(1_500));
            self.steps.push(Step { delay, action });
        }
    }

    fn resource(&mut self) -> u8 {
        u8::try_from(self.random.below(RESOURCES)).unwrap_or(0)
    }

    fn reading(&mut self) -> Reading {
        self.readings += 1;
        let total = Duration::from_secs(*self.random.pick(&[1, 3, 5]));
        Reading { number: self.readings, resource: self.resource(), fresh: self.random.chance(15), total }
    }

    fn listening(&mut self) -> Listening {
        self.listeners += 1;
        let acknowledged = match self.random.below(100) {
            0..70 => AcknowledgeMode::Once,
            70..80 => AcknowledgeMode::Late(self.random.delay(Duration::from_secs(3))),
            80..86 => AcknowledgeMode::Twice,
            86..90 => AcknowledgeMode::Never,
            90..95 => AcknowledgeMode::Behind,
            _ => AcknowledgeMode::Refused,
        };
        let farewells = [StreamEnd::Result, StreamEnd::Error, StreamEnd::Cancelled, StreamEnd::Broken];
        let ends = self.random.chance(30);
        let end = ends.then(|| (self.random.delay(Duration::from_secs(4)), *self.random.pick(&farewells)));
        let cut = self.random.chance(30).then(|| 200 + self.random.index(1_500));
        Listening { number: self.listeners, resource: self.resource(), acknowledged, end, cut }
    }

    fn response_mode(&mut self) -> ResponseMode {
        if self.transport_kind == TransportKind::Stream {
            return ResponseMode::Json;
        }
        match self.random.below(100) {
            0..25 => ResponseMode::Json,
            25..70 => {
                let cut = self.random.chance(60).then(|| 1 + self.random.index(400));
                ResponseMode::Events { cut, clean: self.random.chance(50), named: self.random.chance(80) }
            }
            70..75 => ResponseMode::Unreachable,
            75..81 => ResponseMode::Broken { taken: self.random.chance(50) },
            81..88 => ResponseMode::Status(*self.random.pick(&[303, 307, 400, 401, 403, 404, 429, 500, 503])),
            88..93 => ResponseMode::Refused { named: self.random.chance(50) },
            93..96 => ResponseMode::Accepted,
            _ => ResponseMode::Silent,
        }
    }
}
