//! The command at a pseudo-terminal: what the user sees and types.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Command, Stdio};

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::kit::{RunningCommand, STEADFAST, TempFolder, serve};
use crate::site::Site;

/// The command at a terminal. Its standard output is a pipe, as in `$(...)`.
struct Terminal {
    keyboard: File,
    spoken: RunningCommand,
}

impl Terminal {
    fn start(arguments: &[&str]) -> Self {
        Self::with(arguments, |_| {})
    }

    /// The command may be changed before it starts.
    fn with(arguments: &[&str], change: impl FnOnce(&mut Command)) -> Self {
        let (ours, theirs) = open(80);
        let mut command = Command::new(STEADFAST);
        command.args(arguments).stdout(Stdio::piped()).env("TERM", "xterm");
        command.stdin(theirs.try_clone().expect("there is room for descriptors")).stderr(theirs);
        change(&mut command);
        let child = command.spawn().expect("the command starts");
        // Only the child has the other end open now, so its exit closes the terminal.
        drop(command);
        let keyboard = ours;
        let screen = keyboard.try_clone().expect("there is room for descriptors");
        Self { keyboard, spoken: RunningCommand::new(child, screen) }
    }

    fn wait_for(&mut self, words: &str) -> String {
        self.spoken.wait_for(words)
    }

    fn type_in(&mut self, line: &str) {
        writeln!(self.keyboard, "{line}").expect("somebody has the terminal");
    }
}

/// A pseudo-terminal with this many columns: our end, and the one for the command.
fn open(columns: u16) -> (File, File) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("there are terminals");
    grantpt(&ours).expect("it is ours");
    unlockpt(&ours).expect("it can be opened");
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&ours, size).expect("it has a size");
    let name = ptsname(&ours, Vec::new()).expect("it has a name");
    let no_controlling = i32::try_from(OFlags::NOCTTY.bits()).expect("flags fit");
    let path = name.to_str().expect("it is text");
    let theirs = OpenOptions::new().read(true).write(true).custom_flags(no_controlling).open(path);
    (File::from(ours), theirs.expect("the other end opens"))
}

/// What a command shows on a terminal with this many columns.
fn shown(columns: u16, arguments: &[&str], change: impl FnOnce(&mut Command)) -> String {
    let (mut ours, theirs) = open(columns);
    let mut command = Command::new(STEADFAST);
    command.args(arguments).stdin(Stdio::null()).stdout(theirs).env("TERM", "xterm").env_remove("NO_COLOR");
    change(&mut command);
    let mut child = command.spawn().expect("the command starts");
    drop(command);
    let (mut screen, mut piece) = (Vec::new(), [0; 4096]);
    // Reading from a terminal that was closed is an error, and the end.
    while let Ok(length @ 1..) = ours.read(&mut piece) {
        screen.extend_from_slice(&piece[..length]);
    }
    assert!(child.wait().expect("it ends").success());
    String::from_utf8(screen).expect("it is text")
}

#[test]
fn a_list_fits_the_terminal() {
    let list = shown(60, &["list", &serve()], |command| {
        command.env("NO_COLOR", "1");
    });
    let lines: Vec<&str> = list.lines().collect();
    let (about, tables) = lines.split_at(lines.iter().position(|line| *line == "TOOLS").expect("it has tools"));
    assert!(about.len() > 1, "the server has something to say: {list}");
    assert!(tables.iter().all(|line| line.chars().count() <= 60), "{list}");
    let words: Vec<&str> = list.split_whitespace().collect();
    for expected in ["appends a line to the file named by the environment variable CLEANUP_LOG.", "Number of steps"] {
        assert!(words.join(" ").contains(expected), "{list}");
    }
    assert!(!list.contains('\u{1b}'), "{list:?}");
}

#[test]
fn names_are_bold_unless_no_color_is_set() {
    assert!(shown(80, &["list", &serve()], |_| {}).contains("\u{1b}[1madd\u{1b}[0m"));
    assert!(
        !shown(80, &["list", &serve()], |command| {
            command.env("NO_COLOR", "1");
        })
        .contains('\u{1b}')
    );
    assert!(
        !shown(80, &["list", &serve()], |command| {
            command.env("TERM", "dumb");
        })
        .contains('\u{1b}')
    );
}

#[test]
fn a_form_is_asked_with_its_defaults() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let mut terminal = Terminal::start(&["call", &serve(), "ask_user", "--revision", revision]);
        terminal.wait_for("Who are you?");
        terminal.wait_for("Your name");
        terminal.wait_for("name: ");
        terminal.type_in("");
        terminal.wait_for("This field is required.");
        terminal.wait_for("name: ");
        terminal.type_in("Ada");
        terminal.wait_for("(warm, formal) [warm]: ");
        terminal.type_in("");
        let (code, printed, said) = terminal.spoken.end();
        assert_eq!((code, printed.trim()), (Some(0), "Hello, Ada!"), "{said}");
        assert!(!said.contains('░'), "there was no progress to be shown: {said}");
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

/// Every kind of choice: by value, by number, by title; several at once; an invalid one is asked again.
#[test]
fn a_form_of_choices_is_filled_in() {
    let server = format!("{} --conformance", serve());
    let mut terminal = Terminal::start(&["call", &server, "test_elicitation_sep1330_enums"]);
    terminal.wait_for("untitledSingle (option1, option2, option3) (optional): ");
    terminal.type_in("option9");
    terminal.wait_for("There is no option `option9`.");
    terminal.wait_for("untitledSingle (");
    terminal.type_in("option2");
    terminal.wait_for("1  First Option");
    terminal.wait_for("titledSingle (1 to 3) (optional): ");
    terminal.type_in("3");
    terminal.wait_for("legacyEnum (1 to 3) (optional): ");
    terminal.type_in("option two");
    terminal.wait_for("untitledMulti (any of option1, option2, option3) (optional): ");
    terminal.type_in("option1, option3");
    terminal.wait_for("titledMulti (1 to 3, comma-separated) (optional): ");
    terminal.type_in("");
    let (code, printed, said) = terminal.spoken.end();
    assert_eq!(code, Some(0), "{said}");
    let content = printed.split_once("content=").expect("it was filled in").1;
    let content: serde_json::Value = serde_json::from_str(content.trim()).expect("it is JSON");
    let expected = serde_json::json!({
        "untitledSingle": "option2", "titledSingle": "value3", "legacyEnum": "opt2",
        "untitledMulti": ["option1", "option3"],
    });
    assert_eq!(content, expected);
}

#[test]
fn enter_accepts_defaults_and_numbers_are_checked() {
    let server = format!("{} --conformance", serve());
    let mut terminal = Terminal::start(&["call", &server, "test_elicitation_sep1034_defaults"]);
    for field in ["name [John Doe]: ", "age (whole number"] {
        terminal.wait_for(field);
        terminal.type_in(if field.starts_with("age") { "1.5" } else { "" });
    }
    terminal.wait_for("It must be a whole number.");
    terminal.wait_for("[30]: ");
    terminal.type_in("31");
    for field in ["[95.5]: ", "(active, inactive, pending) [active]: ", "(yes, no) [yes]: "] {
        terminal.wait_for(field);
        terminal.type_in(if field.contains("yes") { "n" } else { "" });
    }
    let (code, printed, said) = terminal.spoken.end();
    assert_eq!(code, Some(0), "{said}");
    let content = printed.split_once("content=").expect("it was filled in").1;
    let content: serde_json::Value = serde_json::from_str(content.trim()).expect("it is JSON");
    let expected =
        serde_json::json!({ "name": "John Doe", "age": 31, "score": 95.5, "status": "active", "verified": false });
    assert_eq!(content, expected);
}

#[test]
fn a_url_is_shown_in_full_with_escapes() {
    let site = Site::open_to_all();
    let mut terminal = Terminal::start(&["call", &site.url(), "visit", "--revision", "2026-07-28"]);
    let shown = terminal.wait_for("Open this URL in a browser? [y/N, m: I open it myself] ");
    let url = Site::address_to_visit();
    assert!(shown.contains(&url) && shown.contains("The host of the URL is example.com."), "{shown}");
    assert!(shown.contains("\\u{1b}[8mhidden") && !shown.contains('\u{1b}'), "{shown:?}");
    terminal.type_in("m");
    let (code, printed, said) = terminal.spoken.end();
    assert_eq!((code, printed.trim()), (Some(0), "accept"), "{said}");
}

/// The URL is shown and checked in its parsed form, which is what the browser gets.
#[test]
fn a_url_without_encryption_has_a_warning_in_every_spelling() {
    let site = Site::open_to_all();
    for written in ["HTTP://example.com/pay", "  http://example.com/pay", "ht\\ttp://example.com/pay"] {
        let url = format!(r#"{{"url": "{written}"}}"#);
        let mut terminal =
            Terminal::start(&["call", &site.url(), "visit", "--revision", "2026-07-28", "--arguments-json", &url]);
        let shown = terminal.wait_for("Open this URL in a browser?");
        assert!(shown.contains("  http://example.com/pay\r\n"), "{shown:?}");
        assert!(shown.contains("The host of the URL is example.com, without encryption."), "{shown:?}");
        terminal.type_in("n");
        let (code, printed, said) = terminal.spoken.end();
        assert_eq!((code, printed.trim()), (Some(0), "decline"), "{said}");
    }
}

/// A fake browser records the URL that it was opened with.
#[test]
fn a_url_is_opened_only_if_the_user_agrees() {
    use std::os::unix::fs::PermissionsExt as _;

    let (site, folder) = (Site::open_to_all(), TempFolder::new("browser"));
    let (opened, browser) = (folder.path("opened"), folder.path("xdg-open"));
    assert!(Command::new("mkfifo").arg(&opened).status().expect("there is mkfifo").success());
    std::fs::write(&browser, format!("#!/bin/sh\nprintf %s \"$1\" > '{opened}'\n")).expect("it is written");
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o700)).expect("it is ours");
    let path = format!("{}:{}", folder.0.display(), std::env::var("PATH").unwrap_or_default());
    for (answer, outcome) in [("n", "decline"), ("", "decline"), ("y", "accept")] {
        let arguments = ["call", &site.url(), "visit", "--revision", "2026-07-28"];
        let mut terminal = Terminal::with(&arguments, |command| {
            command.env("PATH", &path);
        });
        terminal.wait_for("Open this URL in a browser?");
        terminal.type_in(answer);
        let (code, printed, said) = terminal.spoken.end();
        assert_eq!((code, printed.trim()), (Some(0), outcome), "{said}");
    }
    // Only this URL was opened: otherwise the file would contain both.
    assert_eq!(std::fs::read_to_string(&opened).expect("somebody writes it"), Site::address_to_visit());
}

#[test]
fn an_interrupt_during_a_question_ends_the_command() {
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

/// A server of 2025-11-25 that sends progress, and a log message when the level is set.
const SPEAKING: &str = r#"
    ask() { read line; id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/'); }
    answer() { printf '{"jsonrpc":"2.0","id":%s,"result":{%s}}\n' "$id" "$1"; }
    tell() { printf '{"jsonrpc":"2.0","method":"notifications/%s","params":{%s}}\n' "$1" "$2"; }
    ask; answer '"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"s","version":"1"}'
    read line
    ask; answer ''
    ask; token=$(printf %s "$line" | sed 's/.*"progressToken":\([^,}]*\).*/\1/')
    tell progress "\"progressToken\":$token,\"progress\":1,\"total\":2,\"message\":\"half\""
    read go < "$GO"
    tell message '"level":"warning","logger":"pump","data":"careful\u001b[2J"'
    answer '"content":[{"type":"text","text":"done"}]'
    cat > /dev/null
"#;

#[test]
fn log_messages_are_dim_and_above_the_bar() {
    let folder = TempFolder::new("above");
    let go = folder.path("go");
    assert!(Command::new("mkfifo").arg(&go).status().expect("there is mkfifo").success());
    let variable = format!("GO={go}");
    let arguments = ["call", "any", "--revision", "2025-11-25", "--env", &variable, "--", "sh", "-c", SPEAKING];
    let mut terminal = Terminal::with(&arguments, |command| {
        command.env_remove("NO_COLOR");
    });
    // The bar is shown now.
    terminal.wait_for("half");
    std::fs::write(&go, "go\n").expect("somebody reads it");
    let before = terminal.wait_for("server (warning, pump): careful\\u{1b}[2J\u{1b}[0m\r\n");
    let (bar, _) = before.split_once("\u{1b}[2mserver").expect("it is dim");
    assert!(bar.ends_with("\u{1b}[2K") || bar.ends_with('\r'), "the bar is wiped first: {before:?}");
    let (code, printed, said) = terminal.spoken.end();
    assert_eq!((code, printed.trim()), (Some(0), "done"), "{said}");
}

#[test]
fn a_browser_is_opened_for_a_login_only_if_the_user_agrees() {
    let site = Site::locked();
    let folder = crate::kit::TempFolder::new("asked");
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
    let shown = terminal.wait_for("Open this URL in a browser? [Y/n] ");
    terminal.type_in("n");
    site.log_in(&shown);
    let (code, printed, said) = terminal.spoken.end();
    assert_eq!((code, printed.trim()), (Some(0), "ada"), "{said}");

    // The question need not be answered at all.
    let other = folder.path("others");
    let mut arguments = arguments;
    arguments[5] = &other;
    let mut terminal = Terminal::start(&arguments);
    let shown = terminal.wait_for("Open this URL in a browser? [Y/n] ");
    site.log_in(&shown);
    let (code, printed, said) = terminal.spoken.end();
    assert_eq!((code, printed.trim()), (Some(0), "ada"), "{said}");
}
