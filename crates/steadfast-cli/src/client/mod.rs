//! The command-line client: what a server has, and using it.

pub(crate) mod call;
pub(crate) mod list;
pub(crate) mod logout;
pub(crate) mod prompt;
pub(crate) mod read;

mod admission;
mod ask;
mod ending;
mod harmless;
mod interrupts;
mod login;
mod progress;
mod session;
mod show;
mod target;
mod terminal;

pub(crate) use ending::{Ending, Failure};
pub(crate) use target::{Connect, Launch};

/// Says why a command failed. What a server wrote is in it.
pub(crate) fn complain(failure: &Failure) {
    eprintln!("steadfast: {}", harmless::quoted(&format!("{:?}", failure.error)));
}
