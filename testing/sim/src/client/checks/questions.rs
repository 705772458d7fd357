//! Requests of the server to the client.

use steadfast_proto::Moment;

use super::HANDLING;
use crate::client::TransportKind;
use crate::client::journal::{Facts, QuestionFacts, TransportFacts};
use crate::law::Law;
use crate::observation::message::Id;

/// L2: a request of a server of the older revisions is answered, in time after it was read (a cut stream may be resumed
/// long after), and L3: not if it was cancelled.
pub(super) fn questions_are_answered(facts: &mut Facts, transport: &dyn TransportFacts, now: Moment) {
    let read = |receipt: Option<usize>| receipt.is_some_and(|receipt| transport.was_read(receipt));
    // In a session a response that is dropped before its end is dropped for a cancellation.
    let cancelled = |request: &Id| facts.requests.get(request).is_some_and(|request| request.cancelled);
    for question in facts.questions.values_mut() {
        if question.processed_at.is_none() && read(question.receipt) {
            question.processed_at = Some(now);
        }
        // What was read of a dropped response may be lost before the client processes it.
        let cancellation_read = question.withdrawn.as_ref().is_some_and(|(receipt, within)| {
            read(Some(*receipt))
                && !(facts.transport_kind == TransportKind::Http && within.as_ref().is_some_and(cancelled))
        });
        question.silenced |= question.answers == 0 && cancellation_read;
    }
    // A message in a response that is not read any more may be lost on its way to its handler.
    let given_up = |question: &QuestionFacts| {
        let within = question.within.as_ref().and_then(|within| facts.requests.get(within));
        facts.transport_kind == TransportKind::Http
            && within.is_some_and(|request| request.cancelled || request.given_up)
    };
    let waits = facts.questions.iter().find(|(_, question)| {
        !given_up(question)
            && question.answers == 0
            && !question.taken_back
            && question.processed_at.is_some_and(|processed_at| now > processed_at + HANDLING)
    });
    if let Some((id, _)) = waits
        && !facts.modern
        && facts.opened == Some(Ok(()))
    {
        let what = format!("request {id} of the server: expected a response after it was read, observed none");
        facts.broken(Law::Answer, what);
    }
}
