//! Peers, clocks and logs in the hands of a test.

mod log_lines;
mod manual_clock;
mod own_process;
mod raw_peer;
mod scripted_server;

pub(crate) use log_lines::Heard;
pub(crate) use manual_clock::{Clock, EVERY};
pub(crate) use own_process::{alone, resident};
pub(crate) use raw_peer::{Raw, tool_call};
pub(crate) use scripted_server::scripted;
