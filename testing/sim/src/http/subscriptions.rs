//! What is seen of the subscriptions of clients of 2026-07-28, each on a response of its own.

use std::collections::BTreeMap;

use steadfast_proto::Moment;

use super::journal::{ExchangeFacts, Facts, Purpose};
use crate::law::{Law, Violation};
use crate::observation::json::Json;
use crate::observation::message::{Answer, Part};
use crate::observation::subscription::{SubscriptionFacts, id_of};
use crate::script::changes::{Change, Filter};

/// Those of a run, by the ids of their requests.
#[derive(Default)]
pub(super) struct Subscriptions(BTreeMap<u64, Subscription>);

struct Subscription {
    facts: SubscriptionFacts,
    /// Its client reads whatever there is to be read.
    is_read: bool,
}

impl Subscriptions {
    pub(super) fn open(&mut self, number: u64, filter: Filter, is_read: bool) {
        self.0.insert(number, Subscription { facts: SubscriptionFacts::new(filter), is_read });
    }

    /// Whether this request is a subscription that was acknowledged.
    pub(super) fn is_acknowledged(&self, number: u64) -> bool {
        self.0.get(&number).is_some_and(|subscription| subscription.facts.acknowledged)
    }

    /// The client of a request hangs up.
    pub(super) fn give_up(&mut self, number: u64) {
        self.0.get_mut(&number).into_iter().for_each(|subscription| subscription.facts.give_up());
    }

    /// The service begins to end.
    pub(super) fn close(&mut self) {
        self.0.values_mut().for_each(|subscription| subscription.facts.give_up());
    }

    /// The server is about to change, when so many events have been given.
    pub(super) fn changed(&mut self, change: Change, events: u64) {
        self.0.values_mut().for_each(|subscription| subscription.facts.changed(change, events));
    }

    /// Nothing can run: what takes no time has happened.
    pub(super) fn settle(&mut self) {
        self.0.values_mut().for_each(|subscription| subscription.facts.settle());
    }

    /// L2: clients that read have been notified of everything.
    pub(super) fn all_told(&self) -> Result<(), Violation> {
        let mut read = self.0.iter().filter(|(_, subscription)| subscription.is_read);
        read.try_for_each(|(number, subscription)| subscription.facts.all_told(&number.to_string()))
    }
}

/// A message is given on the response of a request.
pub(super) fn at_message(facts: &mut Facts, request: Option<u64>, part: &Part, message: &Json<'_>) {
    let (events, most) = (facts.counts.events, facts.limits.subscribed);
    let subscription = request.and_then(|request| facts.subscriptions.0.get_mut(&request));
    let checked = match (request.zip(subscription), part) {
        (Some((number, subscription)), Part::Notification { .. } | Part::Cancel { .. }) => {
            notified(&mut subscription.facts, number, message, events, most)
        }
        (Some((number, subscription)), Part::Answer(Answer { id: Some(_), result, .. })) => {
            subscription.facts.answered(&number.to_string(), result.as_deref())
        }
        (None, Part::Notification { method }) if id_of(&message["params"]).is_some() => broken(
            Law::Identity,
            format!("expected {method} on the stream of its subscription, observed it on the stream of {request:?}"),
        ),
        _ => Ok(()),
    };
    if let Err(Violation { law, what }) = checked {
        facts.broken(law, what);
    }
}

fn notified(
    facts: &mut SubscriptionFacts,
    number: u64,
    message: &Json<'_>,
    events: u64,
    most: usize,
) -> Result<(), Violation> {
    let number = number.to_string();
    let method = message["method"].as_str().unwrap_or_default();
    let id = id_of(&message["params"]);
    if id.as_deref() != Some(&*number) {
        return broken(
            Law::Identity,
            format!("expected {method} of {id:?} on its own stream, observed it on the stream of {number}"),
        );
    }
    facts.notified(&number, method, &message["params"], events)?;
    let named = facts.resources();
    if named > most {
        return broken(
            Law::Bounded,
            format!("subscription {number}: expected at most {most} resources, observed {named}"),
        );
    }
    Ok(())
}

/// L5: a service that shuts down ends each subscription with its result before its response ends. A client that has not read
/// that far when the drain deadline is over is not waited for.
pub(super) fn at_end_of_body(facts: &mut Facts, now: Moment, exchange: u64) {
    let Some(ExchangeFacts { purpose: Purpose::Request(request, _), .. }) = facts.exchanges.get(&exchange) else {
        return;
    };
    let request = *request;
    let late = facts.closing.is_some_and(|closing| closing + facts.limits.drain_deadline <= now);
    let subscription = facts.subscriptions.0.get(&request);
    let cut = subscription.is_some_and(|subscription| subscription.facts.acknowledged && !subscription.facts.ended);
    let waited_for = subscription.is_some_and(|subscription| subscription.is_read) || !late;
    if cut && waited_for && !facts.dropped {
        facts.broken(
            Law::Closing,
            format!("subscription {request}: expected its result before the end of the response, observed none"),
        );
    }
}

fn broken(law: Law, what: String) -> Result<(), Violation> {
    Err(Violation { law, what })
}
