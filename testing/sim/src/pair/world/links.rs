//! The links: their faults, and when each side reads and writes.

use std::time::Duration;

use steadfast_proto::Moment;

use super::{QueuedEvent, World, other};
use crate::observation::ledger::Side;
use crate::pair::nemesis::FaultKind;
use crate::pair::party::WriteResult;

impl World<'_> {
    pub(super) fn strike(&mut self, strike: FaultKind) {
        let side = match strike {
            FaultKind::Stall(side, _)
            | FaultKind::End(side)
            | FaultKind::Cut(side)
            | FaultKind::Deafen(side)
            | FaultKind::ShutDown(side)
            | FaultKind::ShutDownNow(side) => side,
        };
        let until = self.now;
        let notices = self.random.chance(50);
        let (party, out, _, trace) = self.ends(side);
        match strike {
            FaultKind::Stall(_, length) => out.stall(until + length),
            FaultKind::End(_) => out.end(),
            FaultKind::Cut(_) => out.cut(),
            FaultKind::Deafen(_) => {
                out.stop_reading();
                // A writer may learn so although it has nothing to write, or only when it has.
                if notices {
                    party.hang_up(trace);
                }
            }
            FaultKind::ShutDown(_) => party.endpoint.shut_down(trace, false),
            FaultKind::ShutDownNow(_) => party.endpoint.shut_down(trace, true),
        }
        let (server_reads, client_reads) = (self.now, self.now);
        self.read_at(Side::Server, server_reads);
        self.read_at(Side::Client, client_reads);
        self.unblock(side);
        self.follow_up(side);
    }

    pub(super) fn read(&mut self, side: Side) {
        let now = self.now;
        let (party, _, input, trace) = self.ends(side);
        if party.read_due.is_some_and(|event| event <= now) {
            party.read_due = None;
        }
        let again = party.read(trace, input);
        if let Some(again) = again {
            self.read_at(side, again);
        }
        if again.is_some_and(|again| again <= now) {
            // Room was made for the other side.
            self.unblock(other(side));
        }
        self.follow_up(side);
    }

    pub(super) fn write(&mut self, side: Side) {
        let (party, output, _, trace) = self.ends(side);
        party.write_due = false;
        let written = party.write(trace, output);
        party.blocked = matches!(written, WriteResult::Blocked);
        if matches!(written, WriteResult::Some) {
            self.write_soon(side);
            self.read_at(other(side), self.now);
        }
        self.follow_up(side);
    }

    pub(super) fn unblock(&mut self, side: Side) {
        self.party(side).blocked = false;
        self.write_soon(side);
    }

    pub(super) fn write_soon(&mut self, side: Side) {
        if !self.party(side).write_due && !self.party(side).blocked {
            self.party(side).write_due = true;
            let delay = self.random.delay(Duration::from_micros(200));
            self.queue_up(self.now + delay, QueuedEvent::Write(side));
        }
    }

    pub(super) fn read_at(&mut self, side: Side, when: Moment) {
        let party = self.party(side);
        if party.read_due.is_none_or(|event| event > when) {
            party.read_due = Some(when);
            self.queue_up(when, QueuedEvent::Read(side));
        }
    }
}
