//! Subscriptions and changes, put into scripts after these were drawn.
//!
//! They are drawn from numbers of their own, and most scripts have none: the script of a seed without them is the same as
//! before there were any.

use std::time::Duration;

use super::script::{Action, Op, Script, Step};
use crate::script::changes::{Change, Filter, draw_uri};
use crate::script::rng::Random;

/// The stream of numbers for this. The seeds of `failed-seeds.txt` that are older than subscriptions have none.
const STREAM: u64 = 78_010;

/// Scripts with changes, in a hundred.
const SCRIPTS: u64 = 35;

pub(super) fn add(script: &mut Script) {
    let mut random = Random::new(script.seed, STREAM);
    if !random.chance(SCRIPTS) {
        return;
    }
    script.changes = true;
    if random.chance(50) {
        script.handshake = None;
    }
    if random.chance(30) {
        script.limits.subscriptions = *random.pick(&[1, 1, 2]);
    }
    if random.chance(20) {
        script.limits.subscribed = *random.pick(&[1, 2, 3]);
    }
    for step in &mut script.steps {
        if let Action::Call(call) = &mut step.action
            && random.chance(30)
        {
            let at = random.index(call.plan.len() + 1);
            call.plan.insert(at, Op::Change(Change::draw(&mut random)));
        }
    }
    let mut writer = Writer { random, modern: script.handshake.is_none(), next: 0, listens: Vec::new() };
    let count = writer.random.between(2, 14);
    let mut places: Vec<usize> = (0..count).map(|_| writer.random.index(script.steps.len() + 1)).collect();
    places.sort_unstable();
    let mut steps = Vec::new();
    let mut places = places.into_iter().peekable();
    for (at, step) in std::mem::take(&mut script.steps).into_iter().map(Some).chain([None]).enumerate() {
        while places.next_if_eq(&at).is_some() {
            writer.write(&mut steps);
        }
        steps.extend(step);
    }
    script.steps = steps;
}

struct Writer {
    random: Random,
    modern: bool,
    next: u64,
    /// The ids of the subscriptions.
    listens: Vec<String>,
}

impl Writer {
    /// The next step, with what belongs after it.
    fn write(&mut self, steps: &mut Vec<Step>) {
        let delay = if self.random.chance(60) { Duration::ZERO } else { self.random.delay(Duration::from_millis(400)) };
        let mut push = |delay, action| steps.push(Step { delay, action });
        match self.random.below(100) {
            0..35 if self.modern => push(delay, self.listen()),
            0..35 => {
                let on = self.random.chance(70);
                push(delay, Action::Subscribe { id: self.id(), uri: draw_uri(&mut self.random), on });
            }
            35..50 if self.modern && !self.listens.is_empty() => {
                push(delay, Action::Cancel(self.random.pick(&self.listens).clone()));
                if self.random.chance(60) {
                    // When this is answered, the cancellation has been taken in.
                    push(Duration::ZERO, Action::Ask(self.id()));
                }
            }
            50..57 => push(delay, Action::Pause(self.random.delay(Duration::from_secs(2)))),
            _ => {
                for _ in 0..self.random.between(1, 4) {
                    push(delay, Action::Change(Change::draw(&mut self.random)));
                }
            }
        }
    }

    /// A subscription, now and then under the id of another.
    fn listen(&mut self) -> Action {
        let filter = Filter::draw(&mut self.random);
        if !self.listens.is_empty() && self.random.chance(8) {
            return Action::Listen { id: self.random.pick(&self.listens).clone(), filter };
        }
        let id = self.id();
        self.listens.push(id.clone());
        Action::Listen { id, filter }
    }

    /// A new id. Text and number with the same digits are two.
    fn id(&mut self) -> String {
        if self.random.chance(50) || self.next == 0 {
            self.next += 1;
            return (900_000_000_000 + self.next).to_string();
        }
        self.next += 1;
        format!("\"{}\"", 900_000_000_000 + self.next - 1)
    }
}
