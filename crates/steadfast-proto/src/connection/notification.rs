//! Notifications of the peer are handed to the part of the connection that they concern. A notification of the
//! specification that belongs to no request is not queued again while the same notification is still in the outbox.

use steadfast_model::{Method, VendorMethod};

use super::{Connection, ConnectionEvent, InboundRequestKey, ProtocolWarning};
use crate::Moment;
use crate::connection::outbox::TransmitKind;
use crate::coverage::Input;
use crate::encode;
use crate::envelope::Params;

/// Commands.
impl Connection {
    /// Sends a notification without parameters to the peer, unless the same notification is already queued. Returns whether the
    /// notification is sent: the revision of the peer has to have the notification, and the peer has to be ready for it.
    pub fn notify_once(&mut self, method: Method) -> bool {
        self.notify_once_of(method, None)
    }

    /// Sends a notification with parameters (the text of a JSON object) to the peer, unless the same notification is already
    /// queued. The caller has to limit how many different notifications are queued.
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

/// Sends vendor notifications, which are not in the specification.
impl Connection {
    /// Sends a notification of a vendor; `params` is the text of a JSON object. If `request` is given, the notification belongs
    /// to that request of the peer, and is sent before the response to it. Returns whether the notification will be sent: not
    /// if the request has ended or the peer is not ready; not if the request already has as many queued notifications as
    /// [`Limits::queued_logs`](super::Limits::queued_logs) allows, or, without a request, if
    /// [`Limits::outbox_bytes`](super::Limits::outbox_bytes) are queued.
    pub fn notify_vendor(&mut self, request: Option<InboundRequestKey>, method: VendorMethod, params: &str) -> bool {
        self.count_input(Input::Notify);
        let method = Method::Vendor(method);
        let (outbox, executions, inbound) = (&mut self.outbox, &self.executions, &mut self.inbound);
        let mut queued = None;
        let (revision, full) = if let Some(key) = request {
            let entry = executions.get(&key).and_then(|execution| inbound.get_mut(&execution.id));
            let Some(entry) = entry.filter(|entry| entry.key == key) else { return false };
            let most = self.limits.queued_logs;
            if entry.logs.len() >= most {
                entry.logs.retain(|ticket| outbox.holds(*ticket));
            }
            let full = entry.logs.len() >= most;
            queued = Some(&mut entry.logs);
            (entry.peer.revision, full)
        } else {
            let ready = self.initialized && !self.stage.is_closed();
            let Some(peer) = self.peer.as_ref().filter(|_| ready) else { return false };
            (peer.revision, outbox.bytes() >= self.limits.outbox_bytes)
        };
        if !method.is_notification() || !self.hello.may_send(method, revision) {
            return false;
        }
        if full {
            self.statistics.dropped_notifications += 1;
            return false;
        }
        let ticket =
            outbox.push(TransmitKind::Notification(method), encode::notification(method.name(), Some(params)), request);
        if let Some(queued) = queued {
            queued.push(ticket);
        }
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
                self.events.push_back(ConnectionEvent::Notification { call, method, params: params.to_owned() });
            }
        }
    }
}
