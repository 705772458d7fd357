//! The process under test: its pipes, its signals, its resources, and the processes that it starts.

pub(crate) mod descendants;
pub(crate) mod input;
pub(crate) mod launch;
pub(crate) mod memory;
pub(crate) mod output;
pub(crate) mod resources;
pub(crate) mod server;
pub(crate) mod standard_error;
