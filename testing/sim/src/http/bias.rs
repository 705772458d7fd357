//! What is rare in the life of a service over HTTP, made frequent.

use std::time::Duration;

use super::script::{Action, Call, Hang, Op, Script, Step};
use crate::script::bias::{Bias, insert_behind, soon};

pub(super) fn apply(script: &mut Script) {
    let bias = Bias::new(script.seed);
    if let Some(random) = &mut bias.change("few requests", 30) {
        script.limits.in_flight = usize::try_from(random.between(1, 2)).unwrap_or(1);
    }
    if let Some(random) = &mut bias.change("handler deadline", 15) {
        script.limits.handler_deadline = Some(Duration::from_millis(*random.pick(&[1, 50, 500])));
    }
    if let Some(random) = &mut bias.change("drain window", 10) {
        script.limits.drain_window = *random.pick(&[Duration::ZERO, Duration::from_millis(1_900)]);
    }
    if bias.change("one call", 15).is_some() {
        script.limits.calls = 1;
    }
    if let Some(random) = &mut bias.change("idle sessions", 15) {
        script.tuning.session_idle = Duration::from_millis(*random.pick(&[200, 1_000]));
    }
    if bias.change("short log", 15).is_some() {
        (script.tuning.forgetful, script.tuning.log.events) = (true, 1);
    }
    if let Some(random) = &mut bias.change("first operation", 15) {
        let first = *random.pick(&[Op::Release, Op::Roots, Op::Elicit, Op::Never, Op::Log(3)]);
        calls(script).for_each(|call| call.plan.insert(0, first));
    }
    if let Some(random) = &mut bias.change("hang up", 15) {
        let polls = random.below(4);
        for step in &mut script.steps {
            if let Action::Call(_, behavior) | Action::Listen(behavior) | Action::Resume { behavior, .. } =
                &mut step.action
                && random.chance(50)
            {
                behavior.hang = Hang::Polls(polls);
            }
        }
    }
    if let Some(random) = &mut bias.change("given up", 30) {
        insert_behind(&mut script.steps, |step| {
            let given_up = matches!(step.action, Action::Call(..)) && random.chance(60);
            let action = if random.chance(70) { Action::Cancel { back: 0 } } else { Action::HangUp { back: 0 } };
            given_up.then(|| Step { delay: soon(random), client: step.client, action })
        });
    }
    if bias.change("no delays", 10).is_some() {
        script.steps.iter_mut().for_each(|step| step.delay = Duration::ZERO);
    }
    if let Some(random) = &mut bias.change("an end", 30) {
        let ends = [Action::ShutDown, Action::DropService, Action::Abandon, Action::Delete, Action::Delete];
        let at = random.index(script.steps.len() + 1);
        let client = random.index(script.clients.len());
        let step = Step { delay: soon(random), client, action: random.pick(&ends).clone() };
        script.steps.insert(at, step);
    }
}

fn calls(script: &mut Script) -> impl Iterator<Item = &mut Call> {
    script.steps.iter_mut().filter_map(|step| match &mut step.action {
        Action::Call(call, _) => Some(call),
        _ => None,
    })
}
