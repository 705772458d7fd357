//! What n idle keep-alive connections add to the cost of a call on another one, and what memory they take.

use crate::http::connection::{BATCH, Connection};
use crate::http::request::Tool;
use crate::trial::Trial;
use std::io;

/// A call on one more connection.
pub(super) fn measure(trial: &Trial<'_>) -> io::Result<f64> {
    trial.over_http(|endpoint| {
        let _idle = Connection::open_idle(endpoint.address, trial.n)?;
        let mut connection = Connection::open(endpoint.address)?;
        endpoint.subject.settle()?;
        trial.effort.cpu_per_call(&endpoint.subject, || connection.call(Tool::Echo))
    })
}

/// The growth of the server's resident memory, divided by the number of connections. Before the first look there are
/// some connections already, so that what a server needs but once is there.
pub(super) fn measure_memory(trial: &Trial<'_>) -> io::Result<f64> {
    trial.over_http(|endpoint| {
        let look = || endpoint.subject.settle().and_then(|()| endpoint.subject.resident_bytes());
        let _before = Connection::open_idle(endpoint.address, BATCH)?;
        let before = look()?;
        let _idle = Connection::open_idle(endpoint.address, trial.n)?;
        Ok(look()?.saturating_sub(before) as f64 / trial.n as f64)
    })
}
