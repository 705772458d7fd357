//! The outcome of a call: true, in time, and cancelled if it was dropped.

use std::time::Duration;

use steadfast::{ErrorKind, Outcome};
use steadfast_proto::Moment;

use super::{ARRIVING, LEAVING, LEAVING_HTTP, SLACK};
use crate::client::TransportKind;
use crate::client::journal::{CallFacts, CallResult, Facts, Fault, ResponseKind, TransportFacts};
use crate::client::script::Call;
use crate::executor::line_buffer::LineBuffer;
use crate::law::Law;

/// The first answer to the last round of a call, if the client has read it.
pub(super) fn first_answer<'a>(
    facts: &'a Facts,
    transport: &dyn TransportFacts,
    call: &CallFacts,
) -> (Option<ResponseKind>, &'a [Fault]) {
    let Some(request) = call.ids.last().and_then(|id| facts.requests.get(id)) else { return (None, &[]) };
    let read =
        |(receipt, _): &&(Option<usize>, ResponseKind)| receipt.is_some_and(|receipt| transport.was_read(receipt));
    (request.answers.iter().find(read).map(|(_, said)| *said), &request.faults)
}

/// Whether that was read before the client could know that its connection is lost: calls end with the connection, and one that
/// may be made again waits for another while the rest of the first is still read.
pub(super) fn first_answer_was_in_time(facts: &Facts, transport: &dyn TransportFacts, call: &CallFacts) -> bool {
    let request = call.ids.last().and_then(|id| facts.requests.get(id));
    if request.is_some_and(|request| facts.is_given_up(request.link)) {
        return false;
    }
    let mut receipts = request.into_iter().flat_map(|request| &request.answers).filter_map(|(receipt, _)| *receipt);
    receipts.find(|receipt| transport.was_read(*receipt)).is_some_and(|receipt| transport.was_read_in_time(receipt))
}

/// A call has ended: with its true outcome (L10), and not before its time.
pub(in crate::client) fn at_end(
    facts: &mut Facts,
    transport: &dyn TransportFacts,
    now: Moment,
    tag: u64,
    end: &CallResult,
) {
    let (Some(call), Some(plan)) = (facts.calls.get(&tag), facts.plans.get(&tag)) else { return };
    let (said, faults) = first_answer(facts, transport, call);
    let decided = said.is_some_and(ResponseKind::decides);
    let answered = call.ids.last().and_then(|id| facts.requests.get(id)).is_some_and(|last| !last.answers.is_empty());
    let lied = match end {
        CallResult::Done(text) => !said.is_some_and(ResponseKind::is_result) || *text != format!("tag:{tag};"),
        CallResult::Failed(kind, _) => match kind {
            ErrorKind::Refused => !refused(said, faults),
            // Who dies in the middle of a word has torn it.
            ErrorKind::Decode => {
                !(matches!(said, Some(ResponseKind::Unreadable | ResponseKind::Torn | ResponseKind::TaskEmpty))
                    || facts.trouble && answered)
            }
            ErrorKind::TimedOut => now < call.began + plan.timeout.min(plan.total),
            ErrorKind::Closed => facts.closing.is_none() && facts.left.is_none() && !facts.trouble,
            // A call that may be made again waits for another connection, which may not be had, while the rest of the first is still
            // read: an answer in that rest ends it no more.
            ErrorKind::Transport => {
                decided && first_answer_was_in_time(facts, transport, call)
                    || (faults.is_empty() && facts.closing.is_none() && !facts.trouble)
            }
            // A server that redirects the same request has not started it, and no request is sent to the new place.
            ErrorKind::Unsendable => !faults.iter().any(|fault| matches!(fault, Fault::Status(307 | 308))),
            ErrorKind::Cancelled => said != Some(ResponseKind::TaskCancelled) && !call.cancelled,
            ErrorKind::Unanswered => said != Some(ResponseKind::AskBack),
            // One that goes on, or is made again on another connection, may be refused long after it began.
            ErrorKind::Limit => !call.at_limit && facts.peak <= facts.most_calls,
            _ => true,
        },
        CallResult::Dropped => false,
    };
    if lied {
        let what = format!(
            "call {tag}: expected a result that agrees with the response {said:?} and the faults {faults:?}, observed {end:?}"
        );
        return facts.broken(Law::Outcome, what);
    }
    if let CallResult::Failed(_, Outcome::NotSent) = end {
        let (seen, executions) =
            (!call.ids.is_empty() && facts.transport_kind == TransportKind::Stream, call.executions);
        if seen || executions > 0 {
            facts.broken(
                Law::Outcome,
                format!("call {tag}: expected no request on the server for an outcome of NotSent, observed one"),
            );
        }
    }
    super::tasks::at_end(facts, tag, said, end);
    let most = if facts.transport_kind == TransportKind::Http { LEAVING_HTTP } else { LEAVING };
    if facts.shut.is_some_and(|shut| now > shut + most + SLACK) {
        return facts.broken(
            Law::Closing,
            format!("call {tag}: expected an end with the close of the client, observed it long after"),
        );
    }
    if let Some(late) = overdue(facts, now, tag) {
        facts.broken(Law::Answer, late);
    }
}

fn refused(said: Option<ResponseKind>, faults: &[Fault]) -> bool {
    let status = faults.iter().any(|fault| matches!(fault, Fault::Status(400..500)));
    matches!(said, Some(ResponseKind::Error | ResponseKind::TaskFailed)) || status
}

/// Whether a call lasts, or has lasted, for longer than it may.
pub(super) fn overdue(facts: &Facts, now: Moment, tag: u64) -> Option<String> {
    let (call, plan) = (facts.calls.get(&tag)?, facts.plans.get(&tag)?);
    let took = now.since(call.began);
    let most = deadline(call, plan, facts.returns);
    (took > most + SLACK).then(|| format!("call {tag} takes {took:?}, and may take {most:?}"))
}

fn deadline(call: &CallFacts, plan: &Call, returns: bool) -> Duration {
    // One that is made again has the time of each.
    if call.prolonged || returns { plan.total } else { plan.timeout.min(plan.total) }
}
/// L5: a call that was dropped or timed out is cancelled, unless its response was there. In a session that comes after the
/// request itself, which has a second to arrive (L9) from when it is sent: that may be after the program dropped the call.
pub(super) fn over_are_taken_back(facts: &mut Facts, transport: &dyn TransportFacts, now: Moment) {
    let left = facts.calls.iter().find(|(_, call)| {
        let over = matches!(call.ended, Some((_, CallResult::Dropped | CallResult::Failed(ErrorKind::TimedOut, _))));
        let Some(request) = call.ids.last().and_then(|id| facts.requests.get(id)).filter(|_| over) else {
            return false;
        };
        let cancelled = match (facts.transport_kind, facts.modern) {
            (TransportKind::Http, true) => request.given_up,
            // A request that the server did not read needs no cancellation.
            (TransportKind::Http, false) => {
                let since = call.ended.as_ref().map(|(ended, _)| request.written.max(*ended));
                let soon = since.is_some_and(|since| now < since + ARRIVING);
                request.cancelled || !request.faults.is_empty() || soon
            }
            (TransportKind::Stream, _) => request.cancelled,
        };
        !cancelled && first_answer(facts, transport, call).0.is_none()
    });
    if let Some((tag, _)) = left {
        let what = format!("call {tag}: expected a cancellation after it was dropped or timed out, observed none");
        facts.broken(Law::Closing, what);
    }
}
/// L10: of a call that is reported as not sent, not even a part is on the wire.
pub(super) fn not_sent_in_part(facts: &mut Facts) {
    let is_call = |line: &&LineBuffer| String::from_utf8_lossy(line.rest()).contains("\"method\":\"tools/call");
    let begun = facts.partial.values().filter(is_call).count();
    let whole = facts.calls.values().filter(|call| !call.ids.is_empty()).count();
    let unsent = |call: &&CallFacts| matches!(call.ended, Some((_, CallResult::Failed(_, Outcome::NotSent))));
    let unsent = facts.calls.values().filter(unsent).count();
    let made = facts.calls.len();
    // What is there in part may be another round of one that was asked back.
    let asked_back = |call: &&CallFacts| {
        call.ids.last().and_then(|last| facts.requests.get(last)).is_some_and(|request| request.state.is_some())
    };
    let rounds = facts.calls.values().filter(asked_back).count();
    if facts.transport_kind == TransportKind::Stream && !facts.returns && begun + whole + unsent > made + rounds {
        let what = format!(
            "expected every call on the wire or reported as not sent, observed {whole} whole and {begun} in part on the wire, {unsent} of {made} reported as not sent"
        );
        facts.broken(Law::Outcome, what);
    }
}
