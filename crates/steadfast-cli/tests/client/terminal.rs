//! What people see and type: the command at a terminal of its own.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Command, Stdio};

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::kit::{STEADFAST, Spoken, serve};
use crate::site::Site;

/// The command at a terminal. Its standard output is a pipe, as in `$(...)`.
struct Terminal {
    keyboard: File,
    spoken: Spoken,
}

impl Terminal {
    fn start(arguments: &[&str]) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("there are terminals");
        grantpt(&ours).expect("it is ours");
        unlockpt(&ours).expect("it can be opened");
        let name = ptsname(&ours, Vec::new()).expect("it has a name");
        let no_controlling = i32::try_from(OFlags::NOCTTY.bits()).expect("flags fit");
        let path = name.to_str().expect("it is text");
        let theirs = OpenOptions::new().read(true).write(true).custom_flags(no_controlling).open(path);
        let theirs = theirs.expect("the other end opens");
        let mut command = Command::new(STEADFAST);
        command.args(arguments).stdout(Stdio::piped()).env("TERM", "xterm");
        command.stdin(theirs.try_clone().expect("there is room for descriptors")).stderr(theirs);
        let child = command.spawn().expect("the command starts");
        // It has the other end now, and when it is gone nobody has.
        drop(command);
        let keyboard = File::from(ours);
        let screen = keyboard.try_clone().expect("there is room for descriptors");
        Self { keyboard, spoken: Spoken::new(child, screen) }
    }

    fn wait_for(&mut self, words: &str) -> String {
        self.spoken.wait_for(words)
    }

    fn type_in(&mut self, line: &str) {
        writeln!(self.keyboard, "{line}").expect("somebody has the terminal");
    }
}

#[test]
fn what_a_server_asks_is_asked_with_its_defaults() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let mut terminal = Terminal::start(&["call", &serve(), "ask_user", "--revision", revision]);
        terminal.wait_for("Who are you?");
        terminal.wait_for("What to call you");
        terminal.wait_for("name: ");
        terminal.type_in("");
        terminal.wait_for("It has to be filled in.");
        terminal.wait_for("name: ");
        terminal.type_in("Ada");
        terminal.wait_for("(warm, formal) [warm]: ");
        terminal.type_in("");
        let (code, printed, said) = terminal.spoken.end();
        assert_eq!((code, printed.trim()), (Some(0), "Hello, Ada!"), "{said}");
    }
}

#[test]
fn a_form_can_be_declined() {
    let mut terminal = Terminal::start(&["call", &serve(), "ask_user"]);
    terminal.wait_for("name: ");
    terminal.type_in("/decline");
    let (code, printed, said) = terminal.spoken.end();
    assert_eq!(code, Some(1), "{printed}{said}");
    assert!(printed.contains("declined"), "{printed}");
}

#[test]
fn a_url_is_shown_whole_and_harmless() {
    let site = Site::open_to_all();
    let mut terminal = Terminal::start(&["call", &site.url(), "visit", "--revision", "2026-07-28"]);
    let shown = terminal.wait_for("[y/N] ");
    let url = Site::address_to_visit();
    assert!(shown.contains(&url), "{shown}");
    assert!(shown.contains("\\u{1b}[8mhidden") && !shown.contains('\u{1b}'), "{shown:?}");
    terminal.type_in("y");
    let (code, printed, said) = terminal.spoken.end();
    assert_eq!((code, printed.trim()), (Some(0), "accept"), "{said}");
}

#[test]
fn an_interrupt_while_a_question_waits_ends_the_command() {
    let mut terminal = Terminal::start(&["call", &serve(), "ask_user"]);
    terminal.wait_for("name: ");
    terminal.spoken.interrupt();
    let (code, _, said) = terminal.spoken.end();
    assert_eq!(code, Some(130), "{said}");
}

#[test]
fn progress_is_a_bar_at_a_terminal() {
    let mut terminal = Terminal::start(&["call", &serve(), "progress", "--arg", "steps=50"]);
    terminal.wait_for("% ");
    let (code, printed, said) = terminal.spoken.end();
    assert_eq!((code, printed.trim()), (Some(0), "50 steps"), "{said}");
    assert!(said.contains('█') || said.contains('░'), "{said}");
}

#[test]
fn a_browser_is_opened_only_if_somebody_says_so() {
    let site = Site::locked();
    let folder = crate::kit::Scratch::new("asked");
    let store = folder.path("tokens");
    let arguments = [
        "call",
        &site.url(),
        "whoami",
        "--login",
        "--token-store",
        &store,
        "--revision",
        "2026-07-28",
        "--timeout",
        "60",
    ];
    let mut terminal = Terminal::start(&arguments);
    let shown = terminal.wait_for("Open it in a browser? [Y/n] ");
    terminal.type_in("n");
    site.log_in(&shown);
    let (code, printed, said) = terminal.spoken.end();
    assert_eq!((code, printed.trim()), (Some(0), "ada"), "{said}");

    // And the answer need not be given at all.
    let other = folder.path("others");
    let mut arguments = arguments;
    arguments[5] = &other;
    let mut terminal = Terminal::start(&arguments);
    let shown = terminal.wait_for("Open it in a browser? [Y/n] ");
    site.log_in(&shown);
    let (code, printed, said) = terminal.spoken.end();
    assert_eq!((code, printed.trim()), (Some(0), "ada"), "{said}");
}
