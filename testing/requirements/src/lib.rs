//! What the specification demands of servers and clients, as data, and the test that shows each demand.
//!
//! The files of `manifest/` hold an entry for each normative word of its pages. This crate reads them ([`manifest`]),
//! judges them ([`check`]), finds the tests that exist ([`sources`]), counts the words of a page ([`words`]) and prints
//! where we stand ([`report`]). It also writes the table of methods in `docs/features.md` ([`features`]). It never reads
//! the specification itself, unless it is given a checkout to count in.

#![forbid(unsafe_code)]

pub mod check;
pub mod features;
pub mod manifest;
pub mod report;
pub mod sources;
pub mod words;

use std::path::{Path, PathBuf};

/// The root of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}
