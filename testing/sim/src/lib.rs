//! The proof, in two forms: every interleaving of small conversations, and seeded simulation of large ones.
//!
//! - [`explore`]: exhaustive search over the real connection of `steadfast-proto`, every law checked after every step;
//! - [`pair`]: a client and a server joined by a link that delays, splits, merges, corrupts and cuts, driven by a seed;
//! - [`shell`]: the real server over a wire, [`http`]: the real HTTP service, and [`client`]: the real client over a wire and
//!   over HTTP, each on an executor with a clock of its own.
//!
//! Checkers, one for each law, see only what an outsider sees: the wire at the ends, and the journal of handlers and
//! callers. They never look inside a connection.
#![forbid(unsafe_code)]

mod checkers;
pub mod client;
mod end;
mod executor;
pub mod explore;
pub mod http;
mod law;
mod ledger;
mod link;
mod lives;
mod message;
mod observation;
mod opened;
pub mod pair;
mod quiet;
mod record;
mod rng;
pub mod shell;
mod shrink;
pub mod stories;
mod trace;
mod world;

pub use law::{Law, Violation};
