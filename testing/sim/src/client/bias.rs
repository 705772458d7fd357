//! What is rare in the life of a client, made frequent.

use std::time::Duration;

use super::script::{Action, Call, Opening, Question, Script, ServerAction, Step, TaskStep};
use crate::script::bias::{Bias, insert_behind, soon};

pub(super) fn apply(script: &mut Script) {
    let bias = Bias::new(script.seed);
    if let Some(random) = &mut bias.change("few calls", 30) {
        script.limits.calls = usize::try_from(random.between(1, 2)).unwrap_or(1);
    }
    if bias.change("one question", 10).is_some() {
        script.limits.in_flight = 1;
    }
    if let Some(random) = &mut bias.change("poll interval", 25) {
        let pace = *random.pick(&[Some(0), Some(60_000), Some(1_000_000), Some(u64::MAX), None]);
        each_task(script, |say| {
            if let ServerAction::Task(task_plan) = say {
                task_plan.pace = pace;
            }
        });
    }
    if let Some(random) = &mut bias.change("questions", 15) {
        let question = *random.pick(&[Question::Hangs, Question::Fails, Question::Unheard]);
        each_task(script, |say| match say {
            ServerAction::AskBack(asked, _) => *asked = question,
            ServerAction::Task(task_plan) => task_plan.steps[0] = TaskStep::Asks(question),
            _ => {}
        });
    }
    if let Some(random) = &mut bias.change("brief timeouts", 15) {
        let brief = *random.pick(&[1, 5, 40, 200]);
        for call in calls(script) {
            call.timeout = Duration::from_millis(brief);
            call.total = call.timeout * u32::try_from(random.between(1, 3)).unwrap_or(1);
        }
    }
    if let Some(random) = &mut bias.change("drops at a poll", 20) {
        for call in calls(script) {
            call.polls = random.chance(60).then(|| u32::try_from(random.below(7)).unwrap_or(0));
        }
    }
    if let Some(random) = &mut bias.change("impatient opening", 10) {
        script.give_up = Some(random.delay(Duration::from_millis(300)));
    }
    if let Some(random) = &mut bias.change("odd opening", 10) {
        script.opening =
            *random.pick(&[Opening::Garbled, Opening::Slow(Duration::from_millis(1_900)), Opening::WrongShape]);
    }
    if bias.change("asks at once", 6).is_some() && script.opening == Opening::Plain {
        script.opening = Opening::Asks;
    }
    if bias.change("torn later", 10).is_some() && script.opening == Opening::Plain {
        script.opening = Opening::TornLater;
    }
    if bias.change("no delays", 10).is_some() {
        script.steps.iter_mut().for_each(|step| step.delay = Duration::ZERO);
    }
    if let Some(random) = &mut bias.change("given up", 30) {
        insert_behind(&mut script.steps, |step| {
            let given_up = matches!(step.action, Action::Call(_)) && random.chance(50);
            let action = if random.chance(70) { Action::Drop { back: 0 } } else { Action::Cancel { back: 0 } };
            given_up.then(|| Step { delay: soon(random), action })
        });
    }
    if let Some(random) = &mut bias.change("an end", 30) {
        let ends = [Action::Close, Action::Close, Action::Forget, Action::Die, Action::EndOutput, Action::StopReading];
        for _ in 0..random.between(1, 2) {
            let at = random.index(script.steps.len() + 1);
            let step = Step { delay: soon(random), action: random.pick(&ends).clone() };
            script.steps.insert(at, step);
        }
    }
}

fn calls(script: &mut Script) -> impl Iterator<Item = &mut Call> {
    script.steps.iter_mut().filter_map(|step| match &mut step.action {
        Action::Call(call) => Some(call),
        _ => None,
    })
}

/// Everything that the server says of a call.
fn each_task(script: &mut Script, mut change: impl FnMut(&mut ServerAction)) {
    calls(script).flat_map(|call| call.plan.iter_mut()).for_each(&mut change);
}
