//! Everything that a run is made of, from one seed: what is spoken, over what, what is done and what goes wrong.
//!
//! A script is made as a whole before it runs, so that parts of it can be left out to see whether they matter.

use std::fmt;
use std::time::Duration;

use steadfast_model::Revision;
use steadfast_proto::connection::Limits;

use super::bias;
use super::link::Shape;
use super::nemesis::{self, Fault};
use super::workload::{self, Item};
use crate::script::rng::Random;
use crate::seed::Seed;

/// Which random numbers are for what.
pub(super) mod stream {
    pub(crate) const SCRIPT: u64 = 1;
    pub(crate) const LINK_TO_SERVER: u64 = 2;
    pub(crate) const LINK_TO_CLIENT: u64 = 3;
    pub(crate) const WORLD: u64 = 4;
}

/// One part of a script that can be left out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Part {
    Item(Item),
    Fault(Fault),
}

/// A script.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) seed: u64,
    pub(crate) revision: Revision,
    pub(crate) limits: Limits,
    pub(crate) to_server: Shape,
    pub(crate) to_client: Shape,
    pub(crate) parts: Vec<Part>,
}

/// The longest message that a run takes.
pub(crate) const LONGEST_MESSAGE: usize = 4_096;

impl Script {
    /// The script of a seed.
    pub(crate) fn new(seed: Seed) -> Self {
        let mut script = Self::draw(seed.number);
        if !seed.plain {
            bias::apply(&mut script);
        }
        script
    }

    /// The script as it is first drawn.
    fn draw(seed: u64) -> Self {
        let random = &mut Random::new(seed, stream::SCRIPT);
        let revision = *random.pick(Revision::ALL);
        let corrupt = random.chance(20);
        let tight = revision.is_stateless() && !corrupt;
        let limits = limits(random, tight);
        let (to_server, to_client) = (Shape::random(random, corrupt), Shape::random(random, corrupt));
        let items = workload::items(random, !revision.is_stateless(), tight);
        let faults = nemesis::faults(random);
        let parts = items.into_iter().map(Part::Item).chain(faults.into_iter().map(Part::Fault)).collect();
        Self { seed, revision, limits, to_server, to_client, parts }
    }

    /// The same with only these parts.
    pub(crate) fn with_parts(&self, parts: Vec<Part>) -> Self {
        Self { parts, ..self.clone() }
    }

    /// The same with the parts at these places.
    pub(crate) fn keeping(&self, places: &[usize]) -> Self {
        self.with_parts(places.iter().filter_map(|place| self.parts.get(*place).cloned()).collect())
    }

    /// The same over links with nothing in the way.
    pub(crate) fn with_ideal_links(&self) -> Self {
        Self { to_server: Shape::ideal(), to_client: Shape::ideal(), ..self.clone() }
    }
}

/// Limits; a tight one on what waits to be written only where one of the two sides never has much to write in answer.
/// Otherwise each may wait for the other to read, which is all that can be done about two peers that flood each other.
fn limits(random: &mut Random, tight: bool) -> Limits {
    let mut limits = Limits::default();
    limits.message_bytes = LONGEST_MESSAGE;
    limits.depth = 64;
    limits.in_flight = *random.pick(&[2, 8, 64]);
    limits.outbox_bytes = if tight { *random.pick(&[300, 4_000]) } else { *random.pick(&[16_000, 1 << 20]) };
    limits.calls = *random.pick(&[2, 16, 64]);
    limits.queued_logs = *random.pick(&[1, 8]);
    limits.batch = 8;
    limits.handler_deadline = Some(*random.pick(&[Duration::from_millis(100), Duration::from_secs(20)]));
    limits
}

impl fmt::Display for Script {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Limits { in_flight, outbox_bytes, calls, queued_logs, handler_deadline, .. } = &self.limits;
        writeln!(formatter, "revision {}", self.revision)?;
        writeln!(
            formatter,
            "limits in_flight={in_flight} outbox_bytes={outbox_bytes} calls={calls} queued_logs={queued_logs} handler_deadline={handler_deadline:?}"
        )?;
        writeln!(formatter, "to the server {:?}", self.to_server)?;
        writeln!(formatter, "to the client {:?}", self.to_client)?;
        for part in &self.parts {
            match part {
                Part::Item(item) => writeln!(formatter, "{:>12?} {:?}", item.at, item.action)?,
                Part::Fault(fault) => writeln!(formatter, "{:>12?} {:?}", fault.at, fault.strikes)?,
            }
        }
        Ok(())
    }
}
