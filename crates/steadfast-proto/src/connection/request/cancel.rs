//! Cancellation of a request by the peer: nothing more is sent about a cancelled request (law L3), and a late cancellation has
//! no effect (law L4).

use steadfast_model::error::excerpt;
use steadfast_model::{CancelledParams, Method, RequestId};

use crate::connection::Connection;
use crate::connection::event::{CancelReason, ProtocolWarning};
use crate::connection::handshake::ClientOrServerDescription;
use crate::coverage::{self, Effect};
use crate::envelope::Params;

impl Connection {
    pub(in crate::connection) fn receive_cancelled(&mut self, params: &Params<'_>) {
        let cancelled: CancelledParams = serde_json::from_str(params.text()).unwrap_or_default();
        let Some(id) = cancelled.request_id.filter(|id| id.json_length() <= crate::salvage::LONGEST_ID) else {
            return self.warn(ProtocolWarning::MalformedCancel);
        };
        if let Some(reason) = cancelled.reason {
            self.warn(ProtocolWarning::Cancelled { id: id.clone(), reason: excerpt(&reason).into_owned() });
        }
        // In stateless revisions a server ends a subscription in this way; in others it cancels a request of its own.
        let names_a_call = matches!(*self.hello, ClientOrServerDescription::Client(_)) && self.is_stateless();
        if names_a_call {
            return self.end_listen_call(&id);
        }
        self.cancel_by_peer(&id);
    }

    fn cancel_by_peer(&mut self, id: &RequestId) {
        let mut key =
            self.inbound.get(id).filter(|inbound| inbound.method != Method::Initialize).map(|inbound| inbound.key);
        if crate::mutant!(ConfuseTextAndNumber) && key.is_none() {
            let number = RequestId::parse(id.to_string().trim_matches('"'));
            key = number.and_then(|number| self.inbound.get(&number)).map(|inbound| inbound.key);
        }
        let Some(key) = key else {
            #[cfg(mutants)]
            assert!(
                !crate::mutant!(PanicOnLateCancel),
                "mutant PanicOnLateCancel: the peer cancelled a request that is not open"
            );
            self.statistics.late_cancels += 1;
            return self.warn(ProtocolWarning::LateCancel(id.clone()));
        };
        if crate::mutant!(AnswerAfterCancel) {
            return self.stop(key, CancelReason::Peer);
        }
        if crate::mutant!(IgnoreCancellations) {
            return;
        }
        let Some((_, inbound)) = self.take_out(key) else { return };
        coverage::effect(Effect::RequestCancelled);
        self.statistics.cancelled += 1;
        if !crate::mutant!(KeepFramesOfCancelled) {
            for ticket in inbound.tickets() {
                self.outbox.withdraw(ticket);
            }
        }
        self.leave_batch(inbound.batch, Some(key));
        self.stop(key, CancelReason::Peer);
    }
}
