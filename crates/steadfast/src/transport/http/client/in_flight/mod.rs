//! The calls that are on their way, by their keys and by their ids.

pub(crate) mod delivery;

use std::collections::BTreeMap;

use steadfast_model::RequestId;
use steadfast_proto::connection::CallKey;

use delivery::SentRequest;

#[derive(Default)]
pub(crate) struct InFlightCalls {
    calls: BTreeMap<CallKey, Call>,
    keys: BTreeMap<RequestId, CallKey>,
    /// Those that have ended for whoever made them, and may have to go on all the same.
    ended: Vec<CallKey>,
}

struct Call {
    id: Option<RequestId>,
    sent: SentRequest,
}

impl InFlightCalls {
    pub(crate) fn insert(&mut self, key: CallKey, id: Option<RequestId>, sent: SentRequest) {
        self.keys.extend(id.clone().map(|id| (id, key)));
        self.calls.insert(key, Call { id, sent });
    }

    /// The request with this id, for what is said of it to go behind it.
    pub(crate) fn take_out(&mut self, id: &RequestId) -> Option<SentRequest> {
        let key = self.keys.get(id).copied()?;
        self.remove(key)
    }

    /// Gives up those that have ended, now or before, unless `stays` says that they have to go on.
    pub(crate) fn give_up(
        &mut self,
        ended: impl IntoIterator<Item = CallKey>,
        stays: impl Fn(CallKey, &SentRequest) -> bool,
    ) {
        let mut all = std::mem::take(&mut self.ended);
        all.extend(ended);
        all.retain(|key| {
            let stays = self.calls.get(key).is_some_and(|call| stays(*key, &call.sent));
            if !stays {
                drop(self.remove(*key));
            }
            stays
        });
        self.ended = all;
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    fn remove(&mut self, key: CallKey) -> Option<SentRequest> {
        let Call { id, sent } = self.calls.remove(&key)?;
        if let Some(id) = id {
            self.keys.remove(&id);
        }
        Some(sent)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::runtime::TokioRuntime;
    use crate::transport::http::client::in_flight::delivery::Delivery;
    use crate::transport::http::client::task::RequestTask;

    /// Calls with their numbers for ids.
    fn underway(count: u64) -> InFlightCalls {
        let runtime = TokioRuntime::current().unwrap();
        let mut underway = InFlightCalls::default();
        for number in 0..count {
            let task = RequestTask::begin(&runtime, std::future::pending(), || ());
            let sent = SentRequest { task, delivery: Delivery::new() };
            underway.insert(CallKey::new(number), Some(id(number)), sent);
        }
        underway
    }

    fn id(number: u64) -> RequestId {
        RequestId::parse(&number.to_string()).unwrap()
    }

    /// Each turn of the driver comes by here, and it shares its thread.
    #[tokio::test]
    async fn nothing_is_asked_about_calls_that_go_on() {
        let (mut underway, asked) = (underway(100), Cell::new(0));
        let stays = |key, _: &SentRequest| {
            asked.set(asked.get() + 1);
            key == CallKey::new(7)
        };
        underway.give_up([CallKey::new(7), CallKey::new(8)], stays);
        assert_eq!(asked.take(), 2);
        underway.give_up([], stays);
        assert_eq!(asked.take(), 1, "the one that stays may not have to any more");
        underway.give_up([], |_, _| false);
        assert_eq!(
            (7..10).map(|number| underway.take_out(&id(number)).is_some()).collect::<Vec<_>>(),
            [false, false, true]
        );
    }

    #[tokio::test]
    async fn what_was_taken_out_is_not_there_any_more() {
        let mut underway = underway(2);
        assert!(underway.take_out(&id(1)).is_some() && underway.take_out(&id(1)).is_none());
        underway.give_up([CallKey::new(1)], |_, _| panic!("it is not there"));
        assert!(underway.take_out(&id(0)).is_some());
    }
}
