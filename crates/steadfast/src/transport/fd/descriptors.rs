//! Duplicates, replaces and reopens descriptors of this process. No other module duplicates, replaces or reopens file
//! descriptors.
//!
//! This module moves the standard streams to other descriptors, out of the reach of `println!` and child processes, and
//! reopens pipes so that they can be non-blocking without an effect on other processes. This module never sets
//! `O_NONBLOCK` on an inherited descriptor: that flag belongs to the open file description, which the parent process
//! and its shell may share.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::net::SocketType;

/// The kinds of descriptors that have to be waited for in different ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DescriptorKind {
    /// An anonymous pipe or a named pipe (FIFO).
    Pipe,
    /// A stream socket.
    Socket,
    /// A file, a terminal or a device: readiness events are not supported or not used, so a thread reads or writes it.
    Other,
}

/// Which end of a pipe to open.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PipeEnd {
    Reading,
    Writing,
}

/// Moves standard input and output to new descriptors and returns them. Descriptor 0 becomes the null device and descriptor 1
/// becomes standard error, so that a stray `println!` is a line in the log and a child process that reads standard input
/// consumes no requests.
pub(crate) fn take_standard_streams() -> io::Result<(OwnedFd, OwnedFd)> {
    let input = duplicate(rustix::stdio::stdin())?;
    let output = duplicate(rustix::stdio::stdout())?;
    let null = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    Ok((input, output))
}

pub(crate) fn kind_of(descriptor: impl AsFd) -> io::Result<DescriptorKind> {
    let stat = rustix::fs::fstat(&descriptor)?;
    Ok(match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo => DescriptorKind::Pipe,
        // Datagrams and packets have boundaries, which a byte stream would not preserve.
        FileType::Socket if rustix::net::sockopt::socket_type(&descriptor)? == SocketType::STREAM => {
            DescriptorKind::Socket
        }
        _ => DescriptorKind::Other,
    })
}

/// Opens the same end of the same pipe again, with a non-blocking open file description of its own.
///
/// Reopening a pipe fails where there is no `/proc`, where the pipe belongs to another user, and for the writing end of
/// a named pipe without a reader.
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
        return Err(io::Error::other("reopening a pipe through /proc/self/fd opened another file"));
    }
    Ok(opened)
}

/// Always returns an error: only Linux can reopen a pipe.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn reopen_pipe(_pipe: &OwnedFd, _end: PipeEnd) -> io::Result<OwnedFd> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// Enlarges the buffer of a pipe, so that a large response is one write, and not a write, a wait and another write. If
/// the system refuses to enlarge the buffer, the pipe stays as it is.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn enlarge_pipe_buffer(pipe: &OwnedFd) {
    const SIZE: usize = 1024 * 1024;
    if rustix::pipe::fcntl_getpipe_size(pipe).is_ok_and(|size| size < SIZE) {
        let _ = rustix::pipe::fcntl_setpipe_size(pipe, SIZE);
    }
}

/// Does nothing: only Linux can enlarge the buffer of a pipe.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn enlarge_pipe_buffer(_pipe: &OwnedFd) {}

fn duplicate(descriptor: impl AsFd) -> io::Result<OwnedFd> {
    // At least 3: never one of the standard descriptors, even if one of them is closed.
    Ok(rustix::io::fcntl_dupfd_cloexec(descriptor, 3)?)
}
