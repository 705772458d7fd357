//! What goes wrong around the two sides: streams that stall, end and break, and sides that shut down.

use std::time::Duration;

use super::workload::LENGTH;
use crate::observation::ledger::Side;
use crate::script::rng::Random;

/// Something that goes wrong, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) at: Duration,
    pub(crate) strikes: FaultKind,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// What this side writes does not arrive for so long.
    Stall(Side, Duration),
    /// What this side has written still arrives, and nothing more.
    End(Side),
    /// What this side has written and has not arrived is lost.
    Cut(Side),
    /// The peer of this side stops reading.
    Deafen(Side),
    /// This side shuts down.
    ShutDown(Side),
    /// This side shuts down at once.
    ShutDownNow(Side),
}

/// Makes the faults of a run; none, often, so that what has to work undisturbed is seen to.
pub(crate) fn faults(random: &mut Random) -> Vec<Fault> {
    let mut faults = Vec::new();
    if random.chance(40) {
        return faults;
    }
    for _ in 0..random.below(3) {
        let stall = FaultKind::Stall(side(random), random.delay(Duration::from_millis(400)));
        faults.push(Fault { at: at(random), strikes: stall });
    }
    if random.chance(15) {
        // The client stops reading, and leaves when what it did not read has piled up.
        let begins = at(random) / 2;
        faults.push(Fault { at: begins, strikes: FaultKind::Stall(Side::Server, Duration::from_secs(3)) });
        faults.push(Fault { at: LENGTH, strikes: FaultKind::End(Side::Client) });
    } else if random.chance(60) {
        let end = match random.below(5) {
            0 => FaultKind::End(side(random)),
            1 => FaultKind::Cut(side(random)),
            2 => FaultKind::Deafen(side(random)),
            3 => FaultKind::ShutDown(side(random)),
            _ => FaultKind::ShutDownNow(side(random)),
        };
        let first = at(random);
        faults.push(Fault { at: first, strikes: end });
        // The two ends of a stream close in either order, close together or not.
        if random.chance(50) {
            let second = if random.chance(50) { FaultKind::End(side(random)) } else { FaultKind::Deafen(side(random)) };
            faults.push(Fault { at: first + random.delay(Duration::from_millis(1_500)), strikes: second });
        }
    }
    faults.sort_by_key(|fault| fault.at);
    faults
}

fn side(random: &mut Random) -> Side {
    if random.chance(50) { Side::Server } else { Side::Client }
}

fn at(random: &mut Random) -> Duration {
    Duration::from_micros(random.below(u64::try_from(LENGTH.as_micros()).unwrap_or(1)))
}
