//! File descriptors: ten thousand connections need as many in the bench, and as many in the server.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::io;

/// Raises the limit of this process, and of all that it starts from here on, as far as the system allows.
pub(crate) fn raise_limit() -> io::Result<()> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?)
}
