//! Subscriptions that this client has opened (`subscriptions/listen`): their notifications, and their end by the server.

use steadfast_model::{Meta, Method, RequestId};

use crate::connection::{CallEnd, CallKey, Connection, ConnectionEvent, ProtocolWarning};
use crate::envelope::Params;

impl Connection {
    /// The `subscriptions/listen` call of this client that a notification belongs to, found by the subscription id in the
    /// notification.
    pub(in crate::connection) fn listen_call_of(&self, params: &Params<'_>) -> Option<CallKey> {
        let meta: Meta = serde_json::from_str(params.get("_meta")?).ok()?;
        self.answerable_call(&meta.subscription_id()?)
    }

    /// Ends a subscription of this client because the server has ended it.
    pub(in crate::connection) fn end_listen_call(&mut self, id: &RequestId) {
        let key = self.answerable_call(id);
        let listens =
            |key: &CallKey| self.outbound.calls.get(key).is_some_and(|waiting| waiting.method == Method::Listen);
        let Some(call) = key.filter(listens) else {
            self.statistics.late_cancels += 1;
            return self.warn(ProtocolWarning::LateCancel(id.clone()));
        };
        self.end_call(call);
        self.events.push_back(ConnectionEvent::CallEnded { call, outcome: CallEnd::EndedByPeer });
    }
}
