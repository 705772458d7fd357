//! The laws that hold whenever nothing can run.

use std::time::Duration;

use steadfast_proto::Moment;

use super::SLACK;
use crate::http::journal::{ExchangeFacts, Facts, Purpose};
use crate::http::script::Kind;
use crate::law::{Law, Violation};
use crate::observation::lifetimes::{LifetimeFacts, LifetimeKind};

/// Nothing can run: what takes no time has happened.
pub(in crate::http) fn at_idle(facts: &mut Facts, now: Moment, sessions: usize) {
    facts.grow_old(now);
    facts.subscriptions.settle();
    match facts.closing {
        None => {
            sessions_are_reaped(facts, now, sessions);
            stopped_are_dropped(facts, now);
            quick_are_answered(facts);
            if let Err(Violation { law, what }) = facts.subscriptions.all_told() {
                facts.broken(law, what);
            }
        }
        Some(closing) if !facts.dropped && closing + facts.limits.drain_deadline + SLACK <= now => {
            if sessions > 0 {
                facts.broken(Law::Closing, format!("expected no session after the shutdown, observed {sessions}"));
            }
            let left = facts.alive().find(|life| is_stoppable(facts, life));
            if let Some(life) = left {
                let what =
                    format!("call {}: expected nothing left after the shutdown, observed {:?}", life.tag, life.what);
                facts.broken(Law::Closing, what);
            }
        }
        Some(_) => {}
    }
}

/// Whether it can be stopped from outside.
fn is_stoppable(facts: &Facts, life: &LifetimeFacts) -> bool {
    let blocking =
        facts.blocked.contains(&life.tag) || facts.calls.get(&life.tag).is_some_and(|call| call.kind == Kind::Blocking);
    life.what != LifetimeKind::Thread && !blocking
}

/// L5: sessions that were deleted, or abandoned for the idle time, are gone, and so is what ran in them.
fn sessions_are_reaped(facts: &mut Facts, now: Moment, open: usize) {
    let idle = facts.idle;
    let due = |slack: Duration| {
        move |session: &crate::http::journal::SessionFacts| {
            session.gone_at(idle).is_some_and(|gone| gone + slack <= now)
        }
    };
    let gone = facts.sessions.iter().filter(|session| due(SLACK)(session)).count();
    let most = facts.sessions.len() - gone;
    if open > most {
        return facts.broken(Law::Closing, format!("expected at most {most} open sessions, observed {open}"));
    }
    let over = due(facts.limits.drain_deadline + SLACK);
    let left = facts.alive().find(|life| is_stoppable(facts, life) && facts.session_of(life.tag).is_some_and(over));
    if let Some(life) = left {
        let what =
            format!("call {}: expected nothing left after the end of its session, observed {:?}", life.tag, life.what);
        facts.broken(Law::Closing, what);
    }
}

/// L5: a handler that was cancelled, by whatever its revision takes for it, has been dropped, unless it may go on.
fn stopped_are_dropped(facts: &mut Facts, now: Moment) {
    let idle = facts.idle;
    let stopped = |life: &&LifetimeFacts| {
        let may_go_on = facts.calls.get(&life.tag).is_none_or(|call| call.kind != Kind::Async);
        if life.what != LifetimeKind::Handler || may_go_on || facts.blocked.contains(&life.tag) {
            return false;
        }
        let mut requests = facts.requests_of(life.tag);
        let cancelled = requests.all(|request| request.sent == 1 && (request.silenced || request.hung_up));
        let session = facts.session_of(life.tag);
        let deleted = session.is_some_and(|session| session.deleted.is_some());
        let gone = session.is_some_and(|it| it.gone_at(idle).is_some_and(|gone| gone + SLACK <= now));
        cancelled || deleted || gone
    };
    let left = facts.alive().find(stopped);
    if let Some(life) = left {
        let what = format!("call {}: expected its handler to stop with its request, observed it running", life.tag);
        facts.broken(Law::Closing, what);
    }
}

/// L6: what the connection answers by itself is answered at once, whatever else goes on.
fn quick_are_answered(facts: &mut Facts) {
    let waits = |exchange: &&ExchangeFacts| {
        let Purpose::Request(request, false) = exchange.purpose else { return false };
        // A subscription is acknowledged instead.
        let quick = facts.requests.get(&request).is_some_and(|request| request.tag.is_none())
            && !facts.subscriptions.is_acknowledged(request);
        quick && exchange.delivered && !exchange.over && !exchange.answered && !exchange.refused
    };
    let waiting = facts.exchanges.values().find(waits).map(|exchange| exchange.purpose.clone());
    if let Some(purpose) = waiting {
        facts.broken(
            Law::Isolation,
            format!("{purpose:?}: expected a response without a handler, observed it waiting while nothing runs"),
        );
    }
}
