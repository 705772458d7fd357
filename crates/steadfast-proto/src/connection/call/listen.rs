//! Subscriptions of ours (`subscriptions/listen`): the notifications that belong to them, and their end by the server.

use steadfast_model::{Meta, Method, RequestId};

use crate::connection::{CallEnd, CallKey, Connection, ConnectionEvent, ProtocolWarning};
use crate::envelope::Params;

impl Connection {
    /// The call of this side that subscribed to a notification, by the subscription id that the notification names.
    pub(in crate::connection) fn listen_call_of(&self, params: &Params<'_>) -> Option<CallKey> {
        let meta: Meta = serde_json::from_str(params.get("_meta")?).ok()?;
        self.answerable_call(&meta.subscription_id()?)
    }

    /// The server has ended a subscription of ours.
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
