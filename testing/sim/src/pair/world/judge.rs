//! What is judged at the end of a run, and what the run came to.

use super::{Outcome, World};
use crate::observation::ledger::Side;
use crate::pair::party::Party;

impl World<'_> {
    /// Nothing is on its way any more, and the script is over.
    pub(super) fn judge_quiet(&mut self) {
        if self.is_at_a_standstill() {
            if !self.is_tainted() {
                self.report.broken(
                    crate::law::Law::Isolation,
                    "expected progress, observed a deadlock: each side waits for the other to read",
                );
            }
            return;
        }
        self.server.endpoint.quiet(&mut self.trace);
        self.client.endpoint.quiet(&mut self.trace);
        crate::pair::both::check_quiet(
            &self.server.endpoint.ledger,
            &self.client.endpoint.ledger,
            self.is_tainted(),
            &self.by_hand,
            &mut self.report,
        );
    }

    /// Both sides have written more than the other wants to read.
    fn is_at_a_standstill(&self) -> bool {
        let stuck = |party: &Party| party.blocked && !party.endpoint.wants_input() && !party.endpoint.is_closed();
        stuck(&self.server) && stuck(&self.client)
    }

    /// The client leaves: it shuts down, or only ends its stream and reads on.
    pub(super) fn close(&mut self) {
        if self.random.chance(50) {
            self.client.endpoint.shut_down(&mut self.trace, false);
        }
        self.to_server.end();
        self.read_at(Side::Server, self.now);
        self.unblock(Side::Client);
        self.follow_up(Side::Client);
    }

    pub(super) fn judge_closed(&mut self) {
        self.server.endpoint.quiet(&mut self.trace);
        self.client.endpoint.quiet(&mut self.trace);
        crate::pair::both::check_closed(
            &self.server.endpoint.ledger,
            &self.client.endpoint.ledger,
            self.is_tainted(),
            &self.by_hand,
            &mut self.report,
        );
    }

    fn is_tainted(&self) -> bool {
        self.to_server.tainted || self.to_client.tainted
    }

    pub(super) fn outcome(mut self) -> Outcome {
        let mut violations = self.report.take();
        violations.append(&mut self.server.endpoint.violations());
        violations.append(&mut self.client.endpoint.violations());
        let statistics = [self.server.endpoint.statistics(), self.client.endpoint.statistics()];
        Outcome {
            violations,
            hash: self.trace.hash(),
            requests: statistics.iter().map(|counted| counted.accepted).sum(),
            cancels: statistics.iter().map(|counted| counted.cancelled + counted.late_cancels).sum(),
            closes: [&self.server.endpoint, &self.client.endpoint]
                .iter()
                .map(|endpoint| u64::from(endpoint.is_closed()))
                .sum(),
            messages: statistics.iter().map(|counted| counted.messages_in).sum(),
            lines: self.trace.lines().to_vec(),
        }
    }
}
