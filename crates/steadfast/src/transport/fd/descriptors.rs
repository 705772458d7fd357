//! The one place that moves descriptors of this process around.
//!
//! It takes the standard descriptors out of everybody's reach, and opens pipes a second time so that they can be made
//! non-blocking without anybody else noticing. It never sets `O_NONBLOCK` on a descriptor that was inherited: that flag
//! belongs to the open file description, which the process that started us, and its shell, may share.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::net::SocketType;

/// What kind of thing a descriptor refers to, as far as waiting for it is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DescriptorKind {
    /// A pipe, named or not.
    Pipe,
    /// A stream socket.
    Socket,
    /// A file, a terminal, a device: something without readiness, or where waiting for it is not worth the trouble.
    Other,
}

/// Which end of a pipe to open.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PipeEnd {
    Reading,
    Writing,
}

/// The real standard input and output. Behind them descriptor 0 becomes the null device and descriptor 1 becomes
/// standard error, so that a stray `println!` is a line in the log and a child process that reads eats no requests.
pub(crate) fn take_standard() -> io::Result<(OwnedFd, OwnedFd)> {
    let input = duplicate(rustix::stdio::stdin())?;
    let output = duplicate(rustix::stdio::stdout())?;
    let null = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    Ok((input, output))
}

pub(crate) fn nature(descriptor: impl AsFd) -> io::Result<DescriptorKind> {
    let stat = rustix::fs::fstat(&descriptor)?;
    Ok(match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo => DescriptorKind::Pipe,
        // Datagrams and packets have borders that a stream of bytes must not cut.
        FileType::Socket if rustix::net::sockopt::socket_type(&descriptor)? == SocketType::STREAM => {
            DescriptorKind::Socket
        }
        _ => DescriptorKind::Other,
    })
}

/// Opens the same end of the same pipe once more, with an open file description of its own that is non-blocking.
///
/// This fails where there is no `/proc`, where the pipe belongs to another user, and for the writing end of a named pipe that nobody reads.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn reopen_pipe(pipe: &OwnedFd, end: PipeEnd) -> io::Result<OwnedFd> {
    use std::os::fd::AsRawFd;

    let access = match end {
        PipeEnd::Reading => OFlags::RDONLY,
        PipeEnd::Writing => OFlags::WRONLY,
    };
    let path = format!("/proc/self/fd/{}", pipe.as_raw_fd());
    let opened = rustix::fs::open(path, access | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
    let (before, after) = (rustix::fs::fstat(pipe)?, rustix::fs::fstat(&opened)?);
    if (before.st_dev, before.st_ino) != (after.st_dev, after.st_ino) {
        return Err(io::Error::other("/proc/self/fd names another file"));
    }
    Ok(opened)
}

/// Only Linux can open a pipe a second time.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn reopen_pipe(_pipe: &OwnedFd, _end: PipeEnd) -> io::Result<OwnedFd> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// Lets a pipe hold more, so that a large answer is one write and not a write, a wait and another write. A system that
/// refuses is as good as before.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn widen(pipe: &OwnedFd) {
    const WIDE: usize = 1024 * 1024;
    if rustix::pipe::fcntl_getpipe_size(pipe).is_ok_and(|size| size < WIDE) {
        let _ = rustix::pipe::fcntl_setpipe_size(pipe, WIDE);
    }
}

/// Only Linux has it.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn widen(_pipe: &OwnedFd) {}

fn duplicate(descriptor: impl AsFd) -> io::Result<OwnedFd> {
    // Three and up: never one of the standard descriptors again, even if one of them is closed.
    Ok(rustix::io::fcntl_dupfd_cloexec(descriptor, 3)?)
}
