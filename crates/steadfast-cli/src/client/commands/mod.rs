//! One file per subcommand of the client.

pub(crate) mod call;
pub(crate) mod list;
pub(crate) mod logout;
pub(crate) mod prompt;
pub(crate) mod read;
