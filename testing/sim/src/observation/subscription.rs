//! What is seen of one `subscriptions/listen`, and the laws as they look from its client.
//!
//! Times are positions in what the client is given: a notification that was written before a change does not tell of it.

use std::collections::BTreeMap;

use crate::law::{Law, Violation};
use crate::observation::json::Json;
use crate::script::changes::{Change, Filter};

const ID: &str = "io.modelcontextprotocol/subscriptionId";

/// One subscription.
#[derive(Debug)]
pub(crate) struct SubscriptionFacts {
    filter: Filter,
    pub(crate) acknowledged: bool,
    /// It has been answered: with its result, or with an error.
    pub(crate) ended: bool,
    /// The client has given it up, or the server may have begun to end it.
    pub(crate) given_up: bool,
    /// How often each thing has changed since the client subscribed, without the changes that were notified.
    changes: BTreeMap<Change, u64>,
    /// What changed while the subscription was open for certain, and where the client was then.
    owed: BTreeMap<Change, u64>,
    /// Of these, what the server has had the time to write.
    late: BTreeMap<Change, u64>,
}

/// The subscription that a notification says it belongs to, as JSON text.
pub(crate) fn id_of(params: &Json<'_>) -> Option<String> {
    params["_meta"].get(ID).map(Json::to_string)
}

impl SubscriptionFacts {
    pub(crate) fn new(filter: Filter) -> Self {
        Self {
            filter,
            acknowledged: false,
            ended: false,
            given_up: false,
            changes: BTreeMap::new(),
            owed: BTreeMap::new(),
            late: BTreeMap::new(),
        }
    }

    /// It is open for certain.
    pub(crate) fn is_open(&self) -> bool {
        self.acknowledged && !self.ended && !self.given_up
    }

    /// How many resources it names, the same one twice if it is named twice.
    pub(crate) fn resources(&self) -> usize {
        self.filter.uris.len()
    }

    /// The client gives it up, or the connection begins to end.
    pub(crate) fn give_up(&mut self) {
        self.given_up = true;
        self.owed.clear();
    }

    /// The server is about to change; the client has been given this much.
    pub(crate) fn changed(&mut self, change: Change, position: u64) {
        *self.changes.entry(change).or_default() += 1;
        if self.is_open() && self.filter.wants(change) {
            self.owed.insert(change, position);
        }
    }

    /// Nothing can run: what is owed waits to be read now.
    pub(crate) fn settle(&mut self) {
        self.late.append(&mut self.owed.clone());
    }

    /// L2: a client that reads has been notified of everything.
    pub(crate) fn all_told(&self, id: &str) -> Result<(), Violation> {
        match self.owed.keys().next() {
            Some(change) => {
                broken(Law::Answer, format!("subscription {id}: expected a notification of {change:?}, observed none"))
            }
            None => Ok(()),
        }
    }

    /// A notification of this subscription, which ends at this position.
    pub(crate) fn notified(
        &mut self,
        id: &str,
        method: &str,
        params: &Json<'_>,
        position: u64,
    ) -> Result<(), Violation> {
        if self.ended {
            return broken(Law::Order, format!("subscription {id}: expected nothing after its end, observed {method}"));
        }
        if method == "notifications/subscriptions/acknowledged" {
            return self.acknowledge(id, params);
        }
        if !self.acknowledged {
            return broken(
                Law::Order,
                format!("subscription {id}: expected its acknowledgement first, observed {method}"),
            );
        }
        let Some(change) = Change::of_notification(method, params).filter(|change| self.filter.wants(*change)) else {
            return broken(
                Law::Identity,
                format!("subscription {id}: expected only notifications of its filter, observed {method}"),
            );
        };
        let changes = self.changes.entry(change).or_default();
        if *changes == 0 {
            return broken(
                Law::Identity,
                format!("subscription {id}: expected only changes that happened, observed {change:?}"),
            );
        }
        *changes -= 1;
        for due in [&mut self.owed, &mut self.late] {
            if due.get(&change).is_some_and(|changed| *changed < position) {
                due.remove(&change);
            }
        }
        Ok(())
    }

    fn acknowledge(&mut self, id: &str, params: &Json<'_>) -> Result<(), Violation> {
        if std::mem::replace(&mut self.acknowledged, true) {
            return broken(
                Law::OneEnding,
                format!("subscription {id}: expected one acknowledgement, observed a second"),
            );
        }
        if !self.filter.is_promised_by(&params["notifications"]) {
            let what = format!(
                "subscription {id}: expected the filter that it asked for, observed {}",
                params["notifications"]
            );
            return broken(Law::Identity, what);
        }
        Ok(())
    }

    /// Its request is answered. L1: once. L5: one that was acknowledged ends with its result, which names it. L9: after
    /// everything that waited to be read.
    pub(crate) fn answered(&mut self, id: &str, result: Option<&str>) -> Result<(), Violation> {
        if std::mem::replace(&mut self.ended, true) {
            return broken(Law::OneEnding, format!("subscription {id}: expected one end, observed a second"));
        }
        if !self.acknowledged {
            return match result {
                Some(_) => broken(
                    Law::Order,
                    format!("subscription {id}: expected its acknowledgement before its result, observed none"),
                ),
                None => Ok(()),
            };
        }
        let result = result.and_then(|result| Json::read(result.as_bytes()));
        let Some(result) = result else {
            return broken(
                Law::Closing,
                format!("subscription {id}: expected a result after its acknowledgement, observed an error"),
            );
        };
        if id_of(&result).as_deref() != Some(id) {
            return broken(
                Law::Identity,
                format!("subscription {id}: expected its own id in its result, observed another"),
            );
        }
        match self.late.keys().next() {
            Some(change) => broken(
                Law::Order,
                format!("subscription {id}: expected a notification of {change:?} before its end, observed none"),
            ),
            None => Ok(()),
        }
    }
}

fn broken(law: Law, what: String) -> Result<(), Violation> {
    Err(Violation { law, what })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LIST: &str = "notifications/tools/list_changed";
    const EMPTY: Json<'static> = Json::Object(Vec::new());

    fn open() -> SubscriptionFacts {
        let filter = Filter { tools: Some(true), ..Filter::default() };
        let mut facts = SubscriptionFacts::new(filter.clone());
        let params = json!({ "notifications": filter.to_json() }).to_string();
        let params = Json::read(params.as_bytes()).unwrap();
        assert_eq!(facts.notified("1", "notifications/subscriptions/acknowledged", &params, 1), Ok(()));
        facts
    }

    fn law(result: Result<(), Violation>) -> Option<Law> {
        result.err().map(|violation| violation.law)
    }

    #[test]
    fn a_change_is_owed_until_it_is_told_behind_it() {
        let mut facts = open();
        facts.changed(Change::Tools, 10);
        facts.changed(Change::Prompts, 10);
        assert_eq!(law(facts.all_told("1")), Some(Law::Answer));
        assert_eq!(facts.notified("1", LIST, &EMPTY, 11), Ok(()));
        assert_eq!(facts.all_told("1"), Ok(()));
        facts.changed(Change::Tools, 12);
        facts.changed(Change::Tools, 13);
        assert_eq!(facts.notified("1", LIST, &EMPTY, 12), Ok(()));
        assert_eq!(law(facts.all_told("1")), Some(Law::Answer));
    }

    #[test]
    fn what_was_not_asked_for_did_not_happen_or_comes_too_early_is_found() {
        let mut facts = open();
        assert_eq!(law(facts.notified("1", LIST, &EMPTY, 2)), Some(Law::Identity));
        facts.changed(Change::Prompts, 2);
        assert_eq!(law(facts.notified("1", "notifications/prompts/list_changed", &EMPTY, 3)), Some(Law::Identity));
        assert_eq!(law(facts.acknowledge("1", &EMPTY)), Some(Law::OneEnding));
        let mut facts = SubscriptionFacts::new(Filter::default());
        assert_eq!(law(facts.notified("1", LIST, &EMPTY, 2)), Some(Law::Order));
    }

    #[test]
    fn an_end_is_one_result_behind_what_waited() {
        let result = json!({ "_meta": { ID: 1 } }).to_string();
        let mut facts = open();
        facts.changed(Change::Tools, 10);
        assert_eq!(facts.answered("1", Some(&result)), Ok(()));
        assert_eq!(law(facts.answered("1", Some(&result))), Some(Law::OneEnding));
        assert_eq!(law(facts.notified("1", LIST, &EMPTY, 11)), Some(Law::Order));
        let mut facts = open();
        facts.changed(Change::Tools, 10);
        facts.settle();
        assert_eq!(law(facts.answered("1", Some(&result))), Some(Law::Order));
        assert_eq!(law(open().answered("1", None)), Some(Law::Closing));
    }
}
