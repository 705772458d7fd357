//! Standard input of the server: writes that never hang the test when the server stops reading.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::failure::{Verdict, ensure, fail};

/// How long a single wait for room in the pipe lasts.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// The writing end of the server's standard input. Dropping it closes it.
pub(crate) struct Input {
    pipe: OwnedFd,
}

impl Input {
    pub(crate) fn new(pipe: OwnedFd) -> Verdict<Self> {
        // Our end of a pipe has an open file description of its own: the server's end is not touched.
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(Self { pipe })
    }

    /// Writes everything within that time.
    pub(crate) fn write_all(&self, bytes: &[u8], time: Duration) -> Verdict {
        let written = self.write_until(bytes, Instant::now() + time)?;
        ensure!(
            written == bytes.len(),
            "the server stopped reading: {written} of {} bytes written in {time:?}",
            bytes.len()
        );
        Ok(())
    }

    /// Writes what it can until then, and gives how much that was.
    pub(crate) fn write_until(&self, bytes: &[u8], deadline: Instant) -> Verdict<usize> {
        let mut written = 0;
        while written < bytes.len() {
            match rustix::io::write(&self.pipe, &bytes[written..]) {
                Ok(length) => written += length,
                Err(Errno::AGAIN) if Instant::now() >= deadline => break,
                Err(Errno::AGAIN) => {
                    poll(&mut [PollFd::new(&self.pipe, PollFlags::OUT)], Some(&POLL_INTERVAL))?;
                }
                Err(Errno::INTR) => {}
                Err(error) => fail!("the server does not take its input any more: {error}"),
            }
        }
        Ok(written)
    }
}
