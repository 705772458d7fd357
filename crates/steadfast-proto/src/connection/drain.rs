//! The shutdown of a connection: handlers get some time to answer, then they are stopped, then the connection closes.
//!
//! The stages of a connection and their deadlines are in `stage.rs`.

use std::time::Duration;

use super::call::CallsAwaitingLateResult;
use super::stage::{ConnectionStage, DrainState};
use super::{CancelReason, CloseCause, Connection, ConnectionEvent};
use crate::Moment;
use crate::coverage::Input;

/// Getters.
impl Connection {
    /// Whether the connection is shutting down.
    pub fn is_draining(&self) -> bool {
        self.stage.drain().is_some()
    }

    /// Whether the connection holds back its queued output until the cleanups of handlers are done: the peer has left, and the
    /// handlers were stopped.
    pub fn is_quiet(&self) -> bool {
        self.stage.drain().is_some_and(|drain| drain.quiet)
    }

    /// Why the connection closed, if it is closed.
    pub fn closed(&self) -> Option<CloseCause> {
        match self.stage {
            ConnectionStage::Closed(cause) => Some(cause),
            _ => None,
        }
    }

    /// The maximum duration of the shutdown of a connection.
    pub fn drain_deadline(&self) -> Duration {
        self.limits.drain_deadline
    }
}

/// Inputs.
impl Connection {
    /// Handles the end of the input: the peer has closed its stream, and everything that it sent has been handled.
    pub fn handle_end_of_input(&mut self, now: Moment) {
        self.count_input(Input::StreamEnded);
        if self.input_ended || self.stage.is_closed() {
            return;
        }
        self.input_ended = true;
        self.fail_all_calls();
        self.begin_drain(now, CloseCause::PeerClosed);
        self.close_if_done();
    }

    /// Handles that the peer is gone before the end of its input was read: the input is not read because too much output is
    /// queued, or the server no longer knows the session of this HTTP client. The deadlines of the shutdown start when the
    /// driver reports that the peer is gone.
    pub fn handle_peer_gone(&mut self, now: Moment) {
        self.count_input(Input::PeerGone);
        self.begin_drain(now, CloseCause::PeerClosed);
        self.close_if_done();
    }

    /// Handles a failed write: the peer does not read any more.
    pub fn handle_write_failed(&mut self, now: Moment) {
        self.count_input(Input::WriteFailed);
        if self.stage.is_closed() {
            return;
        }
        self.output_failed = true;
        self.outbox.shut();
        self.fail_all_calls();
        self.begin_drain(now, CloseCause::OutputFailed);
        self.stop_at_once(now);
        self.close_if_done();
    }

    /// Handles that the peer has ended the session explicitly, as an HTTP DELETE does. Handlers are stopped at once, without
    /// time to answer. The peer that ended the session may still read, so open requests are answered with an error.
    pub fn handle_peer_ended(&mut self, now: Moment) {
        self.count_input(Input::PeerEnded);
        if self.stage.is_closed() {
            return;
        }
        self.input_ended = true;
        self.fail_all_calls();
        self.begin_drain(now, CloseCause::PeerClosed);
        self.stop_at_once(now);
        if let Some(drain) = self.stage.drain() {
            // The peer has not left: it waits for these responses.
            self.stage = ConnectionStage::Draining(DrainState { quiet: false, ..drain });
        }
        self.close_if_done();
    }
}

/// Commands.
impl Connection {
    /// Shuts down the connection: running handlers may answer for the time of `drain_window`, and new requests are refused. If
    /// the peer has left already, handlers are stopped at once: no peer waits for them, and the process is likely to be killed
    /// soon.
    pub fn shut_down(&mut self, now: Moment) {
        self.count_input(Input::ShutDown);
        if let Some(drain) = self.stage.drain().filter(|drain| drain.cause == CloseCause::PeerClosed) {
            self.stop_everything(drain.stopped_at(now));
        }
        self.begin_drain(now, CloseCause::Shutdown);
        self.close_if_done();
    }

    /// Shuts down the connection at once: it waits only for the cleanups of handlers.
    pub fn shut_down_now(&mut self, now: Moment) {
        self.count_input(Input::ShutDownNow);
        self.begin_drain(now, CloseCause::Shutdown);
        if let Some(drain) = self.stage.drain() {
            self.stop_everything(drain.stopped_at(now));
        }
        self.close_if_done();
    }
}

impl Connection {
    pub(in crate::connection) fn begin_drain(&mut self, now: Moment, cause: CloseCause) {
        if !self.stage.is_live() {
            return;
        }
        let window = now + self.limits.handler_window();
        let deadline = self.limits.drain_deadline;
        let for_cleanups = deadline.saturating_sub(self.limits.handler_window());
        self.stage = ConnectionStage::Draining(DrainState {
            cause,
            window: Some(window),
            quiet: false,
            release_output_at: now + deadline.saturating_sub(for_cleanups / 2),
            deadline: now + deadline,
        });
        self.end_subscriptions(cause);
    }

    /// Stops all handlers now, before the time in which they may answer is over. The cleanups of handlers that are
    /// stopped early get as much time as those of handlers that used all of their time to answer.
    pub(in crate::connection) fn stop_at_once(&mut self, now: Moment) {
        let Some(drain) = self.stage.drain() else { return };
        let grace = self.limits.drain_deadline.saturating_sub(self.limits.handler_window());
        let drain = DrainState { deadline: drain.deadline.min(now + grace), ..drain };
        self.stage = ConnectionStage::Draining(drain);
        self.stop_everything(drain);
    }

    /// Answers all open requests with an error and stops all handlers, because their time to answer is over.
    pub(in crate::connection) fn stop_everything(&mut self, drain: DrainState) {
        if drain.window.is_none() {
            return;
        }
        // The errors to a peer that has left are held back until the cleanups have run.
        let quiet = drain.cause == CloseCause::PeerClosed && !self.executions.is_empty();
        self.stage = ConnectionStage::Draining(DrainState { window: None, quiet, ..drain });
        let reason = match drain.cause {
            CloseCause::Shutdown => CancelReason::Shutdown,
            CloseCause::PeerClosed | CloseCause::OutputFailed => CancelReason::ConnectionClosed,
        };
        self.fail_open_requests(reason);
        self.fail_all_calls();
    }

    /// Closes a connection that is shutting down if there is nothing left to wait for.
    pub(in crate::connection) fn close_if_done(&mut self) {
        let Some(mut drain) = self.stage.drain() else { return };
        if drain.quiet && self.executions.is_empty() {
            drain.quiet = false;
            self.stage = ConnectionStage::Draining(drain);
        }
        // The input that the peer sent before it left is still read, unless the window is over.
        let input_done = self.input_ended || drain.window.is_none() || drain.cause != CloseCause::PeerClosed;
        if input_done && self.inbound.is_empty() && self.executions.is_empty() && self.outbox.is_flushed() {
            self.close(drain.cause);
        }
    }

    pub(in crate::connection) fn close(&mut self, cause: CloseCause) {
        if self.stage.is_closed() {
            return;
        }
        if let Some(drain) = self.stage.drain() {
            self.stop_everything(drain);
        }
        self.fail_all_calls();
        self.statistics.abandoned = self.executions.len();
        self.stage = ConnectionStage::Closed(cause);
        self.outbox.shut();
        self.batches.clear();
        self.queued_notifications.clear();
        self.late = CallsAwaitingLateResult::default();
        self.timers.clear_all();
        self.events.push_back(ConnectionEvent::Closed(cause));
    }
}
