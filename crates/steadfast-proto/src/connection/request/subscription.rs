//! Subscriptions of clients to this server (`subscriptions/listen`, since 2026-07-28): their notifications and their end.
//!
//! A subscription is a request that is answered when the subscription ends. The notifications of a subscription are sent in
//! order, each queued at most once, and none after its end (laws L3 and L9). When the connection begins to shut down,
//! subscriptions end first, with their result. A subscription that was not acknowledged by then is answered with an error: a
//! client never gets the result of a subscription before its acknowledgement.

use steadfast_model::wire::{self, PerMessageMembers};
use steadfast_model::{CancelledParams, ErrorObject, ListenResult, Method, meta};

use crate::connection::event::CancelReason;
use crate::connection::handshake::ClientOrServerDescription;
use crate::connection::key::InboundRequestKey;
use crate::connection::outbox::TransmitKind;
use crate::connection::{CloseCause, Connection};
use crate::coverage::Input;
use crate::encode::{self, EncodedResponse};

/// Commands.
impl Connection {
    /// Sends a notification that belongs to an open request of the peer; `params` is the text of a JSON object. If the same
    /// notification is already queued, it is not queued again. Returns whether the notification will be sent: not if the
    /// request has ended, its revision has no such notification, or the limit of queued notifications is reached.
    pub fn notify_about(&mut self, key: InboundRequestKey, method: Method, params: &str) -> bool {
        self.notify_newest(key, method, params, params)
    }

    /// Sends a notification that replaces a queued notification about the same subject, so that only the newest is
    /// sent and the queue stays bounded. Returns whether the notification will be sent, like
    /// [`Connection::notify_about`].
    pub fn notify_newest(&mut self, key: InboundRequestKey, method: Method, subject: &str, params: &str) -> bool {
        self.count_input(Input::NotifyAbout);
        let most = self.limits.subscribed;
        let (outbox, executions, inbound) = (&mut self.outbox, &self.executions, &mut self.inbound);
        let entry =
            executions.get(&key).and_then(|execution| inbound.get_mut(&execution.id)).filter(|entry| entry.key == key);
        let Some(entry) = entry else {
            if crate::mutant!(TellTheCancelled) {
                outbox.push(
                    TransmitKind::Notification(method),
                    encode::notification(method.name(), Some(params)),
                    None,
                );
            }
            return false;
        };
        if crate::mutant!(ForgetAcknowledgements) && method == Method::SubscriptionAcknowledged {
            return false;
        }
        if crate::mutant!(LoseChanges) && method != Method::SubscriptionAcknowledged {
            return true;
        }
        if !method.is_notification() || !self.hello.may_send(method, entry.peer.revision) {
            return false;
        }
        let notification = (method, Box::<str>::from(subject));
        if let Some(ticket) = entry.queued_notifications.get(&notification).filter(|ticket| outbox.holds(**ticket)) {
            if subject != params {
                // It is queued, so it can be replaced.
                let _ = outbox.replace(*ticket, encode::notification(method.name(), Some(params)));
            }
            return true;
        }
        if entry.queued_notifications.len() > most {
            entry.queued_notifications.retain(|_, ticket| outbox.holds(*ticket));
        }
        // Beside notifications about single resources and tasks there are those about three lists, and the acknowledgement.
        if entry.queued_notifications.len() > most.saturating_add(4) {
            self.statistics.dropped_notifications += 1;
            return false;
        }
        let ticket = outbox.push(
            TransmitKind::Notification(method),
            encode::notification(method.name(), Some(params)),
            Some(key),
        );
        entry.queued_notifications.insert(notification, ticket);
        entry.acknowledged |= method == Method::SubscriptionAcknowledged;
        true
    }
}

impl Connection {
    /// Checks that the client may open another subscription: not while the connection shuts down, and not beyond the
    /// limit of open subscriptions.
    pub(in crate::connection) fn admit_subscription(&self) -> Result<(), ErrorObject> {
        if self.stage.drain().is_some() {
            return Err(ending());
        }
        let limit = self.limits.subscriptions;
        let open = self.inbound.values().filter(|inbound| inbound.method == Method::Listen).count();
        if open >= limit && !crate::mutant!(IgnoreSubscriptionLimit) {
            let message =
                format!("subscription limit reached: {limit} subscriptions are open; end a subscription first");
            return Err(
                ErrorObject::internal(message).with_data(serde_json::json!({ "limit": limit, "retryable": true }))
            );
        }
        Ok(())
    }

    /// Ends every subscription of the client with its result; if the connection serves other requests too, also with
    /// `notifications/cancelled`.
    pub(in crate::connection) fn end_subscriptions(&mut self, cause: CloseCause) {
        let reason = match cause {
            CloseCause::Shutdown => CancelReason::Shutdown,
            CloseCause::PeerClosed | CloseCause::OutputFailed => CancelReason::ConnectionClosed,
        };
        let open = self.inbound.values().filter(|inbound| inbound.method == Method::Listen);
        for key in open.map(|inbound| inbound.key).collect::<Vec<_>>() {
            self.end_inbound_subscription(key);
            self.stop(key, reason);
        }
    }

    fn end_inbound_subscription(&mut self, key: InboundRequestKey) {
        let Some(id) = self.executions.get(&key).map(|execution| execution.id.clone()) else { return };
        let Some(inbound) = self.running(key) else { return };
        let acknowledged = inbound.acknowledged || crate::mutant!(EndUnacknowledged);
        if !acknowledged || crate::mutant!(FailSubscriptions) {
            return self.end_answered(key, EncodedResponse::error(&id, &ending()));
        }
        let revision = inbound.peer.revision;
        let common_members = match &*self.hello {
            ClientOrServerDescription::Server(hello) => hello.common_members().clone(),
            ClientOrServerDescription::Client(_) => PerMessageMembers::none(),
        };
        let common_members = common_members.with_meta(meta::key::SUBSCRIPTION_ID, &id);
        let result = ListenResult::default();
        let answer = EncodedResponse::result(&id, |out| wire::write_result(revision, &result, &common_members, out));
        self.end_answered(key, answer);
        if !self.single_request && !crate::mutant!(EndSilently) {
            let cancelled = CancelledParams::new(id);
            let body = encode::notification_of(revision, Method::Cancelled, &cancelled);
            self.outbox.push(TransmitKind::Notification(Method::Cancelled), body, Some(key));
        }
    }
}

fn ending() -> ErrorObject {
    ErrorObject::internal("the connection is shutting down: the subscription cannot be opened")
}
