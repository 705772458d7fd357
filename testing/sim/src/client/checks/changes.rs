//! Change streams: the start of a subscription is reported, and no later notification is missed.

use steadfast_proto::Moment;

use crate::client::TransportKind;
use crate::client::journal::{Facts, Kind, TransportFacts};
use crate::law::Law;
use crate::observation::message::Id;

/// One who listens.
pub(in crate::client) struct ListenerFacts {
    pub(in crate::client) resource: u8,
    /// On one connection after the other.
    periods: Vec<SubscriptionPeriod>,
    pub(in crate::client) ended: Option<Moment>,
    /// How often its subscription was reported.
    pub(in crate::client) began: usize,
    /// Changes that it was given.
    pub(in crate::client) received: usize,
}

/// The time on one connection, from the request on.
struct SubscriptionPeriod {
    link: usize,
    request: Id,
    /// Its subscription was reported.
    listens: bool,
    /// The server has agreed.
    acknowledged: bool,
    notified: Vec<NotifiedChange>,
    /// How many of these were passed on, or passed over; and the last that was.
    place: usize,
    last: u64,
}

/// A change that the server notified.
struct NotifiedChange {
    serial: u64,
    receipt: Option<usize>,
    /// It has to be passed on.
    binding: bool,
}

/// What the program hears.
pub(in crate::client) enum StreamItem {
    Listening,
    /// The change of this number.
    Change(u64),
    Other,
}

impl ListenerFacts {
    pub(in crate::client) fn new(resource: u8) -> Self {
        Self { resource, periods: Vec::new(), ended: None, began: 0, received: 0 }
    }

    /// Whether its subscription was reported, on the last connection that it subscribed on.
    pub(in crate::client) fn is_subscribed(&self) -> bool {
        self.periods.last().is_some_and(|period| period.listens)
    }
}

/// The name of what a listener alone listens to.
pub(in crate::client) fn own(number: u64) -> String {
    format!("r:{number}")
}

/// What changes, for everyone.
pub(in crate::client) fn shared(resource: u8) -> String {
    format!("c:{resource}")
}

/// The listener that such a name belongs to.
pub(in crate::client) fn whose(uri: &str) -> Option<u64> {
    uri.strip_prefix("r:")?.parse().ok()
}

/// A client subscribes: once on each connection (L5).
pub(super) fn at_listen(facts: &mut Facts, link: usize, request: Id, number: u64) {
    let kind = facts.transport_kind;
    let Some(listener) = facts.listeners.get_mut(&number) else {
        return facts
            .broken(Law::Identity, format!("expected a subscription of a known listener, observed listener {number}"));
    };
    let again = listener.periods.iter().any(|period| period.link >= link);
    listener.periods.push(SubscriptionPeriod {
        link,
        request,
        listens: false,
        acknowledged: false,
        notified: Vec::new(),
        place: 0,
        last: 0,
    });
    // Over HTTP a stream may break while the connection is good.
    if again && kind == TransportKind::Stream {
        facts.broken(
            Law::Closing,
            format!(
                "listener {number}: expected one subscription per connection, observed a second on connection {link}"
            ),
        );
    }
}

/// The server agrees.
pub(in crate::client) fn at_acknowledgement(facts: &mut Facts, number: u64, request: &Id) {
    let resource = facts.listeners.get(&number).map(|listener| listener.resource);
    let version = resource.map(|resource| facts.cache.version(resource)).unwrap_or_default();
    if let Some(period) = period(facts, number, request) {
        period.acknowledged = true;
    }
    facts.cache.at_acknowledgement(number, version);
}

/// The server tells a listener of a change.
pub(in crate::client) fn at_told(facts: &mut Facts, number: u64, request: &Id, serial: u64, receipt: Option<usize>) {
    let modern = facts.modern;
    if let Some(period) = period(facts, number, request) {
        // The older wires do not mark where a subscription begins: the client reports it.
        let binding = if modern { period.acknowledged } else { period.listens };
        period.notified.push(NotifiedChange { serial, receipt, binding });
    }
}

/// Who listens to a resource on a connection, and with which request.
pub(in crate::client) fn listeners_on(facts: &Facts, link: usize, resource: u8) -> Vec<(u64, Id)> {
    let on = facts.listeners.iter().filter(|(_, listener)| listener.resource == resource && listener.ended.is_none());
    let on = on.filter_map(|(number, listener)| Some((*number, listener.periods.last()?)));
    on.filter(|(_, period)| period.link == link).map(|(number, period)| (number, period.request.clone())).collect()
}

fn period<'a>(facts: &'a mut Facts, number: u64, request: &Id) -> Option<&'a mut SubscriptionPeriod> {
    let listener = facts.listeners.get_mut(&number)?;
    listener.periods.iter_mut().find(|period| period.request == *request)
}

/// The program gets an item: first that it is subscribed, and then the notifications, in their order and once.
pub(in crate::client) fn at_notification(facts: &mut Facts, number: u64, item: &StreamItem) {
    let modern = facts.modern;
    let Some(listener) = facts.listeners.get_mut(&number).filter(|_| !matches!(item, StreamItem::Other)) else {
        return;
    };
    let resource = listener.resource;
    let Some(period) = listener.periods.last_mut() else {
        return facts.broken(
            Law::Identity,
            format!("listener {number}: expected nothing before its subscription, observed an item"),
        );
    };
    match item {
        StreamItem::Listening => {
            period.listens = true;
            listener.began += 1;
            let began = listener.began;
            facts.cache.at_listening(number, began, resource);
        }
        StreamItem::Change(serial) => {
            if !period.listens {
                let what = format!("listener {number}: expected `Listening` first, observed change {serial}");
                return facts.broken(Law::Order, what);
            }
            let place = period.notified.iter().skip(period.place).position(|change| change.serial == *serial);
            // On the older wires every stream gets every notification, be it from before or not.
            let passed = if modern { place.map(|place| place + 1) } else { Some(place.map_or(0, |place| place + 1)) };
            let Some(passed) = passed.filter(|_| *serial > period.last) else {
                let what = format!(
                    "listener {number}: expected only new changes that the server sent, observed change {serial}"
                );
                return facts.broken(Law::Identity, what);
            };
            period.place += passed;
            period.last = *serial;
            listener.received += 1;
            facts.cache.at_change(resource, *serial);
        }
        StreamItem::Other => {}
    }
}

/// Nothing can run: what was read has been passed on.
pub(super) fn at_idle(facts: &mut Facts, transport: &dyn TransportFacts, now: Moment, over: bool) {
    let mut broken = None;
    for (number, listener) in facts.listeners.iter().filter(|(_, listener)| listener.ended.is_none()) {
        if over {
            broken = Some((
                Law::Closing,
                format!("listener {number}: expected an end with the connection, observed it open at {now:?}"),
            ));
        }
        let Some(period) = listener.periods.last() else { continue };
        let missed = period
            .notified
            .iter()
            .skip(period.place)
            .find(|change| change.binding && change.receipt.is_some_and(|receipt| transport.was_read(receipt)));
        // A program that closes its client needs no items, and a listener whose connection is lost gets one when it subscribes again.
        let over = facts.shut.is_some() || facts.is_given_up(period.link);
        if let Some(NotifiedChange { serial, .. }) = missed.filter(|_| !over) {
            broken = Some((
                Law::Answer,
                format!("listener {number}: expected change {serial}, which was read, observed nothing"),
            ));
        }
    }
    if let Some((law, what)) = broken {
        facts.broken(law, what);
    }
}

/// Nothing is on its way: the server of an older revision knows who listens, and who does not any more.
pub(super) fn subscriptions_are_right(facts: &mut Facts, transport: &dyn TransportFacts) {
    // One goes after the other (L9), so nothing is sent while the response is on its way.
    let was_read = |receipt: Option<usize>| receipt.is_none_or(|receipt| transport.was_read(receipt));
    let underway = facts.requests.values().any(|request| {
        matches!(request.kind, Kind::Subscription) && !request.answers.iter().any(|(receipt, _)| was_read(*receipt))
    });
    if facts.modern || underway {
        return;
    }
    let mut broken = None;
    for (number, listener) in &facts.listeners {
        let Some(period) = listener.periods.last() else { continue };
        let has = |uri: &str| facts.subscribed.contains(&(period.link, uri.to_owned()));
        if listener.ended.is_none() && period.listens && !has(&shared(listener.resource)) {
            let what =
                format!("listener {number}: expected a subscription on the server after `Listening`, observed none");
            broken = Some((Law::Outcome, what));
        }
        if listener.ended.is_some() && has(&own(*number)) {
            broken = Some((
                Law::Closing,
                format!(
                    "listener {number}: expected resources/unsubscribe after it was dropped, observed a subscription on the server"
                ),
            ));
        }
    }
    if let Some((law, what)) = broken {
        facts.broken(law, what);
    }
}

/// L5: who listened to a server of 2026-07-28 and does not any more has taken its request back.
pub(super) fn given_up_are_taken_back(facts: &mut Facts) {
    let left = facts.listeners.iter().find(|(_, listener)| {
        let over = listener.ended.is_some();
        let request = listener.periods.last().and_then(|period| facts.requests.get(&period.request)).filter(|_| over);
        request.is_some_and(|request| !request.cancelled && !request.given_up && request.answers.is_empty())
    });
    if let Some((number, _)) = left.filter(|_| facts.modern) {
        let what = format!(
            "listener {number}: expected its request to be cancelled after it was dropped, observed no cancellation"
        );
        facts.broken(Law::Closing, what);
    }
}
