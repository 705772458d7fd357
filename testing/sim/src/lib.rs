//! The proof, in two forms: every interleaving of small conversations, and seeded simulation of large ones.
//!
//! - [`explore`]: exhaustive search over the real connection of `steadfast-proto`, every law checked after every step;
//! - the simulator: a client and a server joined by a link that delays, splits, merges, corrupts and cuts, driven by a seed.
//!
//! Checkers, one for each law, see only what an outsider sees: the wire at the ends, and the journal of handlers and
//! callers. They never look inside a connection.
#![forbid(unsafe_code)]

mod checkers;
mod end;
pub mod explore;
mod law;
mod ledger;
mod message;
mod observation;
mod quiet;
mod rng;
mod shrink;
mod trace;

pub use law::{Law, Violation};
