//! Writing to standard output and standard error. The reader of a pipe may close it at any time (`| head -1`): the command
//! never panics because of that.
//!
//! A closed standard output is not an error: the rest of the output is dropped, and the exit code is that of the request. Any
//! other failure to write to standard output, such as a full disk, is reported. Failures to write to standard error are
//! ignored.

use std::fmt;
use std::io::{self, Write};

/// Prints text to standard output; a closed pipe is not an error.
///
/// # Errors
///
/// Returns an error if the write to standard output fails for any reason other than a closed pipe.
pub(crate) fn print(text: &str) -> io::Result<()> {
    write(&mut io::stdout().lock(), text)
}

fn write(out: &mut impl Write, text: &str) -> io::Result<()> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Prints a line to standard error.
pub(crate) fn eprint_line(text: impl fmt::Display) {
    eprint(&format!("{text}\n"));
}

/// Prints text to standard error; a failed write is ignored.
pub(crate) fn eprint(text: &str) {
    // There is nowhere left to report a failure of standard error.
    let _ = write(&mut io::stderr().lock(), text);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every write fails with this error.
    struct FailingWriter(io::ErrorKind);

    impl Write for FailingWriter {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_closed_pipe_is_not_an_error_and_a_full_disk_is() {
        assert!(write(&mut FailingWriter(io::ErrorKind::BrokenPipe), "text").is_ok());
        assert!(write(&mut FailingWriter(io::ErrorKind::StorageFull), "text").is_err());
    }
}
