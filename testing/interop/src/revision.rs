//! The revisions, by name.

/// Those with a handshake.
pub(crate) const OLD: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// Every one.
pub(crate) const ALL: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// Whether a quick run has this revision: the newest of each era.
pub(crate) fn is_newest(revision: &str) -> bool {
    revision >= "2025-11-25"
}
