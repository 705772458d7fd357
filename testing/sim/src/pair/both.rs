//! Checks that need both ends: the outcome of a call at one end is what the other end saw of it.
//!
//! Bytes that were changed on their way, and ids that were also used by hand, make this moot; then nothing is reported.

use std::collections::BTreeSet;

use crate::checkers::Report;
use crate::law::Law;
use crate::observation::ledger::{CallFacts, Ledger};
use crate::observation::message::Id;

/// The script is over and nothing is on its way: a call that still waits, waits for ever (L2).
pub(super) fn check_quiet(
    server: &Ledger,
    client: &Ledger,
    tainted: bool,
    by_hand: &BTreeSet<Id>,
    report: &mut Report,
) {
    let live = |side: &Ledger| side.ending.is_none() && !side.closed && !side.output_failed && !side.panicked;
    if tainted || !live(server) || !live(client) {
        return;
    }
    for call in calls(client, by_hand).chain(calls(server, by_hand)).filter(|call| call.is_open() && call.id.is_some())
    {
        report.broken(
            Law::Answer,
            format!("call {}: expected an answer, observed an open call with nothing in transit", call.called.call),
        );
    }
}

/// Both have closed: what they say of each call has to agree (L10), and both have to have closed (L5).
pub(super) fn check_closed(
    server: &Ledger,
    client: &Ledger,
    tainted: bool,
    by_hand: &BTreeSet<Id>,
    report: &mut Report,
) {
    for (name, side) in [("server", server), ("client", client)] {
        if !side.closed && !side.panicked {
            report.broken(Law::Closing, format!("{name}: expected it to close after its peer, observed it open"));
        }
    }
    if tainted {
        return;
    }
    for (caller, called) in [(client, server), (server, client)] {
        for call in calls(caller, by_hand) {
            let seen = call.id.as_ref().is_some_and(|id| called.requests.iter().any(|request| request.id == *id));
            if seen && !call.written {
                report.broken(
                    Law::Outcome,
                    format!(
                        "call {}: expected only written calls at the peer, observed one that was not written",
                        call.called.call
                    ),
                );
            }
        }
    }
}

fn calls<'a>(side: &'a Ledger, by_hand: &'a BTreeSet<Id>) -> impl Iterator<Item = &'a CallFacts> {
    side.calls.iter().filter(|call| call.id.as_ref().is_none_or(|id| !by_hand.contains(id)))
}
