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

mod bias;
mod changes;
mod checkers;
pub mod client;
pub mod coverage;
mod drain;
mod end;
mod executor;
pub mod explore;
pub mod failed_seeds;
pub mod http;
mod law;
mod ledger;
mod line_buffer;
mod link;
mod lives;
mod message;
pub mod mutants;
mod observation;
mod opened;
pub mod pair;
pub mod proof;
mod quiet;
mod record;
mod rng;
mod seed;
pub mod shell;
mod shrink;
pub mod stories;
mod subscription;
pub mod sweep;
mod trace;
mod world;
pub mod worlds;

pub use law::{Law, Violation};
pub use seed::Seed;
