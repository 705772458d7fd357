//! The client subcommands of `steadfast`, one file for each.

pub(crate) mod call;
pub(crate) mod list;
pub(crate) mod logout;
pub(crate) mod prompt;
pub(crate) mod read;
