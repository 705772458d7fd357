//! The laws, as they look from outside of a real client.
//!
//! Nothing here knows the client: it sees what the program did and the results it got, what the server read and wrote, and what
//! is left in the executor.

mod outcome;
mod questions;

pub(super) mod cache;
pub(super) mod changes;
pub(super) mod tasks;

use std::time::Duration;

use steadfast::Outcome;
use steadfast_proto::Moment;

use super::TransportKind;
use super::journal::{CallResult, Facts, Fault, Kind, RequestFacts, ResponseKind, TransportFacts};
use crate::executor::Executor;
use crate::law::Law;
use crate::observation::json::Json;
use crate::observation::message::{Id, id_text};
pub(super) use outcome::at_end;
use outcome::{first_answer, first_answer_was_in_time, not_sent_in_part, over_are_taken_back, overdue};
use questions::questions_are_answered;

/// What may pass between a cause and its effect: time goes on a little while things run.
const SLACK: Duration = Duration::from_millis(100);

/// How long the client may take to leave: the drain and a goodbye, over a stream and over HTTP.
const LEAVING: Duration = Duration::from_secs(2);
pub(super) const LEAVING_HTTP: Duration = Duration::from_secs(4);

/// How long a closed client lives on to cancel its tasks.
const CANCELLING: Duration = Duration::from_secs(10);

/// How long a request over HTTP may take to arrive before its cancellation is sent.
const ARRIVING: Duration = Duration::from_secs(1);

/// How often an unauthorized request is retried.
const ASKED_AGAIN: usize = 4;

/// Longer than the client's handlers take.
const HANDLING: Duration = Duration::from_secs(3);

/// How a connection began: with a server that does what it should, it did (L2).
pub(super) fn at_opening(facts: &mut Facts, must: bool) {
    if let Some(Err(kind)) = facts.opened
        && must
        && facts.closing.is_none()
    {
        facts.broken(Law::Answer, format!("expected the connection to open, observed {kind:?}"));
    }
}

/// Progress reaches the call that it is for (L8), in its order (L9).
pub(super) fn at_progress(facts: &mut Facts, tag: u64, value: f64) {
    // As text, in which whole numbers of this size are exact.
    if !facts.reported.contains(&(tag, value.to_string())) {
        return facts
            .broken(Law::Identity, format!("call {tag}: expected only progress of its own request, observed {value}"));
    }
    let in_order = facts.transport_kind == TransportKind::Stream;
    let Some(call) = facts.calls.get_mut(&tag) else { return };
    let before = std::mem::replace(&mut call.progressed, value);
    // Over HTTP each round has a stream of its own.
    if value <= before && in_order {
        facts.broken(Law::Order, format!("call {tag}: expected progress above {before}, observed {value}"));
    }
}

/// A request: its id is new (L8).
pub(super) fn at_request(facts: &mut Facts, now: Moment, link: usize, raw: Id, method: &str, params: &Json<'_>) {
    let known = facts.keys.get(&(link, raw.clone())).cloned();
    if let Some((id, known)) = known.and_then(|id| Some((id.clone(), facts.requests.get_mut(&id)?))) {
        // An unauthorized request has not been served.
        let again = matches!(known.faults.last(), Some(Fault::Status(401 | 403))) && known.again < ASKED_AGAIN;
        known.again += 1;
        if !again {
            facts.broken(Law::Identity, format!("expected a new request id, observed {id} again"));
        }
        return;
    }
    let id = Id::from(format!("{link}:{raw}:{}", facts.requests.len()));
    facts.keys.insert((link, raw), id.clone());
    let (kind, tag) = purpose(facts, link, &id, method, params);
    if kind != Kind::Opening {
        facts.cache.newest = facts.cache.newest.max(link);
    }
    if let Some(call) = tag.and_then(|tag| facts.calls.get_mut(&tag)) {
        call.ids.push(id.clone());
        if matches!(call.ended, Some((_, CallResult::Failed(_, Outcome::NotSent)))) {
            facts.broken(
                Law::Outcome,
                format!(
                    "request {id}: expected none for a call that was reported as not sent, observed it on the wire"
                ),
            );
        }
    }
    let cancels_task = method == "tasks/cancel";
    let takes_back = cancels_task || method == "resources/unsubscribe";
    let request = RequestFacts { kind, link, cancels_task, takes_back, written: now, ..RequestFacts::default() };
    facts.requests.insert(id, request);
    // Some are made beside what the program asks for.
    facts.peak = facts.peak.max(facts.waiting(now));
}

/// What a request is for, and the call that waits for its answer.
fn purpose(facts: &mut Facts, link: usize, id: &Id, method: &str, params: &Json<'_>) -> (Kind, Option<u64>) {
    match method {
        "initialize" | "server/discover" => {
            facts.initializes = method == "initialize";
            (Kind::Opening, None)
        }
        "ping" => (Kind::Ping, None),
        "tools/call" => {
            let tag = params["arguments"]["tag"].as_u64();
            round_is_right(facts, tag, params);
            (Kind::Call, tag)
        }
        "tasks/get" | "tasks/update" | "tasks/cancel" => (Kind::Task, tasks::at_task_request(facts, method, params)),
        "subscriptions/listen" => {
            let uris = params["notifications"]["resourceSubscriptions"].as_array();
            if let Some(number) = uris.into_iter().flatten().find_map(|uri| changes::whose(uri.as_str()?)) {
                changes::at_listen(facts, link, id.clone(), number);
            }
            (Kind::Listen, None)
        }
        "resources/subscribe" | "resources/unsubscribe" => {
            let number = params["uri"].as_str().and_then(changes::whose);
            if let Some(number) = number.filter(|_| method == "resources/subscribe") {
                changes::at_listen(facts, link, id.clone(), number);
            }
            (Kind::Subscription, None)
        }
        _ => (Kind::Other, None),
    }
}

/// L8: a later round returns the state that the server sent for this call. That may not be its last one, which may be lost.
fn round_is_right(facts: &mut Facts, tag: Option<u64>, params: &Json<'_>) {
    let Some(said) = params["requestState"].as_str() else { return };
    facts.counts.rounds += 1;
    let Some(call) = tag.and_then(|tag| facts.calls.get(&tag)) else { return };
    let mut states = call.ids.iter().filter_map(|id| facts.requests.get(id)?.state.as_deref());
    if states.all(|state| state != said) {
        facts.broken(
            Law::Identity,
            format!("call {tag:?}: expected a requestState that the server sent, observed {said:?}"),
        );
    }
}

/// A cancellation names a request that was written before it (L9), and never the opening of the connection.
pub(super) fn at_cancellation(facts: &mut Facts, link: usize, params: &Json<'_>) {
    facts.counts.cancellations += 1;
    let raw = id_text(&params["requestId"]);
    let id = raw.and_then(|raw| facts.keys.get(&(link, raw)).cloned());
    // Over HTTP each message is a request of its own: one that was dropped before it was sent is cancelled all the same.
    if facts.transport_kind == TransportKind::Http && id.is_none() {
        return;
    }
    match id.as_ref().and_then(|id| facts.requests.get_mut(id)) {
        Some(request) if request.kind != Kind::Opening => {
            let again = std::mem::replace(&mut request.cancelled, true);
            if again {
                facts
                    .broken(Law::OneEnding, format!("{id:?}: expected one notifications/cancelled, observed a second"));
            }
        }
        Some(_) => {
            facts.broken(Law::Silence, "expected no notifications/cancelled for the opening request, observed one");
        }
        None => facts.broken(
            Law::Order,
            format!("{id:?}: expected notifications/cancelled only for sent requests, observed one for an unknown id"),
        ),
    }
}

/// A response of the client: to a request of the server (L8), once (L1), and none to a server that speaks 2026-07-28.
pub(super) fn at_answer(facts: &mut Facts, id: &Id) {
    // A client that got no answer to `server/discover` in time and has sent `initialize` does not know the revision: an answer to
    // `server/discover` that comes then is late.
    let is_known = facts.modern && !facts.initializes;
    if is_known && !facts.questions.get(id).is_some_and(|question| question.early) {
        return facts.broken(
            Law::Silence,
            format!("expected no response to a request of the server in 2026-07-28, observed one to {id}"),
        );
    }
    match facts.questions.get_mut(id) {
        None => facts
            .broken(Law::Identity, format!("expected responses only to requests of the server, observed one to {id}")),
        Some(question) => {
            question.answers += 1;
            if question.answers > 1 {
                facts.broken(Law::OneEnding, format!("{id}: expected one response, observed a second"));
            } else if question.silenced {
                facts.broken(
                    Law::Silence,
                    format!("{id}: expected silence after its cancellation, observed a response"),
                );
            }
        }
    }
}

/// Nothing can run: what takes no time has happened.
pub(super) fn at_idle(facts: &mut Facts, transport: &dyn TransportFacts, now: Moment) {
    for request in facts.requests.values_mut().filter(|request| !request.finished) {
        request.finished =
            request.answers.iter().any(|(receipt, _)| receipt.is_some_and(|receipt| transport.was_read(receipt)));
    }
    facts.peak = facts.waiting(now);
    let most = if facts.transport_kind == TransportKind::Http { LEAVING_HTTP } else { LEAVING };
    // A client that is closed while tasks are to be cancelled waits first until the server has heard of that.
    let reading = if facts.cancels_at_close { tasks::CANCELLATIONS_READ } else { Duration::ZERO };
    let too_long = facts.closing.is_some_and(|closing| now > closing + most + reading + SLACK);
    let open: Vec<u64> = facts.calls.iter().filter(|(_, call)| call.ended.is_none()).map(|(tag, _)| *tag).collect();
    for tag in open {
        let Some(call) = facts.calls.get(&tag) else { continue };
        if let Some(late) = overdue(facts, now, tag) {
            return facts.broken(Law::Answer, late);
        }
        let (said, _) = first_answer(facts, transport, call);
        let again = facts.returns && (call.task.is_some() || facts.plans.get(&tag).is_some_and(|plan| plan.idempotent));
        if said.is_some_and(ResponseKind::decides) && (!again || first_answer_was_in_time(facts, transport, call)) {
            return facts.broken(
                Law::Answer,
                format!("call {tag}: expected an end after its response was read ({said:?}), observed an open call"),
            );
        }
        if call.cancelled {
            return facts.broken(
                Law::Answer,
                format!("call {tag}: expected an end after its cancellation, observed an open call"),
            );
        }
        tasks::note_followed(facts, transport, tag);
        // One that has been asked back waits for the program, not for the server.
        let patient = said == Some(ResponseKind::AskBack) && facts.shut.is_none_or(|shut| now <= shut + most + SLACK);
        if (too_long || (transport.is_read_to_end() && !facts.returns)) && !patient {
            return facts.broken(
                Law::Closing,
                format!("call {tag}: expected an end with the connection, observed an open call"),
            );
        }
    }
    let over = too_long || (transport.is_read_to_end() && !facts.returns);
    changes::at_idle(facts, transport, now, too_long);
    cache::at_idle(facts, now, over);
    if let Some((tag, _)) = facts.calls.iter().find(|(_, call)| call.hears && call.ended.is_some()) {
        let what = format!("call {tag}: expected its progress stream to end with it, observed an open stream");
        return facts.broken(Law::Closing, what);
    }
    let asked = facts.calls.values().any(|call| call.ended.is_none());
    // Over HTTP there is one fetch for as long as there is a client; no request may be in it.
    let over = if facts.transport_kind == TransportKind::Http { facts.requesting == 0 } else { transport.is_dropped() };
    if too_long && !asked && !over {
        return facts.broken(Law::Closing, "expected the connection to close within its limit, observed it open");
    }
    let cancels = if tasks::may_be_cancelling(facts, transport, now) { CANCELLING } else { Duration::ZERO };
    if facts.left.is_some_and(|left| now > left + most + cancels + SLACK) && !transport.is_dropped() {
        return facts
            .broken(Law::Closing, "expected the connection to close after the client was dropped, observed it open");
    }
    if facts.closing.is_none() && facts.left.is_none() && !facts.trouble && transport.is_quiet() {
        over_are_taken_back(facts, transport, now);
        tasks::unwanted_are_cancelled(facts, transport, now);
        tasks::late_are_cancelled(facts, transport, now);
        changes::given_up_are_taken_back(facts);
        changes::subscriptions_are_right(facts, transport);
        questions_are_answered(facts, transport, now);
    }
}

/// Nothing will ever happen again.
pub(super) fn at_last(facts: &mut Facts, transport: &dyn TransportFacts, executor: &Executor) {
    if let Some(panic) = executor.escaped() {
        return facts.broken(Law::Isolation, format!("expected no panic from the client, observed {panic}"));
    }
    if let Some((tag, _)) = facts.calls.iter().find(|(_, call)| call.ended.is_none()) {
        let what = format!("call {tag}: expected an end, observed an open call at the end of the run");
        return facts.broken(Law::Answer, what);
    }
    if let Some((number, _)) = facts.listeners.iter().find(|(_, listener)| listener.ended.is_none()) {
        let what = format!("listener {number}: expected an end, observed it open at the end of the run");
        return facts.broken(Law::Answer, what);
    }
    if let (tasks, jobs, timers) = executor.left()
        && tasks + jobs + timers > 0
    {
        return facts.broken(
            Law::Closing,
            format!(
                "expected nothing left at the end of the run, observed {tasks} tasks, {jobs} jobs and {timers} timers"
            ),
        );
    }
    if !transport.is_dropped() {
        return facts
            .broken(Law::Closing, "expected the transport to be dropped, observed it alive at the end of the run");
    }
    not_sent_in_part(facts);
}
