//! The revisions that a check may speak, and what differs between them on the wire of a test.

use std::fmt;

/// One revision of the protocol, as a client speaks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// 2024-11-05, the first.
    V2024_11_05,
    /// 2025-03-26, the only one with batches.
    V2025_03_26,
    /// 2025-06-18, the last in which an error always has an `id`.
    V2025_06_18,
    /// 2025-11-25, the newest that opens with `initialize`.
    V2025_11_25,
    /// 2026-07-28: no handshake, `_meta` on each request.
    V2026_07_28,
}

impl Era {
    /// Both eras, each in its newest revision: what most checks run in.
    pub(crate) const BOTH: &'static [Era] = &[Era::V2025_11_25, Era::V2026_07_28];

    /// Both eras, and the newest revision in which an error without an id carries `"id": null`.
    pub(crate) const THREE: &'static [Era] = &[Era::V2025_06_18, Era::V2025_11_25, Era::V2026_07_28];

    /// Only with the handshake: the server can call its client.
    pub(crate) const HANDSHAKE: &'static [Era] = &[Era::V2025_11_25];

    /// Only without the handshake.
    pub(crate) const STATELESS: &'static [Era] = &[Era::V2026_07_28];

    /// Every revision that opens with `initialize`.
    pub(crate) const LEGACY: &'static [Era] = &[Era::V2024_11_05, Era::V2025_03_26, Era::V2025_06_18, Era::V2025_11_25];

    /// The revision as it is written on the wire.
    pub fn revision(self) -> &'static str {
        match self {
            Era::V2024_11_05 => "2024-11-05",
            Era::V2025_03_26 => "2025-03-26",
            Era::V2025_06_18 => "2025-06-18",
            Era::V2025_11_25 => "2025-11-25",
            Era::V2026_07_28 => "2026-07-28",
        }
    }

    /// Whether each request carries its revision and nothing is opened.
    pub(crate) fn is_stateless(self) -> bool {
        self == Era::V2026_07_28
    }

    /// Whether an error that belongs to no id says `"id": null`. Later revisions leave the member out.
    pub(crate) fn writes_null_id(self) -> bool {
        !matches!(self, Era::V2025_11_25 | Era::V2026_07_28)
    }
}

impl fmt::Display for Era {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.revision())
    }
}
