//! Streams of notifications (2026-07-28): what is told about an open `subscriptions/listen`, and its end.
//!
//! A subscription is a request like any other, that is answered when it ends. While it is open, notifications belong to
//! it: they are told in order, each at most once while it waits, and none after the end (L3, L9). When the connection
//! begins to end the subscription ends first, with the result that says so. One that was not acknowledged by then is refused:
//! a peer never sees the result of a subscription before its acknowledgement.

use steadfast_model::era::{self, Decoration};
use steadfast_model::{CancelledParams, ErrorObject, ListenResult, Method, meta};

use super::event::CancelReason;
use super::handshake::Hello;
use super::key::Key;
use super::outbox::TransmitKind;
use super::{CloseCause, Connection};
use crate::coverage::Input;
use crate::encode::{self, Answer};

/// Commands.
impl Connection {
    /// Tells the peer something that belongs to an open request of its, `params` being the text of a JSON object. While the
    /// same waits to be written it is not queued again. Returns whether it will be told: not if the request has ended, nor
    /// if its revision has no such notification, nor if more wait than the limit allows.
    pub fn notify_about(&mut self, key: Key, method: Method, params: &str) -> bool {
        self.notify_newest(key, method, params, params)
    }

    /// The same for something that changes: while another notification about the same subject waits to be written, this one
    /// takes its place, so that the newest is told and what nobody reads stays bounded.
    pub fn notify_newest(&mut self, key: Key, method: Method, subject: &str, params: &str) -> bool {
        self.cover(Input::NotifyAbout);
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
        if !method.row().notification || !self.hello.may_send(method, entry.peer.revision) {
            return false;
        }
        let notice = (method, Box::<str>::from(subject));
        if let Some(ticket) = entry.notices.get(&notice).filter(|ticket| outbox.holds(**ticket)) {
            if subject != params {
                // It waits, so that it can be replaced.
                let _ = outbox.replace(*ticket, encode::notification(method.name(), Some(params)));
            }
            return true;
        }
        if entry.notices.len() > most {
            entry.notices.retain(|_, ticket| outbox.holds(*ticket));
        }
        // Changes of three lists may be told beside those of single things, and the acknowledgement.
        if entry.notices.len() > most.saturating_add(4) {
            self.statistics.dropped_notifications += 1;
            return false;
        }
        let ticket = outbox.push(
            TransmitKind::Notification(method),
            encode::notification(method.name(), Some(params)),
            Some(key),
        );
        entry.notices.insert(notice, ticket);
        entry.acknowledged |= method == Method::SubscriptionAcknowledged;
        true
    }
}

impl Connection {
    /// Whether another subscription may be opened.
    pub(super) fn admit_subscription(&self) -> Result<(), ErrorObject> {
        if self.stage.drain().is_some() {
            return Err(ending());
        }
        let limit = self.limits.subscriptions;
        let open = self.inbound.values().filter(|inbound| inbound.method == Method::Listen).count();
        if open >= limit && !crate::mutant!(IgnoreSubscriptionLimit) {
            let message = format!("{limit} subscriptions are open, which is the limit; end one first");
            return Err(
                ErrorObject::internal(message).with_data(serde_json::json!({ "limit": limit, "retryable": true }))
            );
        }
        Ok(())
    }

    /// Ends every subscription with its result; on a stream that others share, a notification says so too.
    pub(super) fn end_subscriptions(&mut self, cause: CloseCause) {
        let reason = match cause {
            CloseCause::Shutdown => CancelReason::Shutdown,
            CloseCause::PeerClosed | CloseCause::OutputFailed => CancelReason::ConnectionClosed,
        };
        let open = self.inbound.values().filter(|inbound| inbound.method == Method::Listen);
        for key in open.map(|inbound| inbound.key).collect::<Vec<_>>() {
            self.end_subscription_here(key);
            self.stop(key, reason);
        }
    }

    fn end_subscription_here(&mut self, key: Key) {
        let Some(id) = self.executions.get(&key).map(|execution| execution.id.clone()) else { return };
        let Some(inbound) = self.running(key) else { return };
        let acknowledged = inbound.acknowledged || crate::mutant!(EndUnacknowledged);
        if !acknowledged || crate::mutant!(FailSubscriptions) {
            return self.end_answered(key, Answer::error(&id, &ending()));
        }
        let revision = inbound.peer.revision;
        let decoration = match &*self.hello {
            Hello::Server(hello) => hello.decoration().clone(),
            Hello::Client(_) => Decoration::none(),
        };
        let decoration = decoration.with_meta(meta::key::SUBSCRIPTION_ID, &id);
        let result = ListenResult::default();
        let answer = Answer::result(&id, |out| era::write_result(revision, &result, &decoration, out));
        self.end_answered(key, answer);
        if !self.one_exchange && !crate::mutant!(EndSilently) {
            let cancelled = CancelledParams::new(id);
            let body = encode::notification_of(revision, Method::Cancelled, &cancelled);
            self.outbox.push(TransmitKind::Notification(Method::Cancelled), body, Some(key));
        }
    }
}

fn ending() -> ErrorObject {
    ErrorObject::internal("the connection is ending: there is nothing more to listen to")
}
