//! Faults of servers that are known. What they break is counted apart, and has to stay broken: a fault that is mended is
//! taken out of this list.

use super::transport::TransportKind;

/// A check that a server cannot pass.
struct KnownFault {
    peer: &'static str,
    check: &'static str,
    /// Where it shows.
    applies: fn(TransportKind, &str) -> bool,
    reason: &'static str,
}

const ALL: &[KnownFault] = &[];

/// Why a check cannot pass, if that is known.
pub(crate) fn fault(peer: &str, check: &str, transport: TransportKind, revision: &str) -> Option<&'static str> {
    let known =
        |known: &&KnownFault| known.peer == peer && known.check == check && (known.applies)(transport, revision);
    ALL.iter().find(known).map(|known| known.reason)
}
