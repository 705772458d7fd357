//! Calls that become tasks, on the side of the client.

mod cancelled_on_close;
mod polling;
mod results;
