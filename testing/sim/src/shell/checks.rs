//! The laws, as they look from outside of a real server.
//!
//! Nothing here knows the shell: it sees the wire at the peer's end, the journal of the handlers, what is left in the
//! executor, and the limits that were set.

use std::time::Duration;

use steadfast_proto::Moment;

use super::handlers::SECRET;
use super::journal::Facts;
use super::script::{Kind, Op};
use crate::executor::Executor;
use crate::law::{Law, Violation};
use crate::observation::drain::handler_window;
use crate::observation::lifetimes::{LifetimeEnd, LifetimeFacts, LifetimeKind};
use crate::observation::message::{Answer, Id};

/// What may pass between a cause and its effect: time goes on a little while things run.
const SLACK: Duration = Duration::from_millis(100);

/// Something begins: no more handlers than the limit says (L7), and none twice for one request (L8).
pub(super) fn at_begin(facts: &mut Facts, now: Moment, tag: u64, what: LifetimeKind, written: usize) {
    if !matches!(what, LifetimeKind::Handler | LifetimeKind::Thread) {
        return;
    }
    let running =
        facts.alive().filter(|life| matches!(life.what, LifetimeKind::Handler | LifetimeKind::Thread)).count();
    let (open, most) = (facts.subscriptions.open(), facts.limits.in_flight);
    if running + open > most {
        let what = format!("expected at most {most} in flight, observed {running} handlers and {open} subscriptions");
        facts.broken(Law::Bounded, what);
    }
    there_is_room(facts, now, written);
    if facts.lives_of(tag, what).count() > 1 {
        facts.broken(Law::Identity, format!("call {tag}: expected one start, observed a second"));
    }
    if facts.ended.is_some() && what == LifetimeKind::Handler {
        facts.broken(Law::Closing, format!("call {tag}: expected no start after the close, observed one"));
    }
}

/// A frame: nothing of a panic is in it (L6).
pub(super) fn at_frame(facts: &mut Facts, line: &[u8]) {
    if memchr::memmem::find(line, SECRET.as_bytes()).is_some() {
        facts.broken(Law::Isolation, "expected no panic text on the wire, observed it");
    }
}

/// An answer: one for each request (L1), none after a cancellation (L3), under its own id (L8).
pub(super) fn at_answer(facts: &mut Facts, id: &Id, answer: &Answer) {
    let Some(request) = facts.requests.get_mut(id) else {
        // What is left of the id of a line that was corrupted.
        if answer.code.is_some() && facts.corrupted > 0 {
            facts.corrupted -= 1;
            return;
        }
        return facts.broken(Law::Identity, format!("expected answers only to sent requests, observed one to {id}"));
    };
    request.answers += 1;
    request.results += usize::from(answer.result.is_some());
    let (asked, answers, silenced) = (request.sent + request.doubtful, request.answers, request.silenced);
    if answers > asked {
        facts.broken(Law::OneEnding, format!("id {id}: expected at most {asked} answers, observed {answers}"));
    }
    if silenced {
        facts.broken(Law::Silence, format!("id {id}: expected silence after its cancellation, observed an answer"));
    }
    let tag = answer.result.as_deref().and_then(|text| {
        let (_, rest) = text.split_once("\"tag:")?;
        rest.split_once(';')?.0.parse::<u64>().ok()
    });
    let Some(tag) = tag else { return };
    let seen = facts.tags.entry(tag).or_default();
    *seen += 1;
    if *seen > 1 {
        facts.broken(Law::OneEnding, format!("call {tag}: expected one answer, observed a second"));
    }
    if facts.calls.get(&tag).is_some_and(|call| call.id != **id) {
        facts.broken(Law::Identity, format!("call {tag}: expected its answer under its own id, observed {id}"));
    }
    let cleaned = facts.lives_of(tag, LifetimeKind::Cleanup).any(|life| life.running);
    if cleaned {
        facts.broken(
            Law::OneEnding,
            format!("call {tag}: expected an answer or a cancellation, observed an answer and its cleanup"),
        );
    }
}

/// Nothing can run: what takes no time has happened.
pub(super) fn at_idle(facts: &mut Facts, now: Moment, link_is_empty: bool, written: usize) {
    settle(facts, written);
    facts.subscriptions.settle();
    if facts.ended.is_some() {
        return nothing_is_left(facts);
    }
    if facts.closing.is_some() {
        return;
    }
    stopped_are_dropped(facts);
    if !link_is_empty || now < facts.paused_until {
        return;
    }
    if let Err(Violation { law, what }) = facts.subscriptions.all_told() {
        return facts.broken(law, what);
    }
    let uncancelled = |id: &Id| facts.requests.get(id).is_some_and(|request| request.cancels == 0);
    if let Some(id) = facts.asks.iter().find(|id| uncancelled(id)) {
        let what = format!("{id}: expected an answer of the connection itself, observed none while nothing runs");
        return facts.broken(Law::Isolation, what);
    }
    let waits = facts.requests.iter().find(|(_, request)| {
        let quick = request.tag.and_then(|tag| facts.calls.get(&tag)).is_some_and(|call| {
            call.kind != Kind::Blocking
                && !facts.blocked.contains(&call.tag)
                && call.corrupt.is_none()
                && call.plan.iter().all(|op| op.is_immediate())
        });
        quick && request.sent == 1 && request.cancels == 0 && request.answers == 0
    });
    if let Some((id, _)) = waits {
        let what =
            format!("{id}: expected an answer of a handler that needs no time, observed none while nothing runs");
        facts.broken(Law::Answer, what);
    }
}

/// L7: no handler begins while more answers wait to be read than may wait.
///
/// What handlers had returned when nothing could run was encoded by then, unless there was no room; so if it comes to more
/// than the limit, and nothing was written since, there is no room.
fn there_is_room(facts: &mut Facts, now: Moment, written: usize) {
    let most = facts.limits.outbox_bytes;
    let (written_then, returned) = &facts.settled;
    if *written_then != written || facts.closing.is_some() {
        return;
    }
    let is_wanted = |life: &LifetimeFacts| {
        let call = facts.calls.get(&life.tag)?;
        let request = facts.requests.get(&*call.id)?;
        let alone = request.sent == 1 && request.doubtful == 0 && request.cancels == 0;
        // Its answer is an error, and short.
        let panics = call.plan.contains(&Op::PanicInDrop);
        // From when it was sent: a function for which no thread was free begins later, and its deadline does not.
        let in_time = facts.limits.handler_deadline.is_none_or(|most| now.since(request.sent_at) < most);
        (alone && in_time && !panics).then_some(call.size)
    };
    let returned = returned.iter().filter_map(|number| facts.lives.get(number)).filter_map(is_wanted);
    let waiting = returned.sum::<usize>().saturating_sub(written);
    if waiting >= most {
        facts.broken(
            Law::Bounded,
            format!("expected no start above {most} bytes of unwritten output, observed one at {waiting}"),
        );
    }
}

/// Who has returned, now that nothing can run.
fn settle(facts: &mut Facts, written: usize) {
    let returned = facts.lives.iter().filter(|(_, life)| {
        matches!(life.what, LifetimeKind::Handler | LifetimeKind::Thread)
            && matches!(life.ended, Some((_, LifetimeEnd::Done)))
    });
    facts.settled = (written, returned.map(|(number, _)| *number).collect());
}

/// L5: a handler whose cancellation was taken in has been dropped, unless it may go on.
fn stopped_are_dropped(facts: &mut Facts) {
    let goes_on = facts.requests.iter().find(|(_, request)| {
        request.silenced
            && request.sent == 1
            && request.tag.is_some_and(|tag| {
                facts.calls.get(&tag).is_some_and(|call| call.kind == Kind::Async)
                    && !facts.blocked.contains(&tag)
                    && facts.lives_of(tag, LifetimeKind::Handler).any(|life| life.ended.is_none())
            })
    });
    if let Some((id, _)) = goes_on {
        let what = format!("{id}: expected its handler to stop after its cancellation, observed it running");
        facts.broken(Law::Closing, what);
    }
}

/// L5: after the end, nothing is left but threads that cannot be stopped, and what hangs on them.
fn nothing_is_left(facts: &mut Facts) {
    let blocked = |tag: u64| {
        facts.blocked.contains(&tag) || facts.calls.get(&tag).is_some_and(|call| call.kind == Kind::Blocking)
    };
    let left = facts.alive().find(|life| life.what != LifetimeKind::Thread && !blocked(life.tag));
    if let Some(life) = left {
        let what = format!("call {}: expected nothing left after the close, observed {:?}", life.tag, life.what);
        facts.broken(Law::Closing, what);
    }
}

/// The server's future has just ended by itself: it took no longer than it may (L5), and what could be stopped was.
pub(super) fn at_the_end(facts: &mut Facts, now: Moment) {
    let Some(closing) = facts.closing else {
        return facts.broken(Law::Closing, "expected a cause for the end of the server, observed none");
    };
    let took = now.since(closing);
    let most = facts.limits.drain_deadline;
    if took > most + SLACK {
        facts.broken(Law::Closing, format!("expected the server to end within {most:?}, observed {took:?}"));
    }
    let stoppable =
        |tag: u64| !facts.blocked.contains(&tag) && facts.calls.get(&tag).is_some_and(|call| call.kind == Kind::Async);
    let left = facts.alive().find(|life| life.what == LifetimeKind::Handler && stoppable(life.tag));
    if let Some(life) = left {
        let what = format!("call {}: expected its handler to stop before the close, observed it running", life.tag);
        facts.broken(Law::Closing, what);
    }
}

/// Everything that can be answered has had the time for it: so it was (L2).
pub(super) fn all_answered(facts: &mut Facts, when: &str) {
    let waits = facts.requests.iter().find(|(id, request)| {
        let ended = request.answers + request.refusals + usize::from(facts.subscriptions.may_last(id));
        request.cancels == 0 && request.doubtful == 0 && ended < request.sent
    });
    if let Some((id, request)) = waits {
        let what = format!(
            "id {id}: expected an answer to each request, observed {} for {} {when}",
            request.answers, request.sent
        );
        facts.broken(Law::Answer, what);
    }
}

/// More output than a run ever has waiting: with a limit like this, input is never held up.
const MUCH: usize = 1 << 20;

/// Nothing will ever happen again.
pub(super) fn at_last(facts: &mut Facts, executor: &Executor, all_read: bool) {
    if let Some(panic) = executor.escaped() {
        facts.broken(Law::Isolation, format!("expected no panic from the server, observed {panic}"));
    }
    let Some(ended) = facts.ended else {
        return facts.broken(Law::Closing, "expected the server to end, observed it running at the end of the run");
    };
    if let (tasks, jobs, timers) = executor.left()
        && tasks + jobs + timers > 0
    {
        facts.broken(
            Law::Closing,
            format!(
                "expected nothing left at the end of the run, observed {tasks} tasks, {jobs} jobs and {timers} timers"
            ),
        );
    }
    let left = facts.alive().next();
    if let Some(life) = left {
        let what = format!("call {}: expected nothing left at the end of the run, observed {:?}", life.tag, life.what);
        facts.broken(Law::Closing, what);
    }
    cleaned_up(facts, ended);
    outcomes(facts);
    let read_on = facts.closing.is_some_and(|closing| facts.paused_until <= closing);
    if !facts.rough && !facts.server_dropped && read_on {
        started_are_answered(facts);
        let was_cancelled = |id: &Id| facts.requests.get(id).is_some_and(|request| request.cancels > 0);
        if let Err(Violation { law, what }) = facts.subscriptions.all_ended(was_cancelled) {
            facts.broken(law, what);
        }
        // Input that too much unread output held up is taken in the window. Without a window it is never taken, and so was
        // never accepted, although some of it may have been read.
        let held_up = !all_read || facts.limits.outbox_bytes < MUCH;
        let untaken = held_up && handler_window(&facts.limits).is_zero();
        if !facts.shut_down && !untaken {
            all_answered(facts, "although the peer only ended its input, and read to the end");
        }
    }
}

/// L5: the cleanups of a handler that was stopped ran, in the reverse of their order, unless their time was up.
fn cleaned_up(facts: &mut Facts, ended: Moment) {
    // When the output is not read any more there is no window for responses, and the rest of the deadline is for cleanups.
    let limits = &facts.limits;
    let most =
        if facts.rough { limits.drain_deadline.saturating_sub(handler_window(limits)) } else { limits.drain_deadline };
    let up = if facts.server_dropped { Moment::ORIGIN } else { facts.closing.map_or(ended, |closing| closing + most) };
    let lost = facts.lives.values().find(|cleanup| {
        let stopped = facts
            .lives_of(cleanup.tag, LifetimeKind::Handler)
            .any(|life| matches!(life.ended, Some((_, LifetimeEnd::Dropped))));
        let in_time = matches!(cleanup.ended, Some((when, LifetimeEnd::Dropped)) if when < up);
        cleanup.what == LifetimeKind::Cleanup && stopped && in_time
    });
    if let Some(life) = lost {
        let what = format!(
            "call {}: expected its cleanup to run to its end or deadline, observed it dropped before",
            life.tag
        );
        facts.broken(Law::Closing, what);
    }
}

/// L10: the outcomes that callers got agree with the wire.
fn outcomes(facts: &mut Facts) {
    if facts.calls_answered > facts.answers_sent {
        let what = format!(
            "expected no more answered calls than responses of the peer, observed {} calls and {} responses",
            facts.calls_answered, facts.answers_sent
        );
        facts.broken(Law::Outcome, what);
    }
    if facts.calls_seen + facts.calls_not_sent > facts.calls_made {
        let what = format!(
            "expected each call on the wire or reported as not sent, observed {} on the wire and {} reported, of {}",
            facts.calls_seen, facts.calls_not_sent, facts.calls_made
        );
        facts.broken(Law::Outcome, what);
    }
}

/// L2: while the peer read, everything that was begun was answered, with an error if need be.
fn started_are_answered(facts: &mut Facts) {
    let waits = facts.requests.iter().find(|(_, request)| {
        let begun = request.tag.is_some_and(|tag| {
            facts.lives_of(tag, LifetimeKind::Handler).chain(facts.lives_of(tag, LifetimeKind::Thread)).next().is_some()
        });
        begun && request.sent == 1 && request.cancels == 0 && request.answers == 0
    });
    if let Some((id, _)) = waits {
        facts.broken(Law::Answer, format!("{id}: expected an answer to a peer that reads to the end, observed none"));
    }
}
