//! What the two sides do: calls, cancellations, handlers with every kind of plan, and messages that no proper peer would send.

use std::time::Duration;

use crate::endpoint::Reply;
use crate::observation::ledger::Side;
use crate::script::rng::Random;

/// Something that happens at a time of its own.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Item {
    pub(crate) at: Duration,
    pub(crate) action: Action,
}

/// What happens.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    /// A side calls the other.
    Call(PlannedCall),
    /// A side sends a notification.
    Notify(Side),
    /// A line is sent to a side that its peer's connection knows nothing of.
    Inject { to: Side, line: RawLine },
}

/// A call to make.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlannedCall {
    pub(crate) by: Side,
    pub(crate) kind: Kind,
    /// What its handler does.
    pub(crate) plan: HandlerPlan,
    pub(crate) progress: bool,
    pub(crate) timeout: Option<Duration>,
    pub(crate) total_timeout: Option<Duration>,
    /// Given up after so long, as often as it says.
    pub(crate) give_up: Option<(Duration, u8)>,
}

/// What is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Ping,
    /// A tool, or the roots, by who is called.
    Handled,
}

/// How a handler behaves.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HandlerPlan {
    /// What it does, each so long after what was before.
    pub(crate) steps: Vec<(Duration, HandlerStep)>,
    pub(crate) when_stopped: WhenStopped,
}

/// One thing that a handler does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HandlerStep {
    Progress,
    Log,
    Respond(Reply),
    /// Calls the peer; cancels the call after this time, if set.
    Call {
        give_up: Option<Duration>,
    },
    End,
}

/// What a handler does when it is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenStopped {
    End(Duration),
    /// Answers all the same, then ends.
    RespondThenEnd(Duration),
    /// Continues as if it had not been stopped.
    GoOn,
}

/// A line that is put on the wire by hand. Some name the last call that was on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RawLine {
    DuplicateOfLast,
    CancelLast,
    CancelLastAsText,
    AnswerLast,
    CancelUnknown,
    CancelNothing,
    AnswerNothing,
    ErrorWithoutId,
    NotUtf8,
    NotJson,
    NotAMessage,
    IdNull,
    IdFloat,
    ParamsArray,
    TooDeep,
    TooLong,
    Blank,
    UnknownMethod,
    UnknownNotification,
    Initialize,
    Request,
    RequestThenCancel,
    Batch,
}

const LINES: &[RawLine] = &[
    RawLine::DuplicateOfLast,
    RawLine::DuplicateOfLast,
    RawLine::CancelLast,
    RawLine::CancelLast,
    RawLine::CancelLastAsText,
    RawLine::AnswerLast,
    RawLine::CancelUnknown,
    RawLine::CancelNothing,
    RawLine::AnswerNothing,
    RawLine::ErrorWithoutId,
    RawLine::NotUtf8,
    RawLine::NotJson,
    RawLine::NotAMessage,
    RawLine::IdNull,
    RawLine::IdFloat,
    RawLine::ParamsArray,
    RawLine::TooDeep,
    RawLine::TooLong,
    RawLine::Blank,
    RawLine::UnknownMethod,
    RawLine::UnknownNotification,
    RawLine::Initialize,
    RawLine::Request,
    RawLine::RequestThenCancel,
    RawLine::Batch,
];

/// How long the workload of a run lasts.
pub(crate) const LENGTH: Duration = Duration::from_millis(300);

/// Makes a workload. Only older revisions let a server call its client. Where room is tight, the client is not made to
/// refuse things.
pub(crate) fn items(random: &mut Random, server_calls: bool, tight: bool) -> Vec<Item> {
    let count = random.between(1, 40);
    let odd = *random.pick(&[0, 10, 40]);
    let mut items: Vec<Item> = (0..count)
        .map(|_| {
            let at = Duration::from_micros(random.below(u64::try_from(LENGTH.as_micros()).unwrap_or(1)));
            let action = if random.chance(odd) {
                let to = if tight || random.chance(80) { Side::Server } else { Side::Client };
                Action::Inject { to, line: *random.pick(LINES) }
            } else if random.chance(5) {
                Action::Notify(Side::Server)
            } else {
                Action::Call(planned_call(random, server_calls))
            };
            Item { at, action }
        })
        .collect();
    items.sort_by_key(|item| item.at);
    items
}

fn planned_call(random: &mut Random, server_calls: bool) -> PlannedCall {
    let by = if server_calls && random.chance(20) { Side::Server } else { Side::Client };
    let timeout = random.chance(20).then(|| Duration::from_millis(random.between(1, 400)));
    PlannedCall {
        by,
        kind: if server_calls && random.chance(10) { Kind::Ping } else { Kind::Handled },
        plan: plan(random, server_calls && by == Side::Client),
        progress: random.chance(40),
        timeout,
        total_timeout: timeout.filter(|_| random.chance(50)).map(|timeout| timeout * 2),
        give_up: random
            .chance(25)
            .then(|| (random.delay(Duration::from_millis(60)), if random.chance(20) { 2 } else { 1 })),
    }
}

fn plan(random: &mut Random, may_call: bool) -> HandlerPlan {
    let slow = Duration::from_millis(*random.pick(&[0, 1, 20, 200]));
    let mut steps = Vec::new();
    for _ in 0..random.below(5) {
        let step = match random.below(4) {
            0 | 1 => HandlerStep::Progress,
            2 => HandlerStep::Log,
            _ if may_call => HandlerStep::Call { give_up: random.chance(40).then(|| random.delay(slow)) },
            _ => HandlerStep::Progress,
        };
        steps.push((random.delay(slow), step));
    }
    let reply = match random.below(8) {
        0 => Reply::Error,
        1 => Reply::Result { padding: usize::try_from(random.below(1_500)).unwrap_or(0) },
        _ => Reply::Result { padding: 0 },
    };
    // Answers, answers twice, drops the request, or never finishes.
    match random.below(12) {
        0 => steps.push((random.delay(slow), HandlerStep::End)),
        1 => {}
        2 => {
            steps.push((random.delay(slow), HandlerStep::Respond(reply)));
            steps.push((random.delay(slow), HandlerStep::Respond(reply)));
            steps.push((random.delay(slow), HandlerStep::End));
        }
        3 => steps.push((random.delay(slow), HandlerStep::Respond(reply))),
        _ => {
            steps.push((random.delay(slow), HandlerStep::Respond(reply)));
            // What goes on after the answer has no business on the wire.
            if random.chance(10) {
                steps.push((random.delay(slow), HandlerStep::Progress));
                steps.push((random.delay(slow), HandlerStep::Log));
            }
            let linger = if random.chance(70) { Duration::ZERO } else { random.delay(slow) };
            steps.push((linger, HandlerStep::End));
        }
    }
    let when_stopped = match random.below(5) {
        0 | 1 => WhenStopped::End(Duration::ZERO),
        2 => WhenStopped::End(random.delay(Duration::from_millis(500))),
        3 => WhenStopped::RespondThenEnd(random.delay(Duration::from_millis(50))),
        _ => WhenStopped::GoOn,
    };
    HandlerPlan { steps, when_stopped }
}
