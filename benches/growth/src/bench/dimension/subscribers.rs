//! What a change costs that n streams listen for, and what n streams add to the cost of another one.

use crate::http::connection::Connection;
use crate::http::request::Tool;
use crate::http::subscription::Subscription;
use crate::trial::Trial;
use std::io;

/// A change that is published and received on all streams, divided by their number. The call that publishes it is in
/// it.
pub(super) fn measure(trial: &Trial<'_>) -> io::Result<f64> {
    let cost = trial.over_http(|endpoint| {
        let mut publisher = Connection::open(endpoint.address)?;
        let mut subscriptions = Subscription::open_all(endpoint.address, trial.n)?;
        endpoint.subject.settle()?;
        trial.effort.cpu_per_call(&endpoint.subject, || {
            publisher.call(Tool::Touch)?;
            subscriptions.iter_mut().try_for_each(Subscription::notified)
        })
    })?;
    Ok(cost / trial.n as f64)
}

/// One more stream that is opened, with its connection, and closed, so that n stay open.
pub(super) fn measure_turnover(trial: &Trial<'_>) -> io::Result<f64> {
    trial.over_http(|endpoint| {
        let _subscriptions = Subscription::open_all(endpoint.address, trial.n)?;
        endpoint.subject.settle()?;
        trial.effort.cpu_per_call(&endpoint.subject, || Subscription::open(endpoint.address).map(drop))
    })
}
