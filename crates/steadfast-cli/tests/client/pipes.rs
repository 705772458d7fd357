//! Closed pipes and full disks: no panic, and the exit code still tells the outcome.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};

use crate::kit::{STEADFAST, TempFolder, serve, text};

/// Runs the command with a closed standard output: its exit code and its standard error.
fn unread(arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(STEADFAST);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command starts");
    // Closed before it prints anything: it has to start a server first.
    drop(child.stdout.take());
    let ended = child.wait_with_output().expect("it ends");
    (ended.status.code(), text(&ended.stderr))
}

#[test]
fn a_closed_standard_output_does_not_change_the_exit_code() {
    let serve = serve();
    for (arguments, code) in [
        (&["call", &serve, "blob", "--arg", "bytes=300000"][..], 0),
        (&["call", &serve, "blob", "--arg", "bytes=300000", "--json"], 0),
        (&["call", &serve, "blob", "--arg", "bytes=999999999"], 1),
        (&["list", &serve], 0),
        (&["list", &serve, "--json"], 0),
        (&["read", &serve, "steadfast://counter"], 0),
        (&["prompt", &serve, "explain_law", "--arg", "law=L1"], 0),
        (&["--help"], 0),
    ] {
        let (ended, said) = unread(arguments);
        assert_eq!((ended, &*said), (Some(code), ""), "{arguments:?}");
    }
}

#[test]
fn a_closed_standard_error_is_ignored() {
    let mut command = Command::new(STEADFAST);
    command.args(["call", &serve(), "progress", "--arg", "steps=3"]);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    drop(child.stderr.take());
    let ended = child.wait_with_output().expect("it ends");
    assert_eq!((ended.status.code(), &*text(&ended.stdout)), (Some(0), "3 steps\n"));
}

/// Its message about the address fails, and it serves.
#[cfg(unix)]
#[test]
fn a_server_serves_with_a_closed_standard_error() {
    let folder = TempFolder::new("unread");
    let path = folder.path("socket");
    let mut command = Command::new(STEADFAST);
    command.args(["serve", "--unix", &path]).stdin(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    drop(child.stderr.take());
    let stream = loop {
        match std::os::unix::net::UnixStream::connect(&path) {
            Ok(stream) => break stream,
            Err(_) if child.try_wait().expect("it can be asked").is_none() => std::thread::yield_now(),
            Err(error) => panic!("it is gone: {error}"),
        }
    };
    writeln!(&stream, r#"{{"jsonrpc":"2.0","id":1,"method":"ping"}}"#).expect("it reads");
    let mut answer = String::new();
    BufReader::new(&stream).read_line(&mut answer).expect("it answers");
    assert!(answer.contains("\"id\":1"), "{answer:?}");
    // An error means that it has exited already.
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_printed_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("there is one");
    let mut command = Command::new(STEADFAST);
    command.args(["call", &serve(), "echo", "--arg", "text=hello"]).stdin(Stdio::null()).stdout(full);
    let ended = command.output().expect("it starts");
    assert_eq!(ended.status.code(), Some(4));
    assert!(text(&ended.stderr).contains("could not be printed"), "{}", text(&ended.stderr));
}

/// More lines than a pipe holds and no more than wait, for a reader who is slower than the end of a server that has nothing left to do.
#[cfg(unix)]
#[test]
fn the_last_lines_of_the_log_are_written() {
    const PANICS: usize = 500;
    let mut command = Command::new(STEADFAST);
    command.args(["serve", "--max-in-flight", "1000"]).env_remove("RUST_LOG");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut input = child.stdin.take().expect("it is piped");
    let output = BufReader::new(child.stdout.take().expect("it is piped"));
    let answers = std::thread::spawn(move || output.lines().take(PANICS).map_while(Result::ok).count());
    for id in 1..=PANICS {
        let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
        let params = format!(r#"{{"name":"panic","arguments":{{}},"_meta":{meta}}}"#);
        let call = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#);
        writeln!(input, "{call}").expect("it reads");
    }
    assert_eq!(answers.join().expect("it reads"), PANICS);
    drop(input);
    let (mut log, mut byte) = (Vec::new(), [0]);
    let mut errors = child.stderr.take().expect("it is piped");
    while let Ok(1) = errors.read(&mut byte) {
        log.extend(byte);
    }
    assert!(child.wait().expect("it ends").success());
    assert_eq!(text(&log).matches("panicked: ").count(), PANICS);
}
