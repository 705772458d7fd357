//! The command-line client, run as people and scripts run it: against the reference server of the same command, and against a
//! small site of the tests' own.
#![allow(missing_docs, reason = "tests")]

mod kit;
mod login;
mod site;
#[cfg(unix)]
mod terminal;

use serde_json::Value;

use kit::{STEADFAST, Served, run, serve, text};

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

/// One that says that it is there, and nothing more.
#[cfg(unix)]
#[test]
fn a_list_is_waited_for_as_long_as_was_said() {
    let script = r#"read line
        id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
        info='"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"mute","version":"1"}'
        printf '{"jsonrpc":"2.0","id":%s,"result":{%s}}\n' "$id" "$info"
        cat >/dev/null"#;
    let mute = run(&["list", "--revision", "2025-11-25", "--timeout", "1", "--", "sh", "-c", script]);
    assert_eq!(mute.status.code(), Some(5), "{}", text(&mute.stderr));
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
    let folder = kit::Scratch::new("interrupt");
    let log = folder.path("cleanup.log");
    let variable = format!("CLEANUP_LOG={log}");
    let arguments = ["call", &serve(), "slow_cleanup", "--arg", "ms=60000", "--env", &variable];
    let mut client = kit::Spoken::through_pipes(&arguments);
    // The tool says that it runs: only then is there something to clean up.
    client.wait_for("sleeping");
    client.interrupt();
    let (code, _, said) = client.end();
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("given up"), "{said}");
    let cleaned = std::fs::read_to_string(&log).unwrap_or_default();
    assert_eq!(cleaned.lines().count(), 1, "its cleanup has run when the command is back");
}

#[cfg(unix)]
#[test]
fn a_second_interrupt_does_not_wait_for_the_server() {
    let mut client = kit::Spoken::through_pipes(&["call", &serve(), "slow_cleanup", "--arg", "ms=60000"]);
    client.wait_for("sleeping");
    client.interrupt();
    client.wait_for("given up");
    client.interrupt();
    let (code, _, said) = client.end();
    assert_eq!(code, Some(130), "{said}");
}

#[test]
fn a_command_may_come_after_two_dashes() {
    let called = run(&["call", "add", "--arg", "a=1", "--arg", "b=2", "--", STEADFAST, "serve"]);
    assert_eq!((called.status.code(), text(&called.stdout).trim()), (Some(0), "3"), "{}", text(&called.stderr));
    assert!(run(&["list", "--", STEADFAST, "serve"]).status.success());
    let read = run(&["read", "steadfast://counter", "--", STEADFAST, "serve"]);
    assert_eq!(read.status.code(), Some(0), "{}", text(&read.stderr));
    let filled = run(&["prompt", "explain_law", "--arg", "law=L1", "--", STEADFAST, "serve"]);
    assert!(text(&filled.stdout).starts_with("user: "), "{}", text(&filled.stderr));
}

#[test]
fn what_makes_no_sense_is_a_code_of_its_own() {
    let url = "http://127.0.0.1:1/mcp";
    for senseless in [
        &["call", url][..],
        &["call", url, "add", "--arg", "a"],
        &["call", url, "add", "--arguments-json", "[]"],
        &["call", url, "add", "--", STEADFAST, "serve"],
        &["call", url, "add", "--header", "nothing"],
        &["call", url, "add", "--revision", "1999-01-01"],
        &["call", url, "add", "--client-id", "me", "--client-secret-env", "STEADFAST_IS_NOT_SET"],
        &["call", "ftp://127.0.0.1", "add", "--login"],
        &["list"],
        &["logout", "serve"],
        &["frobnicate"],
    ] {
        let ended = run(senseless);
        assert_eq!(ended.status.code(), Some(2), "{senseless:?}: {}", text(&ended.stderr));
    }
}

#[test]
fn the_codes_are_in_the_help() {
    for command in ["call", "list", "read", "prompt"] {
        let help = text(&run(&[command, "--help"]).stdout);
        for code in ["  0 ", "  1 ", "  2 ", "  3 ", "  4 ", "  5 ", "  6 ", "  130 "] {
            assert!(help.contains(code), "{command}: {help}");
        }
    }
}

#[test]
fn what_a_server_says_cannot_command_a_terminal() {
    let arguments = r#"{"text": "red \u001b[31m and \u009b31m"}"#;
    let shown = run(&["call", &serve(), "echo", "--arguments-json", arguments]);
    assert_eq!(text(&shown.stdout), "red \\u{1b}[31m and \\u{9b}31m\n");
    let written = text(&run(&["call", &serve(), "echo", "--arguments-json", arguments, "--json"]).stdout);
    assert!(!written.contains(['\u{1b}', '\u{9b}']), "{written:?}");
    let value: Value = serde_json::from_str(&written).expect("it is JSON");
    assert_eq!(value["content"][0]["text"], "red \u{1b}[31m and \u{9b}31m");
    let refused = run(&["call", &serve(), "no\u{1b}[31m"]);
    assert!(!text(&refused.stderr).contains('\u{1b}'), "{:?}", text(&refused.stderr));
}

#[test]
fn progress_in_a_pipe_is_lines() {
    let called = run(&["call", &serve(), "progress", "--arg", "steps=3"]);
    let said = text(&called.stderr);
    assert!(said.contains("steadfast: 100%") && !said.contains('\u{1b}'), "{said:?}");
}
