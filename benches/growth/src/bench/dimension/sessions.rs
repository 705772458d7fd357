//! What n open sessions of revision 2025-11-25, without a GET stream, add to the cost of a call, and of another
//! session.

use crate::http::connection::Connection;
use crate::http::request::Tool;
use crate::http::session;
use crate::trial::Trial;
use bench_kit::endpoint::Endpoint;
use std::io;

/// How many connections all requests share.
const CONNECTIONS: usize = 8;

/// A call, each in the next session and over the next connection.
pub(super) fn measure(trial: &Trial<'_>) -> io::Result<f64> {
    trial.over_http(|endpoint| {
        let (mut connections, sessions) = open(endpoint, trial.n)?;
        endpoint.subject.settle()?;
        let mut calls: usize = 0;
        trial.effort.cpu_per_call(&endpoint.subject, || {
            let connection = calls % connections.len();
            let session = &sessions[calls % sessions.len()];
            calls += 1;
            connections[connection].session_call(session, Tool::Echo)
        })
    })
}

/// One more session that is opened and ended, so that n stay open.
pub(super) fn measure_turnover(trial: &Trial<'_>) -> io::Result<f64> {
    trial.over_http(|endpoint| {
        let (mut connections, _sessions) = open(endpoint, trial.n)?;
        endpoint.subject.settle()?;
        trial.effort.cpu_per_call(&endpoint.subject, || {
            for opened in session::open(&mut connections[..1], 1)? {
                session::end(&mut connections[0], &opened)?;
            }
            Ok(())
        })
    })
}

fn open(endpoint: &Endpoint, count: usize) -> io::Result<(Vec<Connection>, Vec<String>)> {
    let connect = |_| Connection::open(endpoint.address);
    let mut connections = (0..CONNECTIONS).map(connect).collect::<io::Result<Vec<_>>>()?;
    let sessions = session::open(&mut connections, count)?;
    Ok((connections, sessions))
}
