//! Steadfast's client, in this process, against real servers.
//!
//! The servers are small programs of ours on the SDKs of others, in `python` and `typescript`; all of them offer what
//! `offers.json` says. One is not ours: the reference server that offers everything.

mod asks;
mod calls;
mod check;
mod everything;
mod host;
mod known;
mod lasts;
mod line;
mod lists;
mod peer;
mod session;
mod transport;

pub(crate) use line::Line;

use peer::Peer;

/// The columns of the table.
pub(crate) fn columns() -> Vec<&'static str> {
    check::ALL.iter().map(|check| check.name).collect()
}

/// Everything that could be done, in the order of the table.
pub(crate) fn lines(revisions: fn(&str) -> bool) -> impl Iterator<Item = Line> {
    Peer::EVERY.iter().flat_map(move |peer| {
        peer.transports.iter().flat_map(move |&way| {
            let carried = move |revision: &&&str| way.carries(revision) && revisions(revision);
            peer.revisions.iter().filter(carried).map(move |&revision| Line::new(peer, way, revision))
        })
    })
}
