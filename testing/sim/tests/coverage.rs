//! Each world reaches what it is expected to reach: every input that a connection can be handed, by the stage that it is in,
//! and every effect (see `sim::coverage`). What a world may leave unreached is listed here, with the reason.

use std::collections::BTreeSet;

use sim::coverage::Coverage;
use sim::sweep::{Results, Sweep};
use sim::worlds::World::{self, Client, Cores, Http, HttpClient, Shell};

/// Few enough for every run of the tests.
const SEEDS: u64 = 2_500;

const ALL: &[World] = &World::ALL;
/// Worlds in which the connection under test is a server's only.
const SERVERS: &[World] = &[Shell, Http];
const CLIENTS: &[World] = &[Client, HttpClient];

/// Reached in none or in a few of 5,000 seeds. It may be reached or not; all other entries must not be reached.
const RARE: &str = "rare";
const CLOSED: &str = "drivers hand nothing to a closed connection; the fuzz target `connection` does";
const HTTP_CALLS: &str = "only the HTTP client, which carries each call by itself, reports how one ended";
const SESSIONS: &str = "only a session of the HTTP service is ended by a message (DELETE)";
const WELL_FORMED: &str = "the clients of this world send only well-formed messages, and each id once";
const SUPPORTED: &str = "the programs of this world call only what their peer supports";
const DAMAGE: &str = "this world damages bytes of messages; none gets too long, too deep, or wrong in its params alone";
const SERVER_CALLS: &str = "the peer of this world answers a server's calls properly, and they have no timeout";
const OPENED: &str = "a handler runs only after the handshake";
const CLIENT_ONLY: &str = "only a connection of a client has this effect";
const LEAVING: &str = "a client that leaves does so at once (`shut_down_now`), a server with a window (`shut_down`)";
const INPUT_ENDED: &str = "a client has a drain window only after its input has ended";
const SERVICE_LIMIT: &str =
    "the limit of the whole service counts the same executions, and refuses before a session would";
const STOPPED: &str = "an HTTP client that leaves gives up its calls and reads no more responses";
const NO_STREAM: &str = "HTTP has no stream as a whole that could end or fail";
const HELD_UP: &str = "reported only where input is held up by too much output, and before a drain";
const ANNOUNCEMENTS: &str =
    "the clients of this world send no notifications of their own, and their handlers no logs or progress";

/// What these worlds do not reach, and why. A `*` at the end stands for the rest of the name.
const UNREACHED: &[(&str, &[World], &str)] = &[
    (
        "notify_about | *",
        &[Cores, Client, HttpClient],
        "these worlds have no server that is asked for a stream of changes",
    ),
    (
        "notify_about | ready",
        SERVERS,
        "a subscription belongs to 2026-07-28, which has no handshake to make a connection ready",
    ),
    ("notify_about | closed", SERVERS, RARE),
    ("notify_about | draining, *", SERVERS, RARE),
    // Messages.
    ("a batch | *", SERVERS, "the clients of this world send no batches"),
    ("a batch | opening", CLIENTS, RARE),
    ("a batch | draining, *", &[Cores, Client, HttpClient], RARE),
    ("a request | draining, *", &[Http], "the service refuses requests to a session that is ending"),
    ("a notification | draining, handlers are stopped", &[Http], RARE),
    ("a response | draining, handlers are stopped", &[Http], RARE),
    ("a notification | opening", &[Http], "a session exists once its `initialize` was read"),
    ("a response | opening", &[Http], "a session exists once its `initialize` was read"),
    ("an unreadable message | *", &[Http], WELL_FORMED),
    ("a request | opening", &[Client], RARE),
    ("a notification | opening", &[Client], RARE),
    ("a request | draining, handlers are stopped", &[Client], RARE),
    ("a notification | draining, handlers are stopped", &[Client], RARE),
    ("a response | draining, handlers are stopped", &[Client], RARE),
    ("an unreadable message | draining, handlers are stopped", &[Client], RARE),
    ("a request | draining, handlers may answer", &[Client], INPUT_ENDED),
    ("a notification | draining, handlers may answer", &[Client], INPUT_ENDED),
    ("a response | draining, handlers may answer", &[Client], INPUT_ENDED),
    ("an unreadable message | draining, handlers may answer", &[Client], INPUT_ENDED),
    ("an unreadable message | draining, handlers may answer", &[HttpClient], RARE),
    ("a request | opening", &[HttpClient], RARE),
    ("a notification | opening", &[HttpClient], RARE),
    ("an unreadable message | opening", &[HttpClient], RARE),
    ("a request | draining, handlers are stopped", &[HttpClient], STOPPED),
    ("a notification | draining, handlers are stopped", &[HttpClient], STOPPED),
    ("a response | draining, handlers are stopped", &[HttpClient], STOPPED),
    ("an unreadable message | draining, handlers are stopped", &[HttpClient], STOPPED),
    // What the transport reports.
    ("handle_timeout | closed", &[Cores, Shell, Client, HttpClient], CLOSED),
    ("handle_timeout | closed", &[Http], RARE),
    ("handle_timeout | draining, *", CLIENTS, RARE),
    ("handle_end_of_input | *", &[Http, HttpClient], NO_STREAM),
    ("handle_end_of_input | closed", &[Cores], CLOSED),
    ("handle_end_of_input | draining, handlers may answer", &[Client], INPUT_ENDED),
    ("handle_peer_gone | *", &[Http], NO_STREAM),
    ("handle_peer_gone | closed", &[Cores, HttpClient], CLOSED),
    ("handle_peer_gone | ready", &[Cores], RARE),
    ("handle_peer_gone | draining, *", &[Cores], RARE),
    ("handle_peer_gone | draining, *", &[Shell, Client], HELD_UP),
    ("handle_peer_gone | opening", &[Shell], RARE),
    ("handle_peer_gone | opening", &[Client], RARE),
    ("handle_peer_gone | ready", &[Client], RARE),
    ("handle_peer_gone | opening", &[HttpClient], "a session is opened before it can be lost"),
    ("handle_peer_gone | draining, handlers are stopped", &[HttpClient], STOPPED),
    ("handle_peer_ended | *", &[Cores, Shell, Client, HttpClient], SESSIONS),
    ("handle_peer_ended | opening", &[Http], "a session is opened before it can be deleted"),
    ("handle_write_failed | *", &[HttpClient], NO_STREAM),
    ("handle_write_failed | closed", &[Cores, Shell, Client], CLOSED),
    ("handle_write_failed | draining, handlers are stopped", &[Client], RARE),
    ("handle_write_failed | ready", &[Http], "only a single exchange fails to be written, and it has no handshake"),
    ("handle_flushed | closed", &[Cores], CLOSED),
    ("handle_call_sent | closed", ALL, CLOSED),
    ("handle_call_sent | opening", SERVERS, OPENED),
    ("handle_call_sent | draining, handlers are stopped", SERVERS, RARE),
    ("handle_call_sent | draining, handlers are stopped", &[HttpClient], RARE),
    ("handle_call_ended | *", &[Cores, Shell, Http, Client], HTTP_CALLS),
    ("handle_call_ended | closed", &[HttpClient], CLOSED),
    ("handle_call_ended | draining, handlers are stopped", &[HttpClient], RARE),
    ("handle_execution_ended | closed", &[Shell, Http, Client, HttpClient], CLOSED),
    ("handle_execution_ended | closed", &[Cores], RARE),
    ("handle_execution_ended | opening", CLIENTS, RARE),
    // Commands.
    ("shut_down | *", CLIENTS, LEAVING),
    ("shut_down | closed", &[Shell], CLOSED),
    ("shut_down | closed", &[Http], RARE),
    ("shut_down | draining, *", &[Cores, Shell, Http], RARE),
    ("shut_down_now | *", SERVERS, LEAVING),
    ("shut_down_now | draining, *", &[Cores], RARE),
    ("respond | closed", &[Shell, Http, Client, HttpClient], CLOSED),
    ("respond | closed", &[Cores], RARE),
    ("respond | opening", CLIENTS, RARE),
    ("respond | draining, handlers are stopped", CLIENTS, RARE),
    ("call | closed", SERVERS, CLOSED),
    ("call | closed", CLIENTS, RARE),
    ("call | opening", SERVERS, OPENED),
    ("call | draining, handlers are stopped", &[HttpClient], RARE),
    ("cancel_call | closed", SERVERS, CLOSED),
    ("cancel_call | opening", SERVERS, OPENED),
    ("cancel_call | draining, handlers may answer", &[Shell, Client], RARE),
    ("log | *", CLIENTS, ANNOUNCEMENTS),
    ("progress | *", CLIENTS, ANNOUNCEMENTS),
    ("notify_once | *", CLIENTS, ANNOUNCEMENTS),
    ("log | closed", SERVERS, CLOSED),
    ("progress | closed", SERVERS, CLOSED),
    ("log | closed", &[Cores], RARE),
    ("progress | closed", &[Cores], RARE),
    ("progress | draining, handlers are stopped", &[Shell], RARE),
    ("notify_once | closed", &[Shell], CLOSED),
    ("notify_once | opening", &[Http], "a session is notified of changes once it is open"),
    ("notify_once | draining, *", SERVERS, RARE),
    // Effects.
    ("call: cannot be sent", &[Cores, Shell, Http, Client], HTTP_CALLS),
    ("call: lost, *", &[Cores, Shell, Http, Client], HTTP_CALLS),
    ("call: session lost", &[Cores, Shell, Http, Client], HTTP_CALLS),
    ("call: ended by the peer", &[Cores, Shell, Http], "only subscriptions of a client are ended by its server"),
    ("call: refused", &[Http], SERVER_CALLS),
    ("call: timed out, *", SERVERS, SERVER_CALLS),
    ("call: unreadable answer", SERVERS, SERVER_CALLS),
    ("call refused: closed", &[HttpClient], RARE),
    ("call refused: missing capability", &[Shell, Http, Client, HttpClient], SUPPORTED),
    ("call refused: not in the revision", &[Shell, Http, Client, HttpClient], SUPPORTED),
    ("closed: the output failed", &[HttpClient], NO_STREAM),
    ("event: a notification", SERVERS, CLIENT_ONLY),
    ("event: progress of a call", SERVERS, CLIENT_ONLY),
    ("event: a late result of a cancelled call", &[Cores, Shell, Http], "only calls of the real client become tasks"),
    ("event: a late result of a cancelled call", &[HttpClient], RARE),
    ("event: stop a handler, the deadline passed", CLIENTS, "handlers of clients have no deadline in these worlds"),
    ("event: stop a handler, cancelled by the peer", &[HttpClient], RARE),
    ("event: stop a handler, the connection closed", &[HttpClient], RARE),
    (
        "warning: a cancellation with a reason",
        &[Shell, Http, Client, HttpClient],
        "cancellations of this world give no reason",
    ),
    ("warning: late answer of a handler", CLIENTS, RARE),
    ("warning: malformed cancellation", &[Http], WELL_FORMED),
    ("warning: refused", &[Http], WELL_FORMED),
    ("warning: unknown notification", &[Http], WELL_FORMED),
    ("refusal: bad params", &[Shell, Client, HttpClient], DAMAGE),
    ("refusal: too deep", &[Shell, Client, HttpClient], DAMAGE),
    ("refusal: too long", &[Shell, Client, HttpClient], DAMAGE),
    ("refusal: bad params", &[Http], WELL_FORMED),
    ("refusal: duplicate id", &[Http], WELL_FORMED),
    ("refusal: not JSON", &[Http], WELL_FORMED),
    ("refusal: not UTF-8", &[Http], WELL_FORMED),
    ("refusal: not a message", &[Http], WELL_FORMED),
    ("refusal: too *", &[Http], WELL_FORMED),
    ("refusal: error with the id of the message", &[Http], WELL_FORMED),
    ("refusal: error without an id", &[Http], WELL_FORMED),
    ("refusal: duplicate id", CLIENTS, "the servers of these worlds use each id once"),
    ("refusal: error with the id of the message", CLIENTS, RARE),
    ("refusal: error without an id", CLIENTS, RARE),
    ("refusal: not admitted", &[HttpClient], RARE),
    ("refusal: not admitted", &[Http], SERVICE_LIMIT),
    ("request: cancelled by the peer", &[HttpClient], RARE),
];

#[test]
fn each_world_reaches_what_it_is_expected_to_reach() {
    let mut wrong = Vec::new();
    let mut stale: BTreeSet<&(&str, &[World], &str)> = UNREACHED.iter().collect();
    for world in World::ALL {
        let sweep = Sweep { world, start: 0, seeds: SEEDS, plain: false };
        let coverage = sweep.run(2, Results::default(), |_| {}).coverage;
        assert!(coverage.reached().1 > 150, "{:?}", coverage.reached());
        wrong.extend(surprises(world, &coverage));
        stale.retain(|entry| !entry.1.contains(&world) || !coverage.core().any(|(name, _)| matches(entry.0, name)));
    }
    assert!(wrong.is_empty(), "the table of this test and the worlds differ: {wrong:#?}");
    assert!(stale.is_empty(), "entries without an input or effect of that name: {stale:#?}");
}

fn surprises(world: World, coverage: &Coverage) -> Vec<String> {
    let reasons = |name: &str| -> Vec<&str> {
        let of_world = UNREACHED.iter().filter(|(what, worlds, _)| worlds.contains(&world) && matches(what, name));
        of_world.map(|(_, _, why)| *why).collect()
    };
    let surprise = |(name, count): (&str, u64)| match (&reasons(name)[..], count) {
        ([], 0) => Some(format!("{world} no longer reaches: {name}")),
        ([] | [RARE], _) | ([_], 0) => None,
        ([why], _) => Some(format!("{world} reaches: {name}; listed as unreachable: {why}")),
        (several, _) => Some(format!("{world} has {} entries for: {name}", several.len())),
    };
    coverage.core().filter_map(surprise).collect()
}

fn matches(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |prefix| name.starts_with(prefix))
}
