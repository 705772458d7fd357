//! The command-line client, run as people and scripts run it: against the reference server of the same command.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

const STEADFAST: &str = env!("CARGO_BIN_EXE_steadfast");

fn run(arguments: &[&str]) -> Output {
    let command = Command::new(STEADFAST).args(arguments).stdin(Stdio::null()).output();
    command.expect("the command starts")
}

fn serve() -> String {
    format!("'{STEADFAST}' serve")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The reference server over HTTP, killed at the end.
struct Served {
    child: Child,
    url: String,
}

impl Served {
    fn new() -> Self {
        let mut command = Command::new(STEADFAST);
        command.args(["serve", "--http", "127.0.0.1:0"]).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the server starts");
        let lines = BufReader::new(child.stderr.take().expect("it has a standard error")).lines();
        let mut lines = lines.map_while(Result::ok);
        let url = lines.find_map(|line| line.split_once("listening on ").map(|(_, url)| url.trim().to_owned()));
        // Read to its end, so that it is never short of room to complain.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url: url.expect("it says where it listens") }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // One that is gone already is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_list_is_a_table_for_people_and_json_for_scripts() {
    let shown = run(&["list", &serve()]);
    assert!(shown.status.success());
    assert!(text(&shown.stdout).contains("\necho "), "{}", text(&shown.stdout));
    for revision in ["2024-11-05", "2025-11-25", "2026-07-28"] {
        let listed = run(&["list", &serve(), "--json", "--revision", revision]);
        let listed: Value = serde_json::from_slice(&listed.stdout).expect("it is JSON");
        assert_eq!(listed["revision"], revision);
        let tools = listed["tools"].as_array().expect("there are tools");
        assert!(tools.iter().any(|tool| tool["name"] == "echo"));
    }
}

#[test]
fn a_call_ends_with_a_code_that_tells_its_outcome() {
    let served = Served::new();
    for target in [serve(), served.url.clone()] {
        let added = run(&["call", &target, "add", "--arg", "a=1", "--arg", "b=2"]);
        assert_eq!((added.status.code(), text(&added.stdout).trim()), (Some(0), "3"));
        let failed = run(&["call", &target, "blob", "--arg", "bytes=999999999"]);
        assert_eq!(failed.status.code(), Some(1), "the tool says that it failed");
        let refused = run(&["call", &target, "nothing"]);
        assert_eq!(refused.status.code(), Some(4));
        let panicked = run(&["call", &target, "panic"]);
        assert_eq!(panicked.status.code(), Some(4));
    }
    let absent = run(&["call", "http://127.0.0.1:1/mcp", "add"]);
    assert_eq!(absent.status.code(), Some(3), "{}", text(&absent.stderr));
    let dies = run(&["call", "sh -c 'read line; exit 1'", "add", "--revision", "2026-07-28"]);
    assert!(matches!(dies.status.code(), Some(4 | 5)), "{}", text(&dies.stderr));
}

#[test]
fn a_call_in_json_is_the_whole_result() {
    let called = run(&["call", &serve(), "echo", "--arguments-json", r#"{"text": "a\nb"}"#, "--json"]);
    let called: Value = serde_json::from_slice(&called.stdout).expect("it is JSON");
    assert_eq!(called["content"][0]["text"], "a\nb");
}

#[cfg(unix)]
#[test]
fn an_interrupt_takes_the_call_back_and_waits_for_the_server() {
    let folder = std::env::temp_dir().join(format!("steadfast-cli-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("there is a place for files");
    let log = folder.join("cleanup.log");
    let variable = format!("CLEANUP_LOG={}", log.display());
    let mut command = Command::new(STEADFAST);
    command.args(["call", &serve(), "slow_cleanup", "--arg", "ms=60000", "--env", &variable]);
    let mut client =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut lines =
        BufReader::new(client.stderr.take().expect("it has a standard error")).lines().map_while(Result::ok);
    // The tool says that it runs: only then is there something to clean up.
    assert!(lines.any(|line| line.contains("sleeping")));
    let interrupted = Command::new("kill").args(["-INT", &client.id().to_string()]).status();
    assert!(interrupted.is_ok_and(|status| status.success()));
    let said: Vec<String> = lines.collect();
    let said = said.concat();
    assert_eq!(client.wait().expect("it ends").code(), Some(130), "{said}");
    assert!(said.contains("given up"), "{said}");
    let cleaned = std::fs::read_to_string(&log).unwrap_or_default();
    assert_eq!(cleaned.lines().count(), 1, "its cleanup has run when the command is back");
    // Left behind, it would only be in the way.
    let _ = std::fs::remove_dir_all(&folder);
}
