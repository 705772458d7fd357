//! What the command writes. Whoever reads it may leave at any time (`| head -1`), and nothing here panics about that.
//!
//! A reader of standard output who has left wants no more: the rest is not written, and the command ends as it would have,
//! with the code of its outcome. Any other trouble, a full disk say, is told. Standard error is for whoever is there to read it.

use std::fmt;
use std::io::{self, Write};

/// Prints to standard output, for people and scripts.
///
/// # Errors
///
/// If it could not be written, for any other reason than that nobody reads it any more.
pub(crate) fn print(text: &str) -> io::Result<()> {
    write(&mut io::stdout().lock(), text)
}

fn write(out: &mut impl Write, text: &str) -> io::Result<()> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Says something on standard error, in a line.
pub(crate) fn say(words: impl fmt::Display) {
    put(&format!("{words}\n"));
}

/// Says something on standard error, as it is.
pub(crate) fn put(words: &str) {
    // If standard error cannot be written to there is nowhere left to say so.
    let _ = write(&mut io::stderr().lock(), words);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails in its own way, always.
    struct Failing(io::ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_who_has_left_is_no_failure_and_a_full_disk_is_one() {
        assert!(write(&mut Failing(io::ErrorKind::BrokenPipe), "text").is_ok());
        assert!(write(&mut Failing(io::ErrorKind::StorageFull), "text").is_err());
    }
}
