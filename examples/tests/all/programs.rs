//! Every example runs, ends by itself, and says what it is there to say.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// What an example printed. It fails if it took too long, or ended with anything but success.
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

/// For an example that would hang if something were broken: a test that fails is better than one that does not end.
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

fn assert_says(output: &str, expected: &[&str]) {
    for words in expected {
        assert!(output.contains(words), "`{words}` is not in:\n{output}");
    }
}

#[test]
fn quickstart_answers_and_ends_with_its_input() {
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
fn quickstart_client_starts_the_server_and_asks_it() {
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
    assert_says(
        &output,
        &["\"required\":[\"city\"]", "[68.0,77.0,86.0]", "nobody knows the weather", "`days`", "`city`"],
    );
}

#[test]
fn cancellation() {
    let output = output_of(env!("CARGO_BIN_EXE_cancellation"), "");
    let castle = "the castle: request timed out before tools/call had a response, outcome Unknown";
    assert_says(
        &output,
        &["progress 1.00: brick 3", "a house of 3 bricks", castle, "cleanup: ", "cancelled by the peer"],
    );
}

#[test]
fn features() {
    let output = output_of(env!("CARGO_BIN_EXE_features"), "");
    assert_says(&output, &["tool: wrote shopping", "titles at notes://all", "note at notes://note/{title}"]);
    assert_says(
        &output,
        &["holds Some(\"milk, bread, rope\")", "notes://note/nothing: ", "completed: [\"shorten\", \"sort\"]"],
    );
    assert_says(&output, &["Please sort this note. Use at most 3 words.", "Bad argument `words`"]);
}

#[test]
fn tools_at_run_time() {
    let output = output_of(env!("CARGO_BIN_EXE_tools_at_run_time"), "");
    assert_says(&output, &["tools: roll_red, roll_blue\n", "6 sides: 1", "1 sides: ", "minimum"]);
}

#[test]
fn client_in_memory() {
    let output = output_of(env!("CARGO_BIN_EXE_client_in_memory"), "");
    let told = ["the server said no", "it may have been done"];
    assert_says(&output, &["newest: 2026-07-28", "older: 2025-06-18", "there is no gold here", told[0], told[1]]);
}

#[test]
fn client_of_a_child() {
    let output = output_of(env!("CARGO_BIN_EXE_client_of_a_child"), "");
    assert_says(&output, &["connected in revision 2026-07-28", "hello from process", "somebody is there", "ended: "]);
}

#[test]
fn over_http() {
    let output = output_of(env!("CARGO_BIN_EXE_over_http"), "");
    assert!(output.contains("revision 2026-07-28"), "{output}");
}

#[test]
fn sockets() {
    let output = output_of(env!("CARGO_BIN_EXE_sockets"), "");
    assert_says(&output, &["over TCP", "over any reader and writer"]);
}

#[test]
fn shutdown() {
    let output = output_of(env!("CARGO_BIN_EXE_shutdown"), "");
    let cleanup = "cleanup of the call of 60000 ms: the server is shutting down";
    assert_says(&output, &["worked 100 ms", cleanup, "shut down before", "ended within its deadline", "0 handlers"]);
}

#[test]
fn asking_the_client() {
    let output = output_of(env!("CARGO_BIN_EXE_asking_the_client"), "");
    assert_says(&output, &["folders: 2", "without roots: "]);
}

#[test]
fn coming_back() {
    let output = output_of(env!("CARGO_BIN_EXE_coming_back"), "");
    let told = ["at first: 0 is paid", "paid or not, nobody knows: ", "came back: 5 is paid", "the door is locked"];
    assert_says(&output, &told);
    // It was not paid again.
    assert!(!output.contains("paid 5"), "{output}");
}

#[test]
fn keeping_up() {
    let output = output_of(env!("CARGO_BIN_EXE_keeping_up"), "");
    let kept = ["one looks: nothing, at look 1", "the neighbour need not: nothing, at look 1, 1 kept"];
    let heard = ["changes: listening", "the log, info: \"the oven is hot\"", "changes: Resource(\"bakery://shelf\")"];
    let given_up = ["that is enough of 1000000", "outcome Unknown"];
    assert_says(&output, &kept);
    assert_says(&output, &heard);
    assert_says(&output, &["the neighbour looks again: bread, at look 2"]);
    assert_says(&output, &given_up);
}
