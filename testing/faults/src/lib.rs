//! The fault table: what `steadfast serve` has to do when its client, its streams or its tools misbehave, and what a client
//! on the library has to do when its server does.
//!
//! Every row of the table is a list of named checks. A check starts the command as a child process, does the harm, and
//! judges what came out: lines on standard output, the exit code, the memory of the process, the file that cleanups
//! write, and standard error. In the client's rows it starts the program `subject`, plays the server itself, and judges
//! which outcome the client gave to each call. The same checks run as tests (`cargo test -p faults`) and as a command that prints the
//! table (`cargo run --release -p faults`).
//!
//! Invariant: nothing here depends on a crate of this workspace. The wire is written and read by hand, so a mistake in
//! the library cannot hide behind the same mistake in its test.
//!
//! Invariant: no check asserts a time, apart from generous upper bounds on what the table itself calls "within" or
//! "without delay" (see [`limits`]). What was seen is recorded beside the verdict.

#![forbid(unsafe_code)]

mod check_context;
mod client;
mod client_under_test;
mod concurrency;
mod era;
mod failure;
mod faulty_server;
pub mod limits;
mod process;
mod program;
mod random;
mod rows;
mod runner;
mod table;

pub use client::orphan::{CLIENT_MODE, play_client};
pub use era::Era;
pub use faulty_server::{OFFSPRING_MODE, SERVER_MODE, play_offspring, play_server};
pub use runner::{Options, Report, run};
pub use table::{Check, Row, table};
