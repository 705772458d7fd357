//! The laws of one message: progress, logs and answers.

use crate::http::journal::Facts;
use crate::law::Law;
use crate::observation::lifetimes::LifetimeKind;
use crate::observation::message::{Answer, Part};

/// A message that has not been seen before, on the stream of `request`.
pub(in crate::http) fn at_message(facts: &mut Facts, number: u64, request: Option<u64>, part: &Part) {
    let Some(exchange) = facts.exchanges.get_mut(&number) else { return };
    let modern = exchange.session.is_none();
    let stream = exchange.place.zip(exchange.session);
    let is_answer = matches!(part, Part::Answer(answer) if answer.id.is_some());
    let mut behind = modern && exchange.answered;
    exchange.answered |= matches!(part, Part::Answer(_));
    if let Some(((stream, _), session)) = stream
        && let Some(stream) = facts.sessions.get_mut(session).and_then(|session| session.streams.get_mut(stream))
        && request.is_some()
    {
        behind |= stream.answered;
        stream.answered |= is_answer;
    }
    if behind && !is_answer {
        return facts.broken(Law::Order, format!("something comes behind the answer of {request:?}"));
    }
    match part {
        Part::Answer(answer) => at_answer(facts, request, answer),
        Part::Progress { token, value } => {
            let value = f64::from_bits(*value);
            let named = token.as_deref().and_then(|token| token.trim_matches('"').strip_prefix('t')?.parse().ok());
            let Some(known) = request.filter(|request| named == Some(*request)) else {
                return facts.broken(Law::Identity, format!("progress of {token:?} on the stream of {request:?}"));
            };
            let Some(known) = facts.requests.get_mut(&known) else { return };
            let (grows, silenced, single) = (value > known.progress, known.silenced, known.sent == 1);
            known.progress = value;
            if !grows && single {
                facts.broken(Law::Order, format!("progress of {named:?} does not grow: {value}"));
            }
            if silenced {
                facts.broken(Law::Silence, format!("progress of {named:?} after its cancellation was taken in"));
            }
        }
        Part::Log { marker: Some(marker) } => at_log(facts, request, *marker),
        Part::Request { method, .. } if modern => {
            facts.broken(Law::Order, format!("{method} is asked of a client of 2026-07-28"));
        }
        Part::Unreadable { .. } => facts.broken(Law::Order, "the server wrote what is no message"),
        _ => {}
    }
}

/// L9: the log messages of a run come in order, and none is missing.
fn at_log(facts: &mut Facts, request: Option<u64>, marker: u64) {
    let (tag, run, place) = (marker / 10_000, marker / 1_000 % 10, marker % 1_000);
    let Some(known) = request.and_then(|request| facts.requests.get_mut(&request)) else {
        return facts.broken(Law::Identity, format!("a log message of {tag} is on the stream of no request"));
    };
    let silenced = known.silenced;
    let loose = known.sent > 1 || (facts.forgetful && place > known.logs.1);
    let follows = loose || (place == known.logs.1 + 1 && (place == 1 || run == known.logs.0));
    known.logs = (run, place);
    if known.tag != Some(tag) {
        return facts.broken(Law::Identity, format!("a log message of {tag} is on the stream of {request:?}"));
    }
    if !follows {
        facts.broken(Law::Order, format!("the log message {place} of {tag} comes too early or too late"));
    }
    if silenced {
        facts.broken(Law::Silence, format!("a log message of {tag} after its cancellation was taken in"));
    }
}

/// A response: one for each request (L1), none after a cancellation (L3), under its own id and on its own stream (L8), after
/// everything that its handler sent before (L9).
fn at_answer(facts: &mut Facts, request: Option<u64>, answer: &Answer) {
    let Some(id) = &answer.id else { return };
    let Some(number) = request.filter(|request| id.parse() == Ok(*request)) else {
        return facts.broken(Law::Identity, format!("an answer to {id} is on the stream of {request:?}"));
    };
    facts.counts.answers += 1;
    let Some(known) = facts.requests.get_mut(&number) else { return };
    known.answers += 1;
    let (sent, answers, silenced, tag) = (known.sent, known.answers, known.silenced, known.tag);
    let (session, logs) = (known.session, known.logs);
    if answers > sent {
        facts.broken(Law::OneEnding, format!("{answers} answers to {id}, which was sent {sent} times"));
    }
    if silenced {
        facts.broken(Law::Silence, format!("an answer to {id} after its cancellation was taken in"));
    }
    let said = answer.result.as_deref().and_then(|text| {
        let (_, rest) = text.split_once("\"tag:")?;
        let mut parts = rest.split(';').map(|part| part.parse::<u64>().ok());
        Some((parts.next()??, parts.next()??, parts.next()??))
    });
    let Some((said, run, count)) = said else { return };
    if tag != Some(said) {
        return facts.broken(Law::Identity, format!("the call {tag:?} is answered as {said}"));
    }
    let wanted = session.is_some() || facts.calls.get(&said).is_some_and(|call| call.logs);
    if wanted && !facts.forgetful && sent == 1 && count > 0 && logs != (run, count) {
        let what = format!("the answer of {said} comes behind {} of its {count} log messages", logs.1);
        facts.broken(Law::Order, what);
    }
    let alone = sent == 1 && facts.requests_of(said).count() == 1;
    if alone && facts.lives_of(said, LifetimeKind::Cleanup).any(|life| life.running) {
        facts.broken(Law::OneEnding, format!("the call {said} is answered, and cleaned up as if it was cancelled"));
    }
}
