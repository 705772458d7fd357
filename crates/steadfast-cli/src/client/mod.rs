//! The command-line client: what a server has, and using it.

pub(crate) mod call;
pub(crate) mod list;
pub(crate) mod logout;
pub(crate) mod prompt;
pub(crate) mod read;

mod admission;
mod advice;
mod arguments;
mod ask;
mod ending;
mod harmless;
mod interrupts;
mod layout;
mod listening;
mod login;
mod process;
mod progress;
mod schema;
mod session;
mod show;
mod target;
mod terminal;

pub(crate) use ending::{Ending, Failure, help};
pub(crate) use target::{Connect, Launch};

/// How long a list may take where it is not what was asked for.
const LISTING: std::time::Duration = std::time::Duration::from_secs(10);
