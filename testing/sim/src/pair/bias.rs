//! What is rare between two cores, made frequent.

use std::time::Duration;

use super::nemesis::{self, FaultKind};
use super::script::{Part, Script};
use super::workload::{Action, PlannedCall};
use crate::script::bias::{Bias, soon};

pub(super) fn apply(script: &mut Script) {
    let bias = Bias::new(script.seed);
    if bias.change("one request", 30).is_some() {
        script.limits.in_flight = 1;
    }
    if bias.change("one call", 30).is_some() {
        script.limits.calls = 1;
    }
    if let Some(random) = &mut bias.change("handler deadline", 20) {
        script.limits.handler_deadline = Some(Duration::from_millis(*random.pick(&[1, 10])));
    }
    if let Some(random) = &mut bias.change("drain window", 15) {
        script.limits.drain_window = *random.pick(&[Duration::ZERO, Duration::from_millis(1_900)]);
    }
    if let Some(random) = &mut bias.change("given up", 30) {
        for call in calls(script) {
            if random.chance(50) {
                call.give_up = Some((soon(random), 1));
            }
        }
    }
    if let Some(random) = &mut bias.change("timeouts", 15) {
        for call in calls(script) {
            call.timeout = Some(Duration::from_millis(*random.pick(&[1, 10, 100])));
        }
    }
    // Two peers that flood each other with refusals need room for them.
    if let Some(random) = &mut bias.change("damage", 20)
        && script.limits.outbox_bytes >= 16_000
    {
        script.to_server.corrupt = *random.pick(&[0, 50, 300]);
        script.to_client.corrupt = *random.pick(&[50, 300]);
    }
    if let Some(random) = &mut bias.change("faults", 30) {
        let mut faults = nemesis::faults(random);
        faults.retain(|fault| !matches!(fault.strikes, FaultKind::Stall(..)));
        script.parts.extend(faults.into_iter().map(Part::Fault));
    }
}

fn calls(script: &mut Script) -> impl Iterator<Item = &mut PlannedCall> {
    script.parts.iter_mut().filter_map(|part| match part {
        Part::Item(item) => match &mut item.action {
            Action::Call(call) => Some(call),
            _ => None,
        },
        Part::Fault(_) => None,
    })
}
