//! What is rare in the life of a server, made frequent.

use std::time::Duration;

use super::script::{Action, Call, Op, Script, Step};
use crate::script::bias::{Bias, insert_behind, soon};

pub(super) fn apply(script: &mut Script) {
    let bias = Bias::new(script.seed);
    if let Some(random) = &mut bias.change("few requests", 30) {
        script.limits.in_flight = usize::try_from(random.between(1, 2)).unwrap_or(1);
    }
    if let Some(random) = &mut bias.change("small outbox", 20) {
        script.limits.outbox_bytes = *random.pick(&[1, 300, 2_000]);
    }
    if bias.change("one log", 15).is_some() {
        script.limits.queued_logs = 1;
    }
    if bias.change("one call", 15).is_some() {
        script.limits.calls = 1;
    }
    if let Some(random) = &mut bias.change("drain window", 10) {
        script.limits.drain_window = *random.pick(&[Duration::ZERO, Duration::from_millis(1_900)]);
    }
    if let Some(random) = &mut bias.change("handler deadline", 15) {
        script.limits.handler_deadline = Some(Duration::from_millis(*random.pick(&[1, 50, 500])));
    }
    if let Some(random) = &mut bias.change("last operation", 15) {
        let last = *random.pick(&[Op::Never, Op::Panic, Op::PanicInDrop, Op::Roots, Op::OnCancel(None)]);
        calls(script).for_each(|call| call.plan.push(last));
    }
    if let Some(random) = &mut bias.change("damage", 20) {
        // Every part of a line is hit in turn.
        let bytes = [b'"', b'{', b'}', b',', b':', b'|', 0xff, b'0'];
        for call in calls(script) {
            let hit = random.chance(50).then(|| (random.index(1_000), *random.pick(&bytes)));
            call.corrupt = hit.or(call.corrupt);
        }
    }
    if let Some(random) = &mut bias.change("cancelled", 30) {
        insert_behind(&mut script.steps, |step| match &step.action {
            Action::Call(call) if random.chance(60) => {
                Some(Step { delay: soon(random), action: Action::Cancel(call.id.clone()) })
            }
            _ => None,
        });
    }
    if bias.change("no delays", 10).is_some() {
        script.steps.iter_mut().for_each(|step| step.delay = Duration::ZERO);
    }
    if let Some(random) = &mut bias.change("an end", 30) {
        let ends =
            [Action::EndInput { torn: true }, Action::StopReading, Action::Cut, Action::ShutDown, Action::DropServer];
        let at = random.index(script.steps.len() + 1);
        let step = Step { delay: soon(random), action: random.pick(&ends).clone() };
        script.steps.insert(at, step);
    }
}

fn calls(script: &mut Script) -> impl Iterator<Item = &mut Call> {
    script.steps.iter_mut().filter_map(|step| match &mut step.action {
        Action::Call(call) => Some(call),
        _ => None,
    })
}
