//! Steadfast's client, in this process, against real servers.
//!
//! The servers are small programs of ours on the SDKs of others, in `python` and `typescript`; all of them offer what
//! `offers.json` says. One is not ours: the reference server that offers everything.

mod calls;
mod check;
mod everything;
mod host;
mod input;
mod known_faults;
mod lists;
mod peer;
mod run;
mod session;
mod shutdown;
mod transport;

pub(crate) use run::ServerRun;

use peer::Peer;

/// The columns of the table.
pub(crate) fn columns() -> Vec<&'static str> {
    check::ALL.iter().map(|check| check.name).collect()
}

/// Everything that could be done, in the order of the table.
pub(crate) fn runs(revisions: fn(&str) -> bool) -> impl Iterator<Item = ServerRun> {
    Peer::EVERY.iter().flat_map(move |peer| {
        peer.transports.iter().flat_map(move |&transport| {
            let carried = move |revision: &&&str| transport.carries(revision) && revisions(revision);
            peer.revisions.iter().filter(carried).map(move |&revision| ServerRun::new(peer, transport, revision))
        })
    })
}
