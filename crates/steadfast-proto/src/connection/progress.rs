//! Progress and log messages of running requests: in order, never after the end, never a flood.
//!
//! At most one progress notification of a request waits in the outbox: a newer one takes its place. Two are at least
//! `progress_interval` apart: what comes sooner is held, merged, and goes out when the time has come or with the answer.

use serde_json::Value;
use steadfast_model::{LoggingLevel, LoggingMessageParams, Method, ProgressParams};

use super::Connection;
use super::key::Key;
use super::outbox::{Ticket, TransmitKind};
use super::timer::Purpose;
use crate::coverage::Input;
use crate::{Moment, encode};

/// How far a request is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Progress {
    /// How much is done. It has to grow from one report to the next; what does not is dropped.
    pub progress: f64,
    /// How much there is in all, if that is known.
    pub total: Option<f64>,
    /// For people.
    pub message: Option<String>,
}

/// What a request has reported.
#[derive(Debug, Clone, Default)]
pub(super) struct Reported {
    /// The largest value so far.
    pub(super) value: Option<f64>,
    /// When the last notification was queued.
    last: Option<Moment>,
    /// Where it is, if it has not left.
    ticket: Option<Ticket>,
    /// Newer than that, held back until then.
    held: Option<(Moment, Box<Progress>)>,
}

impl Reported {
    pub(super) fn held_until(&self) -> Option<Moment> {
        self.held.as_ref().map(|(when, _)| *when)
    }

    pub(super) fn queued(&self) -> Option<Ticket> {
        self.ticket
    }

    pub(super) fn last_at(&self) -> Option<Moment> {
        self.last
    }
}

/// Commands.
impl Connection {
    /// Reports progress on a request that is running and wants to hear of it. Otherwise nothing happens.
    pub fn progress(&mut self, now: Moment, key: Key, progress: Progress) {
        self.cover(Input::Progress);
        let interval = self.limits.progress_interval;
        let Some(inbound) = self.running_mut(key) else { return };
        if inbound.progress_token.is_none() {
            return;
        }
        let grows =
            progress.progress.is_finite() && inbound.progress.value.is_none_or(|value| progress.progress > value);
        if !grows {
            self.statistics.dropped_notifications += 1;
            return;
        }
        inbound.progress.value = Some(progress.progress);
        if let Some((_, held)) = &mut inbound.progress.held {
            **held = progress;
            self.statistics.dropped_notifications += 1;
            return;
        }
        let due = inbound.progress.last.map_or(now, |last| last + interval);
        if due > now {
            inbound.progress.held = Some((due, Box::new(progress)));
            self.timers.set(due, Purpose::Progress(key));
            return;
        }
        self.queue_progress(now, key, progress);
    }

    /// Sends a log message of a request that is running, if the peer wants messages of this level.
    pub fn log(&mut self, key: Key, level: LoggingLevel, logger: Option<String>, data: Value) {
        self.cover(Input::Log);
        let connection_level = self.log_level;
        let most = self.limits.queued_logs;
        let (outbox, executions, inbound) = (&mut self.outbox, &self.executions, &mut self.inbound);
        let entry =
            executions.get(&key).and_then(|execution| inbound.get_mut(&execution.id)).filter(|entry| entry.key == key);
        let Some(inbound) = entry else { return };
        let least = if inbound.peer.revision.is_modern() { inbound.log_level } else { Some(connection_level) };
        if least.is_none_or(|least| level < least) {
            return;
        }
        if inbound.logs.len() >= most {
            inbound.logs.retain(|ticket| outbox.holds(*ticket));
        }
        if inbound.logs.len() >= most {
            self.statistics.dropped_notifications += 1;
            return;
        }
        let mut params = LoggingMessageParams::new(level, data);
        params.logger = logger;
        let ticket = outbox.push(
            TransmitKind::Notification(Method::LoggingMessage),
            encode::notification_of(inbound.peer.revision, Method::LoggingMessage, &params),
            Some(key),
        );
        inbound.logs.push(ticket);
    }
}

impl Connection {
    /// The time of progress that was held back has come.
    pub(super) fn release_progress(&mut self, now: Moment, key: Key) {
        let Some(inbound) = self.running_mut(key) else { return };
        if let Some((_, progress)) = inbound.progress.held.take() {
            self.queue_progress(now, key, *progress);
        }
    }

    /// The request is about to be answered: what was held back goes first.
    pub(super) fn flush_progress(&mut self, now: Moment, key: Key) {
        let Some(inbound) = self.running_mut(key) else { return };
        let Some((when, progress)) = inbound.progress.held.take() else { return };
        self.timers.clear(when, Purpose::Progress(key));
        self.queue_progress(now, key, *progress);
    }

    fn queue_progress(&mut self, now: Moment, key: Key, progress: Progress) {
        let Some(inbound) = self.running(key) else { return };
        let Some(token) = inbound.progress_token.clone() else { return };
        let (queued, revision) = (inbound.progress.ticket, inbound.peer.revision);
        let mut params = ProgressParams::new(token, progress.progress);
        params.total = progress.total.filter(|total| total.is_finite());
        params.message = progress.message;
        let body = encode::notification_of(revision, Method::Progress, &params);
        let ticket = match queued.map(|ticket| (ticket, self.outbox.holds(ticket))) {
            Some((ticket, true)) => {
                self.statistics.dropped_notifications += 1;
                // It was held a moment ago, by the line above.
                let _ = self.outbox.replace(ticket, body);
                ticket
            }
            _ => self.outbox.push(TransmitKind::Notification(Method::Progress), body, Some(key)),
        };
        if let Some(inbound) = self.running_mut(key) {
            inbound.progress.ticket = Some(ticket);
            inbound.progress.last = Some(now);
        }
    }
}
