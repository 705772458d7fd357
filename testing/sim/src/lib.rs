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
pub mod coverage;
mod endpoint;
mod executor;
pub mod explore;
pub mod failed_seeds;
pub mod http;
mod law;
pub mod mutants;
mod observation;
pub mod pair;
mod panics;
pub mod proof;
mod script;
mod seed;
pub mod shell;
pub mod stories;
pub mod sweep;
pub mod worlds;

pub use law::{Law, Violation};
pub use seed::Seed;
