//! Notifications: those of the peer are handed to the part of the connection that they concern, ours that belong to no request
//! are queued once.

use steadfast_model::{Method, VendorMethod};

use super::{Connection, Event, ProtocolWarning, RequestKey};
use crate::Moment;
use crate::connection::outbox::TransmitKind;
use crate::coverage::Input;
use crate::encode;
use crate::envelope::Params;

/// Commands.
impl Connection {
    /// Sends a notification without parameters, unless the same one is already queued. Returns whether it is sent: the revision
    /// of the peer has to have it, and the peer has to be ready for it.
    pub fn notify_once(&mut self, method: Method) -> bool {
        self.notify_once_of(method, None)
    }

    /// Sends a notification with parameters, the text of a JSON object, unless the same one is already queued. The caller has to
    /// limit how many different ones are queued.
    pub fn notify_once_of(&mut self, method: Method, params: Option<&str>) -> bool {
        self.count_input(Input::Notify);
        let Some(peer) = &self.peer else { return false };
        let sends = self.hello.may_send(method, peer.revision);
        if !self.initialized || !sends || self.stage.is_closed() {
            return false;
        }
        let notification = (method, params.map(Box::from));
        let queued = self.queued_notifications.get(&notification).is_some_and(|ticket| self.outbox.holds(*ticket));
        if !queued {
            // Entries of notifications that were sent are removed from time to time.
            if self.queued_notifications.len() >= 64 && self.queued_notifications.len().is_power_of_two() {
                self.queued_notifications.retain(|_, ticket| self.outbox.holds(*ticket));
            }
            let body = encode::notification(method.name(), params);
            let ticket = self.outbox.push(TransmitKind::Notification(method), body, None);
            self.queued_notifications.insert(notification, ticket);
        }
        true
    }
}

/// Notifications that are not in the specification.
impl Connection {
    /// Sends a notification of a vendor; `params` is the text of a JSON object. With a request of the peer, it belongs to that
    /// request, and is sent before its response. Returns whether it will be sent: not if the request has ended, the peer is not
    /// ready for it, or as many wait to be written as [`Limits::queued_logs`](super::Limits::queued_logs) allows.
    pub fn notify_vendor(&mut self, request: Option<RequestKey>, method: VendorMethod, params: &str) -> bool {
        self.count_input(Input::Notify);
        let method = Method::Vendor(method);
        let most = self.limits.queued_logs;
        let (outbox, executions, inbound) = (&mut self.outbox, &self.executions, &mut self.inbound);
        let (revision, queued) = if let Some(key) = request {
            let entry = executions.get(&key).and_then(|execution| inbound.get_mut(&execution.id));
            let Some(entry) = entry.filter(|entry| entry.key == key) else { return false };
            (entry.peer.revision, &mut entry.logs)
        } else {
            let ready = self.initialized && !self.stage.is_closed();
            let Some(peer) = self.peer.as_ref().filter(|_| ready) else { return false };
            (peer.revision, &mut self.queued_vendor_notifications)
        };
        if !method.is_notification() || !self.hello.may_send(method, revision) {
            return false;
        }
        if queued.len() >= most {
            queued.retain(|ticket| outbox.holds(*ticket));
        }
        if queued.len() >= most {
            self.statistics.dropped_notifications += 1;
            return false;
        }
        let body = encode::notification(method.name(), Some(params));
        queued.push(outbox.push(TransmitKind::Notification(method), body, request));
        true
    }
}

impl Connection {
    pub(super) fn receive_notification(&mut self, now: Moment, name: &str, params: &Params<'_>) {
        let revision = self.revision();
        let known = self.hello.find_method(name).filter(|method| method.is_notification());
        let Some(method) = known.filter(|method| self.hello.may_receive(*method, revision)) else {
            return self.warn(ProtocolWarning::UnknownNotification(name.chars().take(128).collect()));
        };
        match method {
            Method::Cancelled => self.receive_cancelled(params),
            Method::Progress => self.receive_progress(now, params),
            Method::Initialized => self.receive_initialized(),
            _ => {
                let is_vendor = matches!(method, Method::Vendor(_));
                let call = if is_vendor { None } else { self.listen_call_of(params) };
                self.events.push_back(Event::Notification { call, method, params: params.to_owned() });
            }
        }
    }
}
