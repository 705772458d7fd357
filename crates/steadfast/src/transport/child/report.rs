//! Error messages about a process: why it could not be started, or how it exited, with its last lines of standard error.
//!
//! Error messages about a process name its program, but never its arguments or environment, which may contain
//! secrets.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::process::{self, ExitStatus};

/// The maximum number of bytes of standard error that are stored for the exit report.
const MAX_BYTES: usize = 4 * 1024;

/// The maximum number of lines of standard error that an exit report shows.
const MAX_LINES: usize = 20;

/// The last bytes that a child process wrote to standard error.
#[derive(Default)]
pub(super) struct StderrTail {
    bytes: VecDeque<u8>,
    /// Earlier bytes of the child process's standard error were dropped, because only the last `MAX_BYTES` are
    /// stored.
    cut: bool,
}

impl StderrTail {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let last = bytes.get(bytes.len().saturating_sub(MAX_BYTES)..).unwrap_or_default();
        let excess = (self.bytes.len() + last.len()).saturating_sub(MAX_BYTES);
        self.cut |= excess > 0 || last.len() < bytes.len();
        self.bytes.drain(..excess.min(self.bytes.len()));
        self.bytes.extend(last);
    }

    /// The last lines of standard error: only complete ones, if there are any. Control characters other than tabs are
    /// removed from the lines of standard error.
    fn lines(&self) -> Vec<String> {
        let (front, back) = self.bytes.as_slices();
        let text = [front, back].concat();
        let first_whole = text.iter().position(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        let whole = if self.cut { text.get(first_whole..).filter(|rest| !rest.is_empty()) } else { None };
        let text = String::from_utf8_lossy(whole.unwrap_or(&text));
        let readable = |line: &str| line.chars().filter(|&c| c == '\t' || !c.is_control()).collect::<String>();
        let lines: Vec<String> = text.trim_end().lines().map(|line| readable(line).trim_end().to_owned()).collect();
        lines.get(lines.len().saturating_sub(MAX_LINES)..).unwrap_or_default().to_vec()
    }
}

/// Why a child process ended although this program did not request its end.
pub(super) enum ProcessExitCause {
    /// The child process exited by itself, with this status.
    Exited(Option<ExitStatus>),
    /// The child process closed its pipes, so the supervisor ended it.
    ClosedPipes,
    /// This program killed the child process.
    Killed,
}

/// How a process ended, in one line, followed by its last lines of standard error.
pub(super) fn exit_report(program: &str, cause: ProcessExitCause, stderr_tail: &StderrTail) -> String {
    let mut text = match cause {
        ProcessExitCause::Exited(Some(status)) => format!("`{program}` exited ({status})"),
        ProcessExitCause::Exited(None) => format!("`{program}` exited"),
        ProcessExitCause::ClosedPipes => format!("`{program}` closed its standard input or output and was terminated"),
        ProcessExitCause::Killed => format!("`{program}` was killed by this program"),
    };
    let lines = stderr_tail.lines();
    if !lines.is_empty() {
        text.push(':');
    }
    for line in lines {
        // Writing to a string does not fail.
        let _ = write!(text, "\n    {line}");
    }
    text
}

/// The name of the program that a command starts. A name that looks like a whole command line is cut after the first
/// word, because the rest may be arguments.
pub(super) fn name_of(process: &process::Command) -> String {
    let program = process.get_program().to_string_lossy();
    match program.split_once(char::is_whitespace) {
        Some((first, _)) if !Path::new(process.get_program()).exists() => format!("{first} ..."),
        _ => program.into_owned(),
    }
}

/// An error that says why a process could not be started, and what to do about it.
pub(super) fn spawn_error(process: &process::Command, error: &io::Error) -> io::Error {
    let program = name_of(process);
    let kind = error.kind();
    let text = match process.get_current_dir().filter(|directory| !directory.is_dir()) {
        Some(directory) => {
            format!("cannot start `{program}`: there is no working directory `{}`", directory.display())
        }
        None if kind == io::ErrorKind::NotFound => not_found(process.get_program(), &program),
        None if kind == io::ErrorKind::PermissionDenied => {
            format!("cannot start `{program}`: it has to be an executable program ({error})")
        }
        None => format!("cannot start `{program}`: {error}"),
    };
    io::Error::new(kind, text)
}

fn not_found(program: &OsStr, name: &str) -> String {
    if Path::new(program).is_file() {
        return format!("cannot start `{name}`: its interpreter was not found (see its first line)");
    }
    if program.to_string_lossy().contains(char::is_whitespace) {
        return format!("program `{name}` not found: pass its arguments with `arg`");
    }
    format!("program `{name}` not found: give its path, or add its directory to PATH")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(parts: &[&[u8]]) -> Vec<String> {
        let mut tail = StderrTail::default();
        for part in parts {
            tail.push(part);
        }
        tail.lines()
    }

    #[test]
    fn the_tail_is_complete_lines_without_control_characters() {
        assert_eq!(lines_of(&[b"on", b"e\r\n\x1b[31mtwo\n\n"]), ["one", "[31mtwo"]);
        assert_eq!(lines_of(&[b"no end \xff"]), ["no end \u{fffd}"]);
        assert!(lines_of(&[b"\n\n"]).iter().all(String::is_empty));
    }

    #[test]
    fn only_the_last_lines_are_shown() {
        let many: Vec<String> = (0..100).map(|line| line.to_string()).collect();
        let lines = lines_of(&[many.join("\n").as_bytes()]);
        assert_eq!((lines.len(), lines.first().map(String::as_str)), (MAX_LINES, Some("80")));
    }

    #[test]
    fn only_the_end_of_a_long_line_is_stored() {
        let long = vec![b'x'; 3 * MAX_BYTES];
        for step in [1, 100, MAX_BYTES, 3 * MAX_BYTES] {
            let mut tail = StderrTail::default();
            for part in long.chunks(step) {
                tail.push(part);
            }
            assert_eq!(tail.lines(), ["x".repeat(MAX_BYTES)], "{step}");
            tail.push(b"\nthe end");
            assert_eq!(tail.lines(), ["the end"], "{step}");
        }
    }

    #[test]
    fn a_command_line_in_the_place_of_a_program_is_not_shown() {
        let process = process::Command::new("server --token=secret");
        let error = spawn_error(&process, &io::ErrorKind::NotFound.into()).to_string();
        assert_eq!(error, "program `server ...` not found: pass its arguments with `arg`");
        for kind in [io::ErrorKind::PermissionDenied, io::ErrorKind::OutOfMemory] {
            let error = spawn_error(&process, &kind.into()).to_string();
            assert!(error.starts_with("cannot start `server ...`: "), "{error}");
        }
        let command = super::super::Command::new("server --token=secret");
        assert_eq!(format!("{command:?}"), "Command { program: \"server ...\", .. }");
    }

    #[test]
    fn a_program_with_a_space_in_its_name_is_named_whole() {
        let path = std::env::temp_dir().join(format!("steadfast report {}", process::id()));
        std::fs::write(&path, "").unwrap();
        let name = name_of(&process::Command::new(&path));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(Path::new(&name), path);
    }
}
