//! Peers, clocks and logs that tests control.

mod log_lines;
mod manual_clock;
mod own_process;
mod raw_peer;
mod scripted_server;

pub(crate) use log_lines::LogLines;
pub(crate) use manual_clock::{EVERY, ManualClock};
pub(crate) use own_process::{alone, resident};
pub(crate) use raw_peer::{RawPeer, tool_call};
pub(crate) use scripted_server::scripted;
