//! Sessions of revision 2025-11-25, without a GET stream.

use super::connection::Connection;
use super::request;
use bench_kit::misbehaved;
use std::io;

/// Opens that many sessions over these connections, on all of them at once. Returns their ids.
pub(crate) fn open(over: &mut [Connection], count: usize) -> io::Result<Vec<String>> {
    let mut sessions = Vec::with_capacity(count);
    while sessions.len() < count {
        let size = over.len().min(count - sessions.len());
        let batch = &mut over[..size];
        for connection in batch.iter_mut() {
            connection.send(&request::initialize(connection.to))?;
        }
        let mut opened = Vec::with_capacity(size);
        for connection in batch.iter_mut() {
            let response = connection.receive()?;
            let refused = || misbehaved(format!("initialize was answered with {}", response.shown()));
            opened.push(response.session.clone().ok_or_else(refused)?);
        }
        for (connection, session) in batch.iter_mut().zip(&opened) {
            connection.send(&request::initialized(connection.to, session))?;
        }
        for connection in batch.iter_mut() {
            let response = connection.receive()?;
            if response.status != 202 {
                return Err(misbehaved(format!("notifications/initialized was answered with {}", response.shown())));
            }
        }
        sessions.append(&mut opened);
    }
    Ok(sessions)
}

/// Ends a session.
pub(crate) fn end(over: &mut Connection, session: &str) -> io::Result<()> {
    over.send(&request::delete(over.to, session))?;
    let response = over.receive()?;
    if (200..300).contains(&response.status) {
        return Ok(());
    }
    Err(misbehaved(format!("the end of a session was answered with {}", response.shown())))
}
