//! Subscriptions and changes, put into scripts after these were drawn.
//!
//! They are drawn from numbers of their own, and most scripts have none: the script of a seed without them is the same as
//! before there were any.

use std::time::Duration;

use super::script::{Action, ClientBehavior, Hang, Op, Pace, Script, Step, Upload};
use crate::script::changes::{Change, Filter, draw_uri};
use crate::script::rng::Random;

/// The stream of numbers for this.
const STREAM: u64 = 78_100;

/// Scripts with changes, in a hundred.
const SCRIPTS: u64 = 35;

/// The ids of what is put in: no other request has one of these.
const FIRST: u64 = 90_000_000;

pub(super) fn add(script: &mut Script) {
    let random = &mut Random::new(script.seed, STREAM);
    if !random.chance(SCRIPTS) {
        return;
    }
    script.changes = true;
    if script.clients.iter().all(Option::is_some) && random.chance(70) {
        script.clients[0] = None;
    }
    if random.chance(20) {
        script.limits.subscribed = *random.pick(&[1, 2, 3]);
    }
    for step in &mut script.steps {
        if let Action::Call(call, _) = &mut step.action
            && random.chance(30)
        {
            let at = random.index(call.plan.len() + 1);
            call.plan.insert(at, Op::Change(Change::draw(random)));
        }
    }
    let count = random.between(2, 12);
    for number in FIRST..FIRST + count {
        let at = random.index(script.steps.len() + 1);
        let client = random.index(script.clients.len());
        let modern = script.clients[client].is_none();
        let delay = if random.chance(50) { Duration::ZERO } else { random.delay(Duration::from_millis(800)) };
        let action = match random.below(100) {
            0..40 if modern => Action::Subscribe { number, filter: Filter::draw(random), behavior: behavior(random) },
            0..40 => Action::SubscribeTo { number, uri: draw_uri(random), on: random.chance(70) },
            40..48 => Action::Cancel { back: random.index(3) },
            _ => Action::Change(Change::draw(random)),
        };
        script.steps.insert(at, Step { delay, client, action });
    }
}

/// Mostly of a client that reads, and goes when it likes.
fn behavior(random: &mut Random) -> ClientBehavior {
    let upload = *random.pick(&[Upload::Whole, Upload::Whole, Upload::Whole, Upload::Pieces]);
    let hang = match random.below(100) {
        0..60 => Hang::Never,
        60..70 => Hang::Polls(random.below(8)),
        70..85 => Hang::After(random.delay(Duration::from_secs(4))),
        _ => Hang::Bytes(random.index(900)),
    };
    let pace = match random.below(100) {
        0..65 => Pace::Eager,
        65..90 => Pace::Slow,
        _ => Pace::Stuck,
    };
    ClientBehavior { upload, hang, pace }
}
