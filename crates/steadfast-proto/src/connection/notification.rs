//! Notifications: those of the peer are handed to the part of the connection that they concern, ours that belong to no request
//! are queued once.

use steadfast_model::Method;

use super::{Connection, Event, ProtocolWarning};
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

impl Connection {
    pub(super) fn receive_notification(&mut self, now: Moment, name: &str, params: &Params<'_>) {
        let revision = self.revision();
        let known = Method::from_name(name).filter(|method| method.is_notification());
        let Some(method) = known.filter(|method| self.hello.may_receive(*method, revision)) else {
            return self.warn(ProtocolWarning::UnknownNotification(name.chars().take(128).collect()));
        };
        match method {
            Method::Cancelled => self.receive_cancelled(params),
            Method::Progress => self.receive_progress(now, params),
            Method::Initialized => self.receive_initialized(),
            _ => {
                let call = self.listen_call_of(params);
                self.events.push_back(Event::Notification { call, method, params: params.to_owned() });
            }
        }
    }
}
