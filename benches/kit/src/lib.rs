//! What the benches share: the options of a run, a contestant as a child process with its CPU clock, ratios over
//! interleaved rounds, counts by valgrind, and the tables of all that; and the bare server, which is the limit of servers
//! in one bench and whom clients call in another.
//!
//! It knows nothing of what is asked of a contestant, nor by which way: a bench brings that.

pub mod bare;
pub mod cores;
pub mod counts;
pub mod endpoint;
pub mod era;
pub mod figures;
pub mod http;
pub mod mode;
pub mod options;
pub mod process;
pub mod programs;
pub mod rates;
pub mod report;
mod watchdog;

/// The error of a contestant that does not do what it should.
pub fn misbehaved(what: impl Into<String>) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, what.into())
}
