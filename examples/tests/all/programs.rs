//! Every example runs, exits by itself, and prints what it is supposed to show.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The output of an example. Fails if it takes too long or does not exit with success.
fn output_of(program: &str, input: &str) -> String {
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    child.stdin.take().expect("it is piped").write_all(input.as_bytes()).expect("it reads its input");
    wait_for(&mut child);
    let output = child.wait_with_output().expect("it has ended");
    assert!(output.status.success(), "{program}: {}", output.status);
    String::from_utf8(output.stdout).expect("it prints text")
}

/// Waits with a timeout, so that a hanging example fails the test.
fn wait_for(child: &mut Child) {
    let begun = Instant::now();
    while child.try_wait().expect("it can be waited for").is_none() {
        if begun.elapsed() > Duration::from_secs(60) {
            child.kill().expect("it can be killed");
            panic!("it did not end");
        }
        thread::sleep(Duration::from_millis(5));
    }
}

fn assert_prints(output: &str, expected: &[&str]) {
    for words in expected {
        assert!(output.contains(words), "`{words}` is not in:\n{output}");
    }
}

#[test]
fn quickstart_responds_and_exits_at_the_end_of_input() {
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":2,"b":3},"#;
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#;
    let rest = r#""io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let output = output_of(env!("CARGO_BIN_EXE_quickstart"), &format!("{call}{meta}{rest}\n"));
    let answer: serde_json::Value = serde_json::from_str(&output).expect("one answer");
    assert_eq!(answer["id"], 1);
    assert_eq!(answer["result"]["content"][0]["text"], "5");
}

#[test]
fn quickstart_is_short() {
    let source = include_str!("../../src/bin/quickstart.rs");
    let lines = source.lines().filter(|line| !line.is_empty() && !line.starts_with("//!"));
    assert_eq!(lines.count(), 15);
}

#[test]
fn quickstart_is_what_the_readme_shows() {
    let source = include_str!("../../src/bin/quickstart.rs");
    let code = source.split_once("\n\n").expect("the documentation, then the code").1;
    assert!(include_str!("../../../README.md").contains(code));
}

#[test]
fn quickstart_client_starts_the_server_and_calls_it() {
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_quickstart")).parent().expect("it is in a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_quickstart_client"));
    let output = command.env("PATH", folder).stdin(Stdio::null()).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "5\n");
}

#[test]
fn quickstart_client_is_what_the_readme_shows() {
    let source = include_str!("../../src/bin/quickstart_client.rs");
    let code = source.split_once("\n\n").expect("the documentation, then the code").1;
    assert!(include_str!("../../../README.md").contains(code));
}

#[test]
fn arguments() {
    let output = output_of(env!("CARGO_BIN_EXE_arguments"), "");
    assert_prints(
        &output,
        &["\"required\":[\"city\"]", "[68.0,77.0,86.0]", "there is no forecast for 30 days", "`days`", "`city`"],
    );
}

#[test]
fn cancellation() {
    let output = output_of(env!("CARGO_BIN_EXE_cancellation"), "");
    let castle = "the castle: request timed out before tools/call had a response, outcome Unknown";
    assert_prints(
        &output,
        &["progress 1.00: brick 3", "a house of 3 bricks", castle, "cleanup: ", "cancelled by the peer"],
    );
}

#[test]
fn features() {
    let output = output_of(env!("CARGO_BIN_EXE_features"), "");
    assert_prints(&output, &["tool: wrote shopping", "titles at notes://all", "note at notes://note/{title}"]);
    assert_prints(
        &output,
        &["holds Some(\"milk, bread, rope\")", "notes://note/nothing: ", "completed: [\"shorten\", \"sort\"]"],
    );
    assert_prints(&output, &["Please sort this note. Use at most 3 words.", "Bad argument `words`"]);
}

#[test]
fn dynamic_tools() {
    let output = output_of(env!("CARGO_BIN_EXE_dynamic_tools"), "");
    assert_prints(&output, &["tools: roll_red, roll_blue\n", "6 sides: 1", "1 sides: ", "minimum"]);
}

#[test]
fn client_in_memory() {
    let output = output_of(env!("CARGO_BIN_EXE_client_in_memory"), "");
    let expected = ["the server rejected it", "it may have been executed"];
    assert_prints(
        &output,
        &["newest: 2026-07-28", "older: 2025-06-18", "there is no gold here", expected[0], expected[1]],
    );
}

#[test]
fn child_process() {
    let output = output_of(env!("CARGO_BIN_EXE_child_process"), "");
    assert_prints(
        &output,
        &["connected in revision 2026-07-28", "hello from process", "a client called hello", "ended: "],
    );
}

#[test]
fn over_http() {
    let output = output_of(env!("CARGO_BIN_EXE_over_http"), "");
    assert!(output.contains("revision 2026-07-28"), "{output}");
}

#[test]
fn sockets() {
    let output = output_of(env!("CARGO_BIN_EXE_sockets"), "");
    assert_prints(&output, &["over TCP", "over any reader and writer"]);
}

#[test]
fn shutdown() {
    let output = output_of(env!("CARGO_BIN_EXE_shutdown"), "");
    let cleanup = "cleanup of the call of 60000 ms: the server is shutting down";
    assert_prints(&output, &["worked 100 ms", cleanup, "shut down before", "ended within its deadline", "0 handlers"]);
}

#[test]
fn client_input() {
    let output = output_of(env!("CARGO_BIN_EXE_client_input"), "");
    assert_prints(&output, &["folders: 2", "without roots: "]);
}

#[test]
fn reconnect() {
    let output = output_of(env!("CARGO_BIN_EXE_reconnect"), "");
    let expected = [
        "at first: 0 is paid",
        "the outcome of the payment is unknown: ",
        "reconnected: 5 is paid",
        "the door is locked",
    ];
    assert_prints(&output, &expected);
    // It was not paid again.
    assert!(!output.contains("paid 5"), "{output}");
}

#[test]
fn notifications() {
    let output = output_of(env!("CARGO_BIN_EXE_notifications"), "");
    let cached = ["one client reads: nothing, read 1", "the other uses the cache: nothing, read 1, 1 cached"];
    let notified =
        ["changes: listening", "log message, info: \"the oven is hot\"", "changes: Resource(\"bakery://shelf\")"];
    let cancelled = ["cancelling after 3 of 1000000", "outcome Unknown"];
    assert_prints(&output, &cached);
    assert_prints(&output, &notified);
    assert_prints(&output, &["the other reads again: bread, read 2"]);
    assert_prints(&output, &cancelled);
}
