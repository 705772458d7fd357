//! Together the worlds reach everything that a connection can be handed in each of its stages, and everything that can come of
//! it. What they do not reach is listed here, with the reason.

use std::collections::BTreeSet;

use sim::coverage::Coverage;
use sim::sweep::{Results, Sweep};
use sim::worlds::World;

/// Few enough for every run of the tests.
const SEEDS: u64 = 2_500;

/// Never reached: what it is, and why.
const UNREACHED: &[(&str, &str)] = &[
    ("a request | closed", CLOSED),
    ("a notification | closed", CLOSED),
    ("an answer | closed", CLOSED),
    ("a batch | closed", CLOSED),
    ("an unreadable message | closed", CLOSED),
    ("handle_timeout | closed", RARE),
    ("handle_call_sent | closed", CLOSED),
    ("handle_call_ended | closed", CLOSED),
    ("handle_execution_ended | closed", RARE),
    ("handle_peer_ended | closed", RARE),
    ("respond | closed", CLOSED),
    ("progress | closed", CLOSED),
    ("log | closed", CLOSED),
    ("notify_about | closed", RARE),
    (
        "notify_about | ready",
        "a subscription belongs to 2026-07-28, which has no handshake that makes a connection ready",
    ),
    ("notify_about | draining, handlers may answer", RARE),
    ("notify_about | draining, handlers are stopped", RARE),
    ("handle_call_ended | draining, handlers are stopped", "a client that leaves gives its calls up at once"),
    ("handle_peer_ended | opening", "a session is opened before it can be deleted"),
    ("handle_peer_gone | draining, handlers are stopped", "a driver that sees the output fail looks no further"),
    ("a batch | draining, handlers may answer", RARE),
    ("a batch | draining, handlers are stopped", RARE),
    ("shut_down | draining, handlers are stopped", RARE),
    ("shut_down | draining, handlers may answer", RARE),
    ("handle_peer_gone | opening", RARE),
    ("handle_peer_ended | draining, handlers may answer", RARE),
    ("handle_peer_ended | draining, handlers are stopped", RARE),
];

const CLOSED: &str = "drivers hand nothing to a connection that is closed; the fuzz target `connection` does";
const RARE: &str = "reached in some ten thousand seeds, not in so few";

#[test]
fn what_a_connection_can_be_handed_is_reached_or_listed() {
    let mut all = Coverage::default();
    for world in World::ALL {
        let sweep = Sweep { world, start: 0, seeds: SEEDS, plain: false };
        all.add(sweep.run(2, Results::default(), |_| {}).coverage);
    }
    let listed: BTreeSet<&str> = UNREACHED.iter().map(|(what, _)| *what).collect();
    let missed = all.missed().filter_map(|name| name.strip_prefix("core / "));
    let unlisted: Vec<&str> = missed.filter(|name| !listed.contains(name)).collect();
    assert!(unlisted.is_empty(), "no world reaches these any more: {unlisted:#?}");
    let impossible = UNREACHED.iter().filter(|(_, why)| *why != RARE);
    let reached: Vec<&str> = impossible
        .map(|(what, _)| *what)
        .filter(|what| all.0.get(&format!("core / {what}")).is_some_and(|count| *count > 0))
        .collect();
    assert!(reached.is_empty(), "these are reached, and listed as if they could not be: {reached:#?}");
}
