//! Calls that became tasks: each input request of a task is answered once, and a task without a waiting call is cancelled.

use std::collections::BTreeSet;
use std::time::Duration;

use steadfast::ErrorKind;
use steadfast_proto::Moment;

use super::{CANCELLING, SLACK, first_answer};
use crate::client::TransportKind;
use crate::client::journal::{CallResult, Facts, RequestFacts, ResponseKind, TransportFacts};
use crate::law::Law;
use crate::observation::json::Json;
use crate::observation::message::Id;

/// How long a client waits for the response to a dropped call.
const DROPPED_CALL_WAIT: Duration = Duration::from_secs(60);

/// How long a client that is closed waits until its server has read the cancellations of its tasks.
pub(super) const CANCELLATIONS_READ: Duration = Duration::from_secs(2);

/// A task of the server's.
#[derive(Default)]
pub(in crate::client) struct TaskFacts {
    tag: u64,
    /// The keys of its input requests, and of the responses to them.
    asked: BTreeSet<String>,
    answered: BTreeSet<String>,
    cancelled: bool,
}

/// The server has made a call a task, in its answer to that request.
pub(in crate::client) fn at_task(facts: &mut Facts, request: &Id, tag: u64, task: &str) {
    facts.tasks.insert(task.to_owned(), TaskFacts { tag, ..TaskFacts::default() });
    if let Some(call) = facts.calls.get_mut(&tag) {
        call.tasks.push((request.clone(), task.to_owned()));
    }
}

/// The task asks for something under this key.
pub(in crate::client) fn at_asking(facts: &mut Facts, task: &str, key: &str) {
    if let Some(task) = facts.tasks.get_mut(task) {
        task.asked.insert(key.to_owned());
    }
}

/// A request about a task: of one that there is (L8), and nothing more about one that was cancelled (L3). Returns the call
/// that waits for its answer.
pub(super) fn at_task_request(facts: &mut Facts, method: &str, params: &Json<'_>) -> Option<u64> {
    let name = params["taskId"].as_str().unwrap_or_default();
    let (kind, link) = (facts.transport_kind, facts.trouble);
    let Some(task) = facts.tasks.get_mut(name) else {
        facts.broken(Law::Identity, format!("{method}: expected a known task, observed {name:?}"));
        return None;
    };
    // Over HTTP each message is a request of its own, and one that was lost may be sent again.
    let in_order = kind == TransportKind::Stream && !link;
    if task.cancelled && in_order {
        facts.broken(
            Law::Silence,
            format!("{method}: expected no request for a cancelled task, observed one for {name}"),
        );
        return None;
    }
    if method == "tasks/cancel" {
        task.cancelled = true;
        return None;
    }
    Some(task.tag)
}

/// The server got the input of a task: none that it did not request (L8), and each once (L1).
pub(in crate::client) fn at_update(facts: &mut Facts, params: &Json<'_>) {
    let name = params["taskId"].as_str().unwrap_or_default();
    let Some(task) = facts.tasks.get_mut(name) else { return };
    let keys: Vec<String> =
        params["inputResponses"].as_object().into_iter().flatten().map(|(key, _)| key.to_string()).collect();
    for key in keys {
        if !task.asked.contains(&key) {
            return facts.broken(
                Law::Identity,
                format!("task {name}: expected only input that it requested, observed {key:?}"),
            );
        }
        if !task.answered.insert(key.clone()) {
            return facts
                .broken(Law::OneEnding, format!("task {name}: expected the input {key:?} once, observed it again"));
        }
    }
}

/// Nothing can run: a client that has read that its call is a task has taken note of it.
pub(super) fn note_followed(facts: &mut Facts, transport: &dyn TransportFacts, tag: u64) {
    let Some(call) = facts.calls.get(&tag) else { return };
    if first_answer(facts, transport, call).0 != Some(ResponseKind::Task) {
        return;
    }
    let task = call.ids.last().and_then(|last| call.tasks.iter().find(|(request, _)| request == last));
    let task = task.map(|(_, task)| task.clone());
    if let Some(call) = facts.calls.get_mut(&tag) {
        call.task = task;
    }
}

/// A call has ended: its task is to be cancelled, unless it is known to be over.
pub(super) fn at_end(facts: &mut Facts, tag: u64, said: Option<ResponseKind>, end: &CallResult) {
    let over = said.is_some_and(|said| said.decides() && said != ResponseKind::Unreadable);
    if let Some(call) = facts.calls.get_mut(&tag) {
        call.unwanted = call.task.clone().filter(|_| !over && !matches!(end, CallResult::Done(_)));
    }
}

/// Whether as many cancellations as may be under way at once wait for an answer: the next one waits for its turn.
fn is_turn_taken(facts: &Facts, transport: &dyn TransportFacts, now: Moment) -> bool {
    open_cancellations(facts, transport, now) >= facts.most_calls
}

/// How many cancellations wait for an answer.
fn open_cancellations(facts: &Facts, transport: &dyn TransportFacts, now: Moment) -> usize {
    let answered = |request: &RequestFacts| {
        let mut receipts = request.answers.iter().filter_map(|(receipt, _)| *receipt);
        receipts.any(|receipt| transport.was_read(receipt))
    };
    let waits = |request: &&RequestFacts| {
        request.cancels_task && !answered(request) && now <= request.written + CANCELLING + SLACK
    };
    facts.requests.values().filter(waits).count()
}

/// L5: a task that is created after its call was dropped is cancelled. Over HTTP the client does not learn of it.
pub(super) fn late_are_cancelled(facts: &mut Facts, transport: &dyn TransportFacts, now: Moment) {
    if facts.transport_kind == TransportKind::Http || is_turn_taken(facts, transport, now) {
        return;
    }
    let late = facts.calls.iter().find(|(_, call)| {
        let given_up = match call.ended {
            Some((_, CallResult::Done(_) | CallResult::Failed(ErrorKind::Decode, _))) | None => false,
            Some((when, _)) => now < when + DROPPED_CALL_WAIT,
        };
        let task = call.ids.last().and_then(|last| call.tasks.iter().find(|(request, _)| request == last));
        let task = task.and_then(|(_, task)| facts.tasks.get(task));
        given_up
            && first_answer(facts, transport, call).0 == Some(ResponseKind::Task)
            && task.is_some_and(|task| !task.cancelled)
    });
    if let Some((tag, _)) = late {
        facts.broken(
            Law::Closing,
            format!("call {tag}: expected tasks/cancel for the task of a dropped call, observed none"),
        );
    }
}

/// The program closes the client: the tasks that it follows go with it.
pub(in crate::client) fn at_close(facts: &mut Facts, transport: &dyn TransportFacts, now: Moment) {
    let open = facts.calls.values().filter(|call| call.ended.is_none());
    let followed: Vec<String> = open
        .filter(|call| !first_answer(facts, transport, call).0.is_some_and(ResponseKind::decides))
        .filter_map(|call| call.task.clone())
        .collect();
    facts.cancels_at_close = !followed.is_empty() || may_be_cancelling(facts, transport, now);
    if facts.trouble {
        return;
    }
    // If they are more than may be cancelled at once, the last of them depend on how soon the server answers.
    facts.may_go_on = (followed.len() + open_cancellations(facts, transport, now)).saturating_sub(facts.most_calls);
    facts.left_behind = followed;
}

/// L5: it is closed, and they are cancelled; unless the server has read nothing for as long as the client waits for that.
pub(in crate::client) fn at_closed(facts: &mut Facts) {
    if facts.shut.is_some_and(|shut| facts.deaf_until >= shut + CANCELLATIONS_READ) {
        return;
    }
    let goes_on = |task: &&String| facts.tasks.get(*task).is_some_and(|task| !task.cancelled);
    let mut go_on = facts.left_behind.iter().filter(goes_on);
    if let Some(task) = go_on.nth(facts.may_go_on).cloned().filter(|_| !facts.trouble) {
        facts.broken(
            Law::Closing,
            format!("expected tasks/cancel for task {task} at the close of the client, observed none"),
        );
    }
}

/// L5: a task without a waiting call is cancelled.
pub(super) fn unwanted_are_cancelled(facts: &mut Facts, transport: &dyn TransportFacts, now: Moment) {
    if is_turn_taken(facts, transport, now) {
        return;
    }
    let unwanted = facts.calls.iter().find(|(_, call)| {
        let task = call.unwanted.as_ref().and_then(|task| facts.tasks.get(task));
        task.is_some_and(|task| !task.cancelled)
    });
    if let Some((tag, call)) = unwanted {
        let what = format!(
            "call {tag}: expected tasks/cancel for its task {:?} after it was dropped, observed none",
            call.unwanted
        );
        facts.broken(Law::Closing, what);
    }
}

/// Whether a cancellation of a task may be in progress: its call has ended without its result, and the task is not known to
/// be over. The server may not have been reached yet.
pub(super) fn may_be_cancelling(facts: &Facts, transport: &dyn TransportFacts, now: Moment) -> bool {
    let given_up = |task: &TaskFacts| {
        let call = facts.calls.get(&task.tag);
        call.is_some_and(|call| match &call.ended {
            Some((_, end)) if !matches!(end, CallResult::Done(_)) => call.unwanted.is_some() || call.task.is_none(),
            _ => false,
        })
    };
    open_cancellations(facts, transport, now) > 0 || facts.tasks.values().any(|task| !task.cancelled && given_up(task))
}

/// How many tasks were cancelled.
pub(in crate::client) fn cancelled(facts: &Facts) -> usize {
    facts.tasks.values().filter(|task| task.cancelled).count()
}
