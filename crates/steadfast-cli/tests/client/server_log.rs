//! Log messages of the server, `--log-level`.

use serde_json::Value;

use crate::kit::{HttpServer, run, serve, text};

const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// Standard error and standard output of a call that logs at four levels.
fn logged(target: &str, options: &[&str]) -> (String, String) {
    let called = run(&[&["call", target, "log", "--arg", "text=careful"], options].concat());
    assert_eq!(called.status.code(), Some(0), "{}", text(&called.stderr));
    (text(&called.stderr), text(&called.stdout))
}

#[test]
fn warnings_of_a_server_are_shown_in_every_era() {
    let served = HttpServer::new();
    for revision in REVISIONS {
        for target in [serve(), served.url.clone()] {
            let (said, printed) = logged(&target, &["--revision", revision]);
            assert_eq!(said, "server (warning): careful\nserver (error): careful\n", "{revision} {target}");
            assert_eq!(printed, "logged\n");
        }
    }
}

#[test]
fn log_level_sets_the_threshold() {
    let all: String =
        ["debug", "info", "warning", "error"].map(|level| format!("server ({level}): careful\n")).concat();
    for revision in REVISIONS {
        let heard = |level: &str| logged(&serve(), &["--revision", revision, "--log-level", level]).0;
        assert_eq!(heard("debug"), all, "{revision}");
        assert_eq!(heard("error"), "server (error): careful\n", "{revision}");
        assert_eq!(heard("none"), "", "{revision}");
    }
    assert_eq!(run(&["call", &serve(), "log", "--log-level", "loud"]).status.code(), Some(2));
}

#[test]
fn log_messages_are_not_in_the_json() {
    let (said, printed) = logged(&serve(), &["--json", "--log-level", "info"]);
    let result: Value = serde_json::from_str(&printed).expect("it is JSON, and nothing else");
    assert_eq!(result["content"][0]["text"], "logged");
    assert_eq!(said.lines().count(), 3, "{said}");
}

#[cfg(unix)]
#[test]
fn log_level_has_no_effect_on_a_server_without_logging() {
    let script = r#"
        ask() { read line; id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/'); }
        answer() { printf '{"jsonrpc":"2.0","id":%s,"result":{%s}}\n' "$id" "$1"; }
        ask; answer '"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"mute","version":"1"}'
        read line
        ask; answer '"content":[]'
        cat > /dev/null"#;
    let call = |options: &[&str]| {
        let arguments = [&["call", "any", "--revision", "2025-11-25"], options, &["--", "sh", "-c", script]].concat();
        let called = run(&arguments);
        assert_eq!(called.status.code(), Some(0), "{}", text(&called.stderr));
        text(&called.stderr)
    };
    assert_eq!(
        call(&["--log-level", "info"]),
        "steadfast: --log-level has no effect: the server does not support logging\n"
    );
    assert_eq!(call(&[]), "");
}

#[cfg(unix)]
#[test]
fn log_messages_are_shown_for_resources_and_prompts_too() {
    let script = r#"
        ask() { read line; id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/'); }
        answer() { printf '{"jsonrpc":"2.0","id":%s,"result":{%s}}\n' "$id" "$1"; }
        has='"resources":{},"prompts":{},"logging":{}'
        ask; answer '"protocolVersion":"2025-11-25","capabilities":{'"$has"'},"serverInfo":{"name":"s","version":"1"}'
        read line
        ask; answer ''
        ask
        printf '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%s"}}\n' careful
        answer '"contents":[],"messages":[]'
        cat > /dev/null"#;
    for wanted in [["read", "file:///a"], ["prompt", "greet"]] {
        let options = ["--log-level", "info", "--revision", "2025-11-25", "--", "sh", "-c", script];
        let heard = run(&[&wanted[..], &options].concat());
        assert_eq!(text(&heard.stderr), "server (info): careful\n");
        assert_eq!(heard.status.code(), Some(0));
    }
}
