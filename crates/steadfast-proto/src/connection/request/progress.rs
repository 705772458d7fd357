//! Sends progress and log messages of running requests: in order, never after the end of the request, and limited in rate.
//!
//! At most one progress notification of a request is in the outbox: a newer progress notification replaces it. Two progress
//! notifications are at least `progress_interval` apart: a report that comes sooner is held back, replaced by newer reports,
//! and sent when the interval has passed or before the response.

use serde_json::Value;
use steadfast_model::{LoggingLevel, LoggingMessageParams, Method, ProgressParams};

use crate::connection::Connection;
use crate::connection::key::InboundRequestKey;
use crate::connection::outbox::{OutboxFrameKey, TransmitKind};
use crate::connection::timer::TimerPurpose;
use crate::coverage::Input;
use crate::{Moment, encode};

/// A progress report of a handler: how far its request has come.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ProgressReport {
    /// The progress of the request so far. The progress has to increase from one report to the next; other reports
    /// are dropped.
    pub progress: f64,
    /// The total that `progress` is a part of, if it is known.
    pub total: Option<f64>,
    /// A message for users about the progress of the request.
    pub message: Option<String>,
}

impl ProgressReport {
    /// A progress report without a total and without a message.
    pub const fn new(progress: f64) -> Self {
        Self { progress, total: None, message: None }
    }

    /// Adds the total to this progress report.
    #[must_use]
    pub const fn with_total(mut self, total: f64) -> Self {
        self.total = Some(total);
        self
    }

    /// Adds a message for users to this progress report.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }
}

/// The progress of one running request, with the progress notification that is queued or held back.
#[derive(Debug, Clone, Default)]
pub(in crate::connection) struct OutboundProgressState {
    /// The largest progress that was reported so far.
    pub(in crate::connection) value: Option<f64>,
    /// When the last progress notification was queued.
    last: Option<Moment>,
    /// The ticket of the last progress notification in the outbox.
    ticket: Option<OutboxFrameKey>,
    /// A newer progress report that is held back, and until when.
    held: Option<(Moment, Box<ProgressReport>)>,
}

impl OutboundProgressState {
    pub(in crate::connection) fn held_until(&self) -> Option<Moment> {
        self.held.as_ref().map(|(when, _)| *when)
    }

    pub(in crate::connection) fn queued(&self) -> Option<OutboxFrameKey> {
        self.ticket
    }

    pub(in crate::connection) fn last_at(&self) -> Option<Moment> {
        self.last
    }
}

/// Commands.
impl Connection {
    /// Reports progress on an open request of the peer that asked for progress. Otherwise nothing happens.
    pub fn progress(&mut self, now: Moment, key: InboundRequestKey, progress: ProgressReport) {
        self.count_input(Input::Progress);
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
            self.timers.set(due, TimerPurpose::Progress(key));
            return;
        }
        self.queue_progress(now, key, progress);
    }

    /// Sends a log message about an open request of the peer, if the peer wants log messages of this level.
    pub fn log(&mut self, key: InboundRequestKey, level: LoggingLevel, logger: Option<String>, data: Value) {
        self.count_input(Input::Log);
        let connection_level = self.log_level;
        let most = self.limits.queued_logs;
        let (outbox, executions, inbound) = (&mut self.outbox, &self.executions, &mut self.inbound);
        let entry =
            executions.get(&key).and_then(|execution| inbound.get_mut(&execution.id)).filter(|entry| entry.key == key);
        let Some(inbound) = entry else { return };
        let least = if inbound.peer.revision.is_stateless() { inbound.log_level } else { Some(connection_level) };
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
    /// Sends the progress report of a request that was held back, as its time has come.
    pub(in crate::connection) fn release_progress(&mut self, now: Moment, key: InboundRequestKey) {
        let Some(inbound) = self.running_mut(key) else { return };
        if let Some((_, progress)) = inbound.progress.held.take() {
            self.queue_progress(now, key, *progress);
        }
    }

    /// Sends progress that was held back before the response to the request is sent.
    pub(in crate::connection) fn flush_progress(&mut self, now: Moment, key: InboundRequestKey) {
        let Some(inbound) = self.running_mut(key) else { return };
        let Some((when, progress)) = inbound.progress.held.take() else { return };
        self.timers.clear(when, TimerPurpose::Progress(key));
        self.queue_progress(now, key, *progress);
    }

    fn queue_progress(&mut self, now: Moment, key: InboundRequestKey, progress: ProgressReport) {
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
                // The line above has checked that it is queued.
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
