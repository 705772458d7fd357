//! The laws, as they look from outside of a server on HTTP.
//!
//! A connection is the exchange in 2026-07-28, and the session before. Nothing here knows the service: it sees requests and
//! responses, the journal of the handlers, how many sessions are open, and what was configured.

mod idle;
mod messages;

use std::time::Duration;

use steadfast_proto::Moment;

use super::handlers::SECRET;
use super::journal::{Facts, Purpose};
use super::script::Kind;
use crate::executor::Executor;
use crate::law::Law;
use crate::observation::drain::handler_window;
use crate::observation::lifetimes::{LifetimeEnd, LifetimeFacts, LifetimeKind};
pub(super) use idle::at_idle;
pub(super) use messages::at_message;

/// What may pass between a cause and its effect: time goes on a little while things run.
const SLACK: Duration = Duration::from_millis(100);

/// Something begins: no more handlers in a session than the limit says (L7), none twice for one request (L8), none after
/// the end of its connection (L5).
pub(super) fn at_begin(facts: &mut Facts, tag: u64, what: LifetimeKind) {
    if !matches!(what, LifetimeKind::Handler | LifetimeKind::Thread) {
        return;
    }
    let sent: usize = facts.requests_of(tag).map(|request| request.sent).sum();
    if facts.lives_of(tag, what).count() > sent {
        return facts.broken(Law::Identity, format!("call {tag}: expected one start per request, observed another"));
    }
    let session = facts.requests_of(tag).find_map(|request| request.session);
    let of_session = |life: &&LifetimeFacts| {
        matches!(life.what, LifetimeKind::Handler | LifetimeKind::Thread)
            && facts.requests_of(life.tag).any(|request| request.session == session)
    };
    let (running, most) = (facts.alive().filter(of_session).count(), facts.limits.in_flight);
    if session.is_some() && running > most {
        return facts
            .broken(Law::Bounded, format!("expected at most {most} handlers in a session, observed {running}"));
    }
    if what == LifetimeKind::Handler && facts.session_of(tag).is_some_and(|session| session.deleted.is_some()) {
        return facts
            .broken(Law::Closing, format!("call {tag}: expected no start after DELETE of its session, observed one"));
    }
    if what == LifetimeKind::Handler && facts.requests_of(tag).all(|request| request.hung_up) {
        facts
            .broken(Law::Closing, format!("call {tag}: expected no start after its client disconnected, observed one"));
    }
}

/// A handler was dropped: there has to be a reason. Before 2026-07-28 a lost client is not a reason (L2).
pub(super) fn at_drop(facts: &mut Facts, now: Moment, tag: u64, began: Moment) {
    let late = facts.limits.handler_deadline.is_some_and(|most| began + most <= now + SLACK);
    let stopped = facts.requests_of(tag).any(|request| request.cancels > 0 || request.hung_up);
    let ended = facts.session_of(tag).is_some_and(|session| session.deleted.is_some() || session.may_be_gone);
    let modern = facts.session_of(tag).is_none();
    let suspended = modern && facts.calls.get(&tag).is_some_and(super::script::Call::asks);
    if !(late || stopped || ended || suspended || facts.closing.is_some()) {
        facts.broken(
            Law::Answer,
            format!("call {tag}: expected its handler to run until it is cancelled, observed a stop"),
        );
    }
}

/// A response begins: with the status that its request deserves.
pub(super) fn at_response(facts: &mut Facts, now: Moment, number: u64, status: u16, events: bool) {
    crate::coverage::ending(format!("response: {status}{}", if events { ", events" } else { "" }));
    let Some(exchange) = facts.exchanges.get(&number) else { return };
    let purpose = exchange.purpose.clone();
    let delivered = exchange.delivered;
    let session = exchange.session.and_then(|session| facts.sessions.get(session));
    let gone = facts.closing.is_some() || session.is_some_and(|it| it.deleted.is_some() || it.may_be_gone);
    let deleted = session.is_some_and(|session| session.deleted.is_some());
    let doubled = |number: &u64| facts.requests.get(number).is_some_and(|request| request.sent > 1);
    let busy = facts.closing.is_some() || facts.limits.in_flight < 100;
    let fits = match (&purpose, status) {
        (_, 503) => busy,
        (_, 400 | 408) if !delivered => true,
        (_, 404) | (Purpose::Request(..), 500) if session.is_some() => gone,
        (Purpose::Open | Purpose::Request(..), 200)
        | (Purpose::Notification | Purpose::Cancel(_), 202)
        | (Purpose::Delete, 204) => true,
        (Purpose::Request(..), _) if session.is_none() => true,
        (Purpose::Request(number, _), 400) => doubled(number),
        (Purpose::Listen, 200) => events,
        (Purpose::Resume(id), 200) => events && session.is_some_and(|session| session.places.contains_key(id)),
        (Purpose::Resume(id), 400) => {
            facts.forgetful || !session.is_some_and(|session| session.places.contains_key(id))
        }
        _ => false,
    };
    let succeeds = (200..300).contains(&status);
    if !fits || (succeeds && !delivered) {
        let what = format!("{purpose:?}: expected another status, observed {status}");
        return facts.broken(if matches!(purpose, Purpose::Resume(_)) { Law::Order } else { Law::Answer }, what);
    }
    let at_once = !matches!(purpose, Purpose::Request(..) | Purpose::Open);
    if succeeds && at_once && deleted {
        return facts
            .broken(Law::Closing, format!("{purpose:?}: expected 404 after DELETE of its session, observed success"));
    }
    let session = facts.exchanges.get(&number).and_then(|exchange| exchange.session);
    if let Some(session) = session.and_then(|session| facts.sessions.get_mut(session)) {
        if purpose == Purpose::Delete && succeeds {
            session.deleted = Some(now);
        }
        // It was there, evidently.
        session.may_be_gone &= !(succeeds && at_once);
    }
    if let Some(exchange) = facts.exchanges.get_mut(&number) {
        exchange.refused |= !succeeds;
    }
}

/// An event, or a body that is a message. L9: on one stream every event once and in order, whatever was cut in between, and
/// none of another stream. Returns the request whose stream it is on, if it has not been seen before.
#[allow(clippy::option_option)]
pub(super) fn at_event(facts: &mut Facts, number: u64, id: Option<&str>, data: &[u8]) -> Option<Option<u64>> {
    let exchange = facts.exchanges.get_mut(&number)?;
    let of_request = match exchange.purpose {
        Purpose::Request(request, _) if !exchange.refused || exchange.session.is_none() => Some(request),
        _ => None,
    };
    let Some((stream, place)) = exchange.place else {
        if id.is_some() {
            facts.broken(Law::Order, "expected no event id without a session to resume, observed one");
        }
        return of_request.map(Some);
    };
    exchange.place = Some((stream, place + 1));
    let session = exchange.session.and_then(|session| facts.sessions.get_mut(session))?;
    let Some(id) = id else {
        facts.broken(Law::Order, "expected an id on each event of a session, observed none");
        return None;
    };
    let known = session.streams.get_mut(stream)?;
    let found = known.events.get(place).map(|(before, bytes)| before == id && bytes == data);
    let request = known.request;
    match found {
        Some(true) => None,
        Some(false) => {
            let before = known.events.get(place).map_or("", |(before, _)| before.as_str());
            let what = format!("expected event {before} at position {place} of the resumed stream, observed {id}");
            facts.broken(Law::Order, what);
            None
        }
        None => {
            known.events.push((id.to_owned(), data.to_vec()));
            if let Some(other) = session.places.insert(id.to_owned(), (stream, place)) {
                let what = format!("event {id}: expected one position, observed {other:?} and {:?}", (stream, place));
                facts.broken(Law::Order, what);
            }
            (!data.is_empty()).then_some(request)
        }
    }
}

/// Nothing of a panic is to be seen (L6).
pub(super) fn at_bytes(facts: &mut Facts, bytes: &[u8]) {
    if memchr::memmem::find(bytes, SECRET.as_bytes()).is_some() {
        facts.broken(Law::Isolation, "expected no panic text on the wire, observed it");
    }
}

/// The service ends a body: the answer was there (L2), unless there is a reason.
pub(super) fn at_end_of_body(facts: &mut Facts, number: u64) {
    let Some(exchange) = facts.exchanges.get(&number) else { return };
    let ended = facts.closing.is_some()
        || exchange
            .session
            .and_then(|session| facts.sessions.get(session))
            .is_some_and(|session| session.deleted.is_some() || session.may_be_gone);
    let Some(((stream, _), session)) = exchange.place.zip(exchange.session) else {
        if let Purpose::Request(request, false) = exchange.purpose
            && !exchange.answered
            && !exchange.refused
            && !ended
        {
            facts.broken(
                Law::Answer,
                format!("request {request}: expected its answer in the response, observed the end without it"),
            );
        }
        return;
    };
    let Some(session) = facts.sessions.get(session) else { return };
    let Some(stream) = session.streams.get(stream) else { return };
    if ended || facts.forgetful || stream.answered || stream.newest != number {
        return;
    }
    let Some(request) = stream.request else {
        return facts.broken(Law::Closing, "expected the stream of an open session to stay open, observed its end");
    };
    let known = facts.requests.get(&request);
    let cancelled = known.is_some_and(|known| known.cancels > 0);
    let call = known.and_then(|known| known.tag).and_then(|tag| facts.calls.get(&tag));
    let released = session.primes() && call.is_some_and(super::script::Call::releases);
    if !cancelled && !released {
        facts.broken(
            Law::Answer,
            format!("request {request}: expected its answer on its stream, observed the end without it"),
        );
    }
}

/// A client has learned that its cancellation was processed: from here on nothing is sent about its request (L3), if its handler
/// was running.
pub(super) fn silence(facts: &mut Facts, now: Moment, number: u64) {
    let Some(request) = facts.requests.get(&number) else { return };
    let Some(tag) = request.tag.filter(|_| request.sent == 1 && request.answers == 0) else { return };
    // When the window of a shutdown is over, each request is answered, and a handler may continue after its response:
    // a cancellation that comes then is late (L4). A response that was sent before stays.
    if facts.closing.is_some_and(|closing| closing + handler_window(&facts.limits) <= now) {
        return;
    }
    // The deadline counts from the arrival of the request, which is no earlier than its sending; the handler may begin later. A
    // request that has reached its deadline is answered, and its cancellation is late (L4).
    let expired = facts.limits.handler_deadline.is_some_and(|most| request.sent_at + most <= now);
    let running = !expired && facts.lives_of(tag, LifetimeKind::Handler).any(|life| life.ended.is_none());
    if running && let Some(request) = facts.requests.get_mut(&number) {
        request.silenced = true;
    }
}

/// Nothing will ever happen again.
pub(super) fn at_last(facts: &mut Facts, executor: &Executor, sessions: usize) {
    if let Some(panic) = executor.escaped() {
        facts.broken(Law::Isolation, format!("expected no panic from the service, observed {panic}"));
    }
    let endless = facts.exchanges.values().find(|exchange| !exchange.over).map(|exchange| exchange.purpose.clone());
    if let Some(purpose) = endless {
        facts.broken(
            Law::Answer,
            format!("{purpose:?}: expected its response to end, observed it open at the end of the run"),
        );
    }
    if let (tasks, jobs, timers) = executor.left()
        && tasks + jobs + timers + sessions > 0
    {
        let what = format!(
            "expected nothing left at the end of the run, observed {tasks} tasks, {jobs} jobs, {timers} timers and {sessions} sessions"
        );
        facts.broken(Law::Closing, what);
    }
    let left = facts.alive().next().map(|life| (life.what, life.tag));
    if let Some((what, tag)) = left {
        facts.broken(
            Law::Closing,
            format!("call {tag}: expected nothing left at the end of the run, observed {what:?}"),
        );
    }
    cleaned_up(facts);
}

/// L5: the cleanups of a handler that was stopped ran, unless their time was up.
fn cleaned_up(facts: &mut Facts) {
    let least = facts.limits.drain_deadline.saturating_sub(handler_window(&facts.limits));
    let lost = facts.lives.values().find(|cleanup| {
        let modern = facts.session_of(cleanup.tag).is_none();
        let suspended = modern && facts.calls.get(&cleanup.tag).is_some_and(super::script::Call::asks);
        let alone = facts.lives_of(cleanup.tag, LifetimeKind::Handler).count() == 1
            && facts.calls.get(&cleanup.tag).is_some_and(|call| call.kind == Kind::Async);
        let stopped = facts.lives_of(cleanup.tag, LifetimeKind::Handler).find_map(|life| match life.ended {
            Some((when, LifetimeEnd::Dropped)) => Some(when),
            _ => None,
        });
        let too_early = match (cleanup.ended, stopped) {
            (Some((when, LifetimeEnd::Dropped)), Some(stopped)) => when + SLACK < stopped + least,
            _ => false,
        };
        cleanup.what == LifetimeKind::Cleanup && alone && too_early && !suspended
    });
    if let Some(life) = lost {
        let what = format!(
            "call {}: expected its cleanup to run to its end or deadline, observed it dropped before",
            life.tag
        );
        facts.broken(Law::Closing, what);
    }
}
