//! What the benches share: a server as a child process with its CPU clock, ratios over interleaved rounds, counts by
//! valgrind, and the tables of all that.
//!
//! It knows nothing of what is asked of a server, nor by which way: a bench brings that.

pub mod cores;
pub mod counts;
pub mod figures;
pub mod process;
pub mod programs;
pub mod rates;
pub mod report;
mod watchdog;
