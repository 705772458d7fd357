//! What people are told of a process that failed them: why it could not be started, or how it ended and what it said last.
//!
//! It goes into errors, so it names the program and never its arguments or its environment: they may hold secrets.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::process::{self, ExitStatus};

/// So much of what a process said last is kept.
const BYTES: usize = 4 * 1024;

/// And no more lines than this.
const LINES: usize = 20;

/// The end of what a process has said on standard error.
#[derive(Default)]
pub(super) struct Tail {
    bytes: VecDeque<u8>,
    /// There was more before it.
    cut: bool,
}

impl Tail {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let kept = bytes.get(bytes.len().saturating_sub(BYTES)..).unwrap_or_default();
        let excess = (self.bytes.len() + kept.len()).saturating_sub(BYTES);
        self.cut |= excess > 0 || kept.len() < bytes.len();
        self.bytes.drain(..excess.min(self.bytes.len()));
        self.bytes.extend(kept);
    }

    /// The last lines, whole ones if there are any. What would steer a terminal is left out.
    fn lines(&self) -> Vec<String> {
        let (front, back) = self.bytes.as_slices();
        let text = [front, back].concat();
        let first_whole = text.iter().position(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        let whole = if self.cut { text.get(first_whole..).filter(|rest| !rest.is_empty()) } else { None };
        let text = String::from_utf8_lossy(whole.unwrap_or(&text));
        let readable = |line: &str| line.chars().filter(|&c| c == '\t' || !c.is_control()).collect::<String>();
        let lines: Vec<String> = text.trim_end().lines().map(|line| readable(line).trim_end().to_owned()).collect();
        lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default().to_vec()
    }
}

/// Why a process ended that was not asked to.
pub(super) enum Cause {
    /// By itself, in this way.
    Itself(Option<ExitStatus>),
    /// It had closed its pipes, so we ended it.
    ClosedPipes,
    /// This program killed it.
    Killed,
}

/// How a process ended, in a line, and what it said last in those below.
pub(super) fn obituary(program: &str, cause: Cause, said: &Tail) -> String {
    let mut text = match cause {
        Cause::Itself(Some(status)) => format!("`{program}` has ended ({status})"),
        Cause::Itself(None) => format!("`{program}` has ended"),
        Cause::ClosedPipes => format!("`{program}` closed its standard input or output, and was ended"),
        Cause::Killed => format!("`{program}` was killed by this program"),
    };
    let lines = said.lines();
    if !lines.is_empty() {
        text.push(':');
    }
    for line in lines {
        // Writing to a string does not fail.
        let _ = write!(text, "\n    {line}");
    }
    text
}

/// The name of the program that a command starts. A whole command line that was given in its place is cut: what comes behind
/// the first word may be arguments.
pub(super) fn name_of(process: &process::Command) -> String {
    let program = process.get_program().to_string_lossy();
    match program.split_once(char::is_whitespace) {
        Some((first, _)) if !Path::new(process.get_program()).exists() => format!("{first} ..."),
        _ => program.into_owned(),
    }
}

/// Why a process could not be started, and what to do about it.
pub(super) fn unstartable(process: &process::Command, error: &io::Error) -> io::Error {
    let program = name_of(process);
    let kind = error.kind();
    let text = match process.get_current_dir().filter(|directory| !directory.is_dir()) {
        Some(directory) => format!("there is no directory `{}` to start `{program}` in", directory.display()),
        None if kind == io::ErrorKind::NotFound => not_found(process.get_program(), &program),
        None if kind == io::ErrorKind::PermissionDenied => {
            format!("`{program}` may not be run: it has to be a program, and executable ({error})")
        }
        None => format!("`{program}` could not be started: {error}"),
    };
    io::Error::new(kind, text)
}

fn not_found(program: &OsStr, name: &str) -> String {
    if Path::new(program).is_file() {
        return format!("what `{name}` is to be run with does not exist: see its first line");
    }
    if program.to_string_lossy().contains(char::is_whitespace) {
        return format!("there is no program `{name}`: give it its arguments with `arg`");
    }
    format!("there is no program `{name}`: give its path, or install it where PATH leads")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(parts: &[&[u8]]) -> Vec<String> {
        let mut tail = Tail::default();
        for part in parts {
            tail.push(part);
        }
        tail.lines()
    }

    #[test]
    fn what_was_said_last_is_whole_lines_without_what_steers_a_terminal() {
        assert_eq!(said(&[b"on", b"e\r\n\x1b[31mtwo\n\n"]), ["one", "[31mtwo"]);
        assert_eq!(said(&[b"no end \xff"]), ["no end \u{fffd}"]);
        assert!(said(&[b"\n\n"]).iter().all(String::is_empty));
    }

    #[test]
    fn only_the_last_lines_are_kept() {
        let many: Vec<String> = (0..100).map(|line| line.to_string()).collect();
        let lines = said(&[many.join("\n").as_bytes()]);
        assert_eq!((lines.len(), lines.first().map(String::as_str)), (LINES, Some("80")));
    }

    #[test]
    fn however_long_a_line_is_only_its_end_is_kept() {
        let long = vec![b'x'; 3 * BYTES];
        for step in [1, 100, BYTES, 3 * BYTES] {
            let mut tail = Tail::default();
            for part in long.chunks(step) {
                tail.push(part);
            }
            assert_eq!(tail.lines(), ["x".repeat(BYTES)], "{step}");
            tail.push(b"\nthe end");
            assert_eq!(tail.lines(), ["the end"], "{step}");
        }
    }

    #[test]
    fn a_command_line_in_the_place_of_a_program_is_not_shown() {
        let process = process::Command::new("server --token=secret");
        let error = unstartable(&process, &io::ErrorKind::NotFound.into()).to_string();
        assert_eq!(error, "there is no program `server ...`: give it its arguments with `arg`");
        let error = unstartable(&process, &io::ErrorKind::PermissionDenied.into()).to_string();
        assert!(error.starts_with("`server ...` may not be run"), "{error}");
        let error = unstartable(&process, &io::ErrorKind::OutOfMemory.into()).to_string();
        assert!(error.starts_with("`server ...` could not be started"), "{error}");
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
