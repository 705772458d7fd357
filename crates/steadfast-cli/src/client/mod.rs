//! The command-line client: what a server has, and using it.

pub(crate) mod call;
pub(crate) mod list;
pub(crate) mod prompt;
pub(crate) mod read;

mod ask;
mod ending;
mod show;
mod target;

pub(crate) use ending::Ending;
pub(crate) use target::Connect;
