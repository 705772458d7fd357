//! Subscriptions over a stream, as the peer sees them: those of 2026-07-28, each with its id, and the one of an older peer, which
//! is notified of all lists and of the resources that it named.

use std::collections::{BTreeMap, BTreeSet};

use super::journal::Facts;
use crate::law::{Law, Violation};
use crate::observation::json::Json;
use crate::observation::message::{Answer, Id};
use crate::observation::subscription::{SubscriptionFacts, id_of};
use crate::script::changes::{Change, Filter, RESOURCES};

/// Everything that was seen of them.
pub(super) struct Subscriptions {
    modern: bool,
    listens: BTreeMap<Id, SubscriptionFacts>,
    /// Ids that were used again when the first subscription may have been open or not.
    unclear: BTreeSet<Id>,
    /// Requests under the id of a subscription that was open when they were sent. If it has ended when they arrive they are
    /// refused under that id.
    repeated: BTreeMap<Id, usize>,
    /// Ended by the server, which has not yet reported it on the shared stream.
    uncancelled: BTreeSet<Id>,
    older: Older,
}

/// What an older peer subscribed to.
#[derive(Default)]
struct Older {
    /// Requests that wait for their responses: the resource, and whether it is being subscribed.
    asked: BTreeMap<Id, (&'static str, bool)>,
    /// The last request about each resource.
    last: BTreeMap<&'static str, Id>,
    /// Resources that may be subscribed to, and those that are.
    possible: BTreeSet<&'static str>,
    certain: BTreeSet<&'static str>,
    /// The peer is notified of lists.
    initialized: bool,
    changes: BTreeMap<Change, u64>,
    owed: BTreeMap<Change, u64>,
}

impl Subscriptions {
    pub(super) fn new(modern: bool) -> Self {
        let older = Older::default();
        Self {
            modern,
            listens: BTreeMap::new(),
            unclear: BTreeSet::new(),
            repeated: BTreeMap::new(),
            uncancelled: BTreeSet::new(),
            older,
        }
    }

    /// How many are open for certain.
    pub(super) fn open(&self) -> usize {
        self.listens.values().filter(|listen| listen.is_open()).count()
    }

    /// Whether a request may be open for as long as the connection is.
    pub(super) fn may_last(&self, id: &Id) -> bool {
        self.unclear.contains(id) || self.listens.get(id).is_some_and(SubscriptionFacts::is_open)
    }

    /// The peer sends `subscriptions/listen`.
    pub(super) fn listen(&mut self, id: Id, filter: Filter) {
        match self.listens.get(&id) {
            // The second is refused, and the first is untouched.
            Some(listen) if listen.is_open() => *self.repeated.entry(id).or_default() += 1,
            None if !self.unclear.contains(&id) => drop(self.listens.insert(id, SubscriptionFacts::new(filter))),
            _ => {
                self.listens.remove(&id);
                self.unclear.insert(id);
            }
        }
    }

    /// The peer sends `resources/subscribe` or `resources/unsubscribe`.
    pub(super) fn subscribe(&mut self, id: Id, uri: &'static str, on: bool) {
        self.older.last.insert(uri, id.clone());
        self.older.asked.insert(id, (uri, on));
        if on {
            self.older.possible.insert(uri);
        } else {
            self.older.certain.remove(uri);
            self.older.owed.remove(&Change::Updated(uri));
        }
    }

    /// The peer cancels a request.
    pub(super) fn cancel(&mut self, id: &Id) {
        self.listens.get_mut(id).into_iter().for_each(SubscriptionFacts::give_up);
    }

    /// The connection begins to end.
    pub(super) fn close(&mut self) {
        self.listens.values_mut().for_each(SubscriptionFacts::give_up);
        self.older.owed.clear();
    }

    /// The server is about to change.
    pub(super) fn changed(&mut self, change: Change, written: u64, closing: bool) {
        self.listens.values_mut().for_each(|listen| listen.changed(change, written));
        let older = &mut self.older;
        let (possible, certain) = match change {
            Change::Updated(uri) => (older.possible.contains(uri), older.certain.contains(uri)),
            _ => (true, older.initialized),
        };
        *older.changes.entry(change).or_default() += u64::from(possible);
        if certain && !closing && !self.modern {
            older.owed.insert(change, written);
        }
    }

    /// Nothing can run: what takes no time has happened.
    pub(super) fn settle(&mut self) {
        self.listens.values_mut().for_each(SubscriptionFacts::settle);
    }

    /// L2: a peer that reads has been notified of every change, and every subscription is acknowledged or refused.
    pub(super) fn all_told(&self) -> Result<(), Violation> {
        for (id, listen) in &self.listens {
            listen.all_told(id)?;
            if !(listen.acknowledged || listen.ended || listen.given_up) {
                return broken(
                    Law::Answer,
                    format!("subscription {id}: expected its acknowledgement, observed none while nothing runs"),
                );
            }
        }
        match self.older.owed.keys().next() {
            Some(change) => broken(
                Law::Answer,
                format!("expected a notification of {change:?} to a subscribed peer, observed none"),
            ),
            None => Ok(()),
        }
    }

    /// L5: when the connection has ended and the peer has read everything, each subscription that was open has had its result,
    /// and the notification after it.
    pub(super) fn all_ended(&self, was_cancelled: impl Fn(&Id) -> bool) -> Result<(), Violation> {
        let left = self.listens.iter().find(|(id, listen)| listen.acknowledged && !listen.ended && !was_cancelled(id));
        if let Some((id, _)) = left {
            return broken(
                Law::Closing,
                format!("subscription {id}: expected its end with the connection, observed it open"),
            );
        }
        match self.uncancelled.iter().next() {
            Some(id) => broken(
                Law::Closing,
                format!("subscription {id}: expected notifications/cancelled after its end, observed none"),
            ),
            None => Ok(()),
        }
    }
}

/// The peer has read a notification, which ends at this position of what was written.
pub(super) fn notified(facts: &mut Facts, method: &str, params: &Json<'_>, position: u64) {
    let checked = if facts.subscriptions.modern {
        notified_modern(facts, method, params, position)
    } else {
        facts.subscriptions.older.notified(method, params, position)
    };
    if let Err(Violation { law, what }) = checked {
        facts.broken(law, what);
    }
}

fn notified_modern(facts: &mut Facts, method: &str, params: &Json<'_>, position: u64) -> Result<(), Violation> {
    if method == "notifications/cancelled" {
        let id = params["requestId"].to_string();
        let ended = facts.subscriptions.uncancelled.remove(&*id) || facts.subscriptions.unclear.contains(&*id);
        return if ended {
            Ok(())
        } else {
            broken(
                Law::Order,
                format!("{id}: expected notifications/cancelled only for an ended subscription, observed one"),
            )
        };
    }
    let Some(id) = id_of(params) else {
        return broken(Law::Identity, format!("expected {method} with a subscription id, observed none"));
    };
    if facts.subscriptions.unclear.contains(&*id) {
        return Ok(());
    }
    if facts.requests.get(&*id).is_some_and(|request| request.silenced) {
        return broken(Law::Silence, format!("{id}: expected silence after its cancellation, observed {method}"));
    }
    let limits = &facts.limits;
    let Some(listen) = facts.subscriptions.listens.get_mut(&*id) else {
        return broken(Law::Identity, format!("expected {method} of a known subscription, observed {id}"));
    };
    listen.notified(&id, method, params, position)?;
    let (resources, most) = (listen.resources(), limits.subscribed);
    if resources > most {
        return broken(
            Law::Bounded,
            format!("subscription {id}: expected at most {most} resources, observed {resources}"),
        );
    }
    let (open, most) = (facts.subscriptions.open(), limits.subscriptions);
    if open > most {
        return broken(Law::Bounded, format!("expected at most {most} open subscriptions, observed {open}"));
    }
    Ok(())
}

/// The peer has read an answer.
pub(super) fn answered(facts: &mut Facts, id: &Id, answer: &Answer) {
    let room = facts.closing.is_none()
        && facts.limits.in_flight > facts.requests.values().map(|request| request.sent + request.doubtful).sum();
    let (limits, subscriptions) = (&facts.limits, &mut facts.subscriptions);
    // Everything but the handshake is sent after `notifications/initialized`.
    subscriptions.older.initialized |= &**id != "\"open\"";
    let checked = if let Some((uri, on)) = subscriptions.older.asked.remove(id) {
        subscriptions.older.answered(id, (uri, on), answer.result.is_some(), room, limits.subscribed)
    } else {
        let room = room && limits.subscriptions > subscriptions.listens.len() + subscriptions.unclear.len();
        let Some(listen) = subscriptions.listens.get_mut(id) else { return };
        if listen.ended
            && answer.result.is_none()
            && let Some(left) = subscriptions.repeated.get_mut(id).filter(|left| **left > 0)
        {
            *left -= 1;
            return;
        }
        let refused = !listen.acknowledged && answer.result.is_none();
        if answer.result.is_some() {
            subscriptions.uncancelled.insert(id.clone());
        }
        match listen.answered(id, answer.result.as_deref()) {
            Ok(()) if refused && room && listen.resources() <= limits.subscribed => {
                broken(Law::Answer, format!("subscription {id}: expected success below the limit, observed a refusal"))
            }
            checked => checked,
        }
    };
    if let Err(Violation { law, what }) = checked {
        facts.broken(law, what);
    }
}

impl Older {
    /// L8: a notification was subscribed to, and the change has happened.
    fn notified(&mut self, method: &str, params: &Json<'_>, position: u64) -> Result<(), Violation> {
        let Some(change) = Change::of_notification(method, params) else {
            let known = method == "notifications/cancelled";
            return if known {
                Ok(())
            } else {
                broken(Law::Identity, format!("expected only notifications of the older revisions, observed {method}"))
            };
        };
        if id_of(params).is_some() {
            return broken(
                Law::Identity,
                format!("expected no subscription id in the older revisions, observed one in {method}"),
            );
        }
        let changes = self.changes.entry(change).or_default();
        if *changes == 0 {
            return broken(
                Law::Identity,
                format!("expected only subscribed changes that happened, observed {change:?}"),
            );
        }
        *changes -= 1;
        if self.owed.get(&change).is_some_and(|changed| *changed < position) {
            self.owed.remove(&change);
        }
        Ok(())
    }

    /// L7: no more resources are subscribed to than the limit says. L2: one that exists is not refused while there is room.
    fn answered(
        &mut self,
        id: &Id,
        (uri, on): (&'static str, bool),
        done: bool,
        room: bool,
        most: usize,
    ) -> Result<(), Violation> {
        let is_last = self.last.get(uri) == Some(id);
        match (on, done) {
            (true, true) if is_last => drop(self.certain.insert(uri)),
            (false, true) if is_last => drop(self.possible.remove(uri)),
            (true, false) if room && RESOURCES.contains(&uri) && self.possible.len() <= most => {
                return broken(
                    Law::Answer,
                    format!("expected a subscription to {uri} below the limit, observed a refusal"),
                );
            }
            (false, false) if room => {
                return broken(
                    Law::Answer,
                    format!("expected resources/unsubscribe of {uri} to succeed, observed a refusal"),
                );
            }
            _ => {}
        }
        if self.certain.len() > most {
            let what = format!("expected at most {most} subscribed resources, observed {}", self.certain.len());
            return broken(Law::Bounded, what);
        }
        Ok(())
    }
}

fn broken(law: Law, what: String) -> Result<(), Violation> {
    Err(Violation { law, what })
}
