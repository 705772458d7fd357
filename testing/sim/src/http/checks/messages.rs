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
        return facts
            .broken(Law::Order, format!("request {request:?}: expected nothing after its answer, observed a message"));
    }
    match part {
        Part::Answer(answer) => at_answer(facts, request, answer),
        Part::Progress { token, value } => {
            let value = f64::from_bits(*value);
            let named = token.as_deref().and_then(|token| token.trim_matches('"').strip_prefix('t')?.parse().ok());
            let Some(known) = request.filter(|request| named == Some(*request)) else {
                return facts.broken(Law::Identity, format!("expected progress on the stream of its request, observed that of {token:?} on the stream of {request:?}"));
            };
            let Some(known) = facts.requests.get_mut(&known) else { return };
            let (grows, silenced, single) = (value > known.progress, known.silenced, known.sent == 1);
            known.progress = value;
            if !grows && single {
                facts.broken(Law::Order, format!("request {named:?}: expected increasing progress, observed {value}"));
            }
            if silenced {
                facts.broken(
                    Law::Silence,
                    format!("request {named:?}: expected silence after its cancellation, observed progress"),
                );
            }
        }
        Part::Log { marker: Some(marker) } => at_log(facts, request, *marker),
        Part::Request { method, .. } if modern => {
            facts.broken(Law::Order, format!("expected no request of the server in 2026-07-28, observed {method}"));
        }
        Part::Unreadable { .. } => {
            facts.broken(Law::Order, "expected a JSON-RPC message from the server, observed something else");
        }
        _ => {}
    }
}

/// L9: the log messages of a run come in order, and none is missing.
fn at_log(facts: &mut Facts, request: Option<u64>, marker: u64) {
    let (tag, run, place) = (marker / 10_000, marker / 1_000 % 10, marker % 1_000);
    let Some(known) = request.and_then(|request| facts.requests.get_mut(&request)) else {
        return facts.broken(
            Law::Identity,
            format!("call {tag}: expected its log messages on its stream, observed one on another"),
        );
    };
    let silenced = known.silenced;
    let loose = known.sent > 1 || (facts.forgetful && place > known.logs.1);
    let follows = loose || (place == known.logs.1 + 1 && (place == 1 || run == known.logs.0));
    known.logs = (run, place);
    if known.tag != Some(tag) {
        return facts.broken(
            Law::Identity,
            format!("call {tag}: expected its log messages on its stream, observed one on the stream of {request:?}"),
        );
    }
    if !follows {
        facts.broken(
            Law::Order,
            format!("call {tag}: expected its log messages in order, observed message {place} out of order"),
        );
    }
    if silenced {
        facts.broken(
            Law::Silence,
            format!("call {tag}: expected silence after its cancellation, observed a log message"),
        );
    }
}

/// A response: one for each request (L1), none after a cancellation (L3), under its own id and on its own stream (L8), after
/// everything that its handler sent before (L9).
fn at_answer(facts: &mut Facts, request: Option<u64>, answer: &Answer) {
    let Some(id) = &answer.id else { return };
    let Some(number) = request.filter(|request| id.parse() == Ok(*request)) else {
        return facts.broken(
            Law::Identity,
            format!("id {id}: expected its answer on its stream, observed it on the stream of {request:?}"),
        );
    };
    facts.counts.answers += 1;
    let Some(known) = facts.requests.get_mut(&number) else { return };
    known.answers += 1;
    let (sent, answers, silenced, tag) = (known.sent, known.answers, known.silenced, known.tag);
    let (session, logs) = (known.session, known.logs);
    if answers > sent {
        facts.broken(Law::OneEnding, format!("id {id}: expected at most {sent} answers, observed {answers}"));
    }
    if silenced {
        facts.broken(Law::Silence, format!("id {id}: expected silence after its cancellation, observed an answer"));
    }
    let said = answer.result.as_deref().and_then(|text| {
        let (_, rest) = text.split_once("\"tag:")?;
        let mut parts = rest.split(';').map(|part| part.parse::<u64>().ok());
        Some((parts.next()??, parts.next()??, parts.next()??))
    });
    let Some((said, run, count)) = said else { return };
    if tag != Some(said) {
        return facts.broken(Law::Identity, format!("call {tag:?}: expected its own result, observed that of {said}"));
    }
    let wanted = session.is_some() || facts.calls.get(&said).is_some_and(|call| call.logs);
    if wanted && !facts.forgetful && sent == 1 && count > 0 && logs != (run, count) {
        let what = format!("call {said}: expected its answer after {count} log messages, observed it after {}", logs.1);
        facts.broken(Law::Order, what);
    }
    let alone = sent == 1 && facts.requests_of(said).count() == 1;
    if alone && facts.lives_of(said, LifetimeKind::Cleanup).any(|life| life.running) {
        facts.broken(
            Law::OneEnding,
            format!("call {said}: expected an answer or a cancellation, observed an answer and its cleanup"),
        );
    }
}
