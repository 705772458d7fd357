//! The command-line client, run as people and scripts run it: against the reference server of the same command, and against a
//! small site of the tests' own.
#![allow(missing_docs, reason = "tests")]

mod kit;
mod login;
mod pipes;
mod server_log;
mod site;
#[cfg(unix)]
mod terminal;

use serde_json::Value;

use kit::{HttpServer, STEADFAST, run, serve, text};

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
fn the_exit_code_tells_the_outcome_of_a_call() {
    let served = HttpServer::new();
    for target in [serve(), served.url.clone()] {
        let added = run(&["call", &target, "add", "--arg", "a=1", "--arg", "b=2"]);
        assert_eq!((added.status.code(), text(&added.stdout).trim()), (Some(0), "3"));
        let failed = run(&["call", &target, "blob", "--arg", "bytes=999999999"]);
        assert_eq!(failed.status.code(), Some(1), "the tool reports an error");
        let refused = run(&["call", &target, "nothing"]);
        assert_eq!(refused.status.code(), Some(4));
        let panicked = run(&["call", &target, "panic"]);
        assert_eq!(panicked.status.code(), Some(4));
    }
    let absent = run(&["call", "http://127.0.0.1:1/mcp", "add"]);
    assert_eq!(absent.status.code(), Some(3), "{}", text(&absent.stderr));
    for revision in [&[][..], &["--revision", "2026-07-28"], &["--revision", "2025-11-25"]] {
        let dies = run(&[&["call", "sh -c 'read line; exit 1'", "add"], revision].concat());
        assert_eq!(dies.status.code(), Some(3), "it exited before the request was sent: {}", text(&dies.stderr));
    }
}

#[test]
fn a_list_says_what_tools_and_prompts_take() {
    let shown = text(&run(&["list", &serve()]).stdout);
    for row in [
        "\n  a                 number, required\n",
        "\n  ms                integer from 0, default 10: Duration of a step in milliseconds\n",
        "\n  progress          boolean, optional\n",
        "\nsteadfast://laws/{law}  The text of a law that this server keeps. [text/plain]\n",
        "\n  audience   optional: The audience of the explanation\n",
    ] {
        assert!(shown.contains(row), "{row:?} is not in {shown}");
    }
}

#[test]
fn a_list_can_be_narrowed() {
    let members = |arguments: &[&str]| {
        let listed = run(arguments);
        assert_eq!(listed.status.code(), Some(0), "{}", text(&listed.stderr));
        let listed: Value = serde_json::from_slice(&listed.stdout).expect("it is JSON");
        let lists = ["tools", "resources", "resourceTemplates", "prompts"];
        lists.into_iter().filter(|list| listed.get(list).is_some()).collect::<Vec<_>>()
    };
    assert_eq!(members(&["list", &serve(), "tools", "--json"]), ["tools"]);
    assert_eq!(members(&["list", &serve(), "templates", "--json"]), ["resourceTemplates"]);
    assert_eq!(members(&["list", "prompts", "--json", "--", STEADFAST, "serve"]), ["prompts"]);
    assert_eq!(members(&["list", &serve(), "--json"]).len(), 4);
    assert_eq!(run(&["list", &serve(), "everything"]).status.code(), Some(2));
}

#[test]
fn an_argument_is_text_where_the_tool_takes_text() {
    for (argument, expected) in [("text=42", "42\n"), ("text=true", "true\n"), ("text={\"a\":1}", "{\"a\":1}\n")] {
        let called = run(&["call", &serve(), "echo", "--arg", argument]);
        assert_eq!((called.status.code(), &*text(&called.stdout)), (Some(0), expected), "{}", text(&called.stderr));
    }
}

#[test]
fn an_argument_that_the_tool_does_not_have_is_sent_with_a_warning() {
    let served = HttpServer::new();
    for target in [serve(), served.url.clone()] {
        let called = run(&["call", &target, "progress", "--arg", "steps=1", "--arg", "mss=7", "--json"]);
        let said = text(&called.stderr);
        assert!(
            said.contains("`progress` has no argument `mss`: did you mean `ms`? (the argument is sent anyway)"),
            "{said}"
        );
        let result: Value = serde_json::from_slice(&called.stdout).expect("it is JSON, and nothing else");
        assert_eq!((called.status.code(), &result["content"][0]["text"]), (Some(0), &"1 steps".into()));
    }
    let known = run(&["call", &serve(), "echo", "--arg", "text=a"]);
    assert_eq!(text(&known.stderr), "");
}

#[test]
fn a_tool_is_not_called_with_an_argument_that_its_schema_refuses() {
    let counted = |target: &str| text(&run(&["read", target, "steadfast://counter"]).stdout);
    let served = HttpServer::new();
    let refused = run(&["call", &served.url, "count", "--arg", "twice=true"]);
    let said = text(&refused.stderr);
    assert_eq!((refused.status.code(), &*text(&refused.stdout)), (Some(2), ""), "{said}");
    assert!(said.contains("`count` has no argument `twice`") && said.contains("the tool was not called"), "{said}");
    assert_eq!(counted(&served.url), "0\n");
    // A JSON object is sent unchecked.
    let sent = run(&["call", &served.url, "count", "--arguments-json", r#"{"twice": true}"#]);
    assert_eq!(sent.status.code(), Some(0), "{}", text(&sent.stderr));
    assert_eq!(counted(&served.url), "1\n");
}

#[test]
fn arguments_may_be_in_files() {
    let folder = kit::TempFolder::new("arguments");
    let (words, all) = (folder.path("words.txt"), folder.path("all.json"));
    std::fs::write(&words, "one\ntwo").expect("it is written");
    std::fs::write(&all, r#"{"text": "three"}"#).expect("it is written");
    let called = run(&["call", &serve(), "echo", "--arg-file", &format!("text={words}")]);
    assert_eq!(text(&called.stdout), "one\ntwo\n", "{}", text(&called.stderr));
    let called = run(&["call", &serve(), "echo", "--arguments-json", &format!("@{all}")]);
    assert_eq!(text(&called.stdout), "three\n", "{}", text(&called.stderr));
    let absent = run(&["call", &serve(), "echo", "--arg-file", "text=/nowhere"]);
    assert_eq!(absent.status.code(), Some(2), "{}", text(&absent.stderr));
}

#[test]
fn unknown_names_and_arguments_get_a_hint() {
    let said = |arguments: &[&str]| text(&run(arguments).stderr);
    let tool = said(&["call", &serve(), "ehco"]);
    assert!(tool.contains("did you mean `echo`?") && tool.contains("slow_cleanup"), "{tool}");
    let argument = said(&["call", &serve(), "add", "--arg", "a=1", "--arg", "c=2"]);
    assert!(argument.contains("`b` is missing, `c` is unknown"), "{argument}");
    assert!(argument.contains("  b  number, required"), "{argument}");
    let resource = said(&["read", &serve(), "steadfast://nothing"]);
    assert!(resource.contains("steadfast://counter"), "{resource}");
    let question = said(&["call", &serve(), "ask_user"]);
    assert!(question.contains("needs a terminal"), "{question}");
    let prompt = said(&["prompt", &serve(), "explain_lw"]);
    assert!(prompt.contains("did you mean `explain_law`?"), "{prompt}");
    let prompt = said(&["prompt", &serve(), "explain_law"]);
    assert!(prompt.contains("  law       required: The name of the law, from L1 to L10"), "{prompt}");
}

#[test]
fn a_wrong_path_gets_a_hint_with_the_usual_one() {
    let served = HttpServer::new();
    let wrong = served.url.replace("/mcp", "/mpc");
    for revision in [&[][..], &["--revision", "2026-07-28"], &["--revision", "2025-11-25"]] {
        let asked = run(&[&["list", &wrong], revision].concat());
        let said = text(&asked.stderr);
        assert_eq!(asked.status.code(), Some(4), "{said}");
        let origin = served.url.replace("/mcp", "");
        assert!(said.contains(&format!("there is no MCP server at that path of {origin}.")), "{said}");
        assert!(said.contains(&format!("at /mcp: {}\n", served.url)), "{said}");
    }
}

/// A server of 2025-11-25; `answers` are the patterns and commands of a shell `case` on each line.
#[cfg(unix)]
fn scripted(answers: &str) -> String {
    format!(
        r#"reply() {{ printf '{{"jsonrpc":"2.0","id":%s,%s}}\n' "$id" "$1"; }}
        refuse() {{ reply "\"error\":{{\"code\":$1,\"message\":\"no\"}}"; }}
        has='"tools":{{}},"resources":{{}},"prompts":{{}}'
        while read line; do
            id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
            case "$line" in
                *'"initialize"'*) reply '"result":{{"protocolVersion":"2025-11-25","capabilities":{{'"$has"'}},"serverInfo":{{"name":"s","version":"1"}}}}';;
                *'"notifications/'*) ;;
                {answers}
            esac
        done"#
    )
}

#[cfg(unix)]
#[test]
fn there_is_no_hint_if_the_list_fails() {
    // Every list fails; that of the tools on its second page.
    let server = scripted(
        r#"*tools/list*cursor*) refuse -32603;;
        *tools/list*) reply '"result":{"tools":[{"name":"first","inputSchema":{"type":"object"}}],"nextCursor":"2"}';;
        *) refuse -32603;;"#,
    );
    for wanted in [["call", "add"], ["read", "file:///a"], ["prompt", "greet"]] {
        let refused = run(&[&wanted[..], &["--revision", "2025-11-25", "--", "sh", "-c", &server]].concat());
        assert_eq!(refused.status.code(), Some(4), "{}", text(&refused.stderr));
        assert_eq!(text(&refused.stderr), "steadfast: the server responded with an error: no (-32603)\n");
    }
}

#[cfg(unix)]
#[test]
fn an_unknown_list_method_does_not_fail_the_other_lists() {
    let server = scripted(
        r#"*resources/templates/list*) refuse -32601;;
        *resources/list*) reply '"result":{"resources":[{"name":"a","uri":"file:///a"}]}';;
        *prompts/list*) reply '"result":{"prompts":[]}';;
        *) reply '"result":{"tools":[]}';;"#,
    );
    let list = |what: &[&str]| {
        run(&[&["list"], what, &["--json", "--revision", "2025-11-25", "--", "sh", "-c", &server]].concat())
    };
    let all = list(&[]);
    assert_eq!(all.status.code(), Some(0), "{}", text(&all.stderr));
    let listed: Value = serde_json::from_slice(&all.stdout).expect("it is JSON");
    assert_eq!(listed["resources"][0]["uri"], "file:///a");
    // It is an error if only that list is requested.
    assert_eq!(list(&["templates"]).status.code(), Some(4));
}

#[test]
fn secrets_in_a_target_are_not_shown() {
    let served = HttpServer::new();
    let wrong = served.url.replace("/mcp", "/s3cret?key=s3cret").replace("://", "://me:s3cret@");
    for (target, shown) in [
        (&*wrong, "at /mcp: http://127.0.0.1:"),
        ("http://me:s3cret@127.0.0.1:1/s3cret?key=s3cret", "is there a server at http://127.0.0.1:1?"),
        ("ftp://me:s3cret@127.0.0.1", "`ftp://` is not supported"),
        ("KEY=s3cret://x", "this is not supported"),
    ] {
        let said = text(&run(&["list", target]).stderr);
        assert!(said.contains(shown), "{shown}: {said}");
        assert!(!said.contains("s3cret"), "{said}");
    }
}

#[test]
fn a_missing_program_is_named_and_nothing_was_sent() {
    for arguments in
        [&["call", "no-such-program-anywhere serve", "add"][..], &["list", "--", "no-such-program-anywhere"]]
    {
        let absent = run(arguments);
        let said = text(&absent.stderr);
        assert_eq!(absent.status.code(), Some(3), "{said}");
        assert!(said.contains("program `no-such-program-anywhere` not found"), "{said}");
        assert!(said.contains("safe to retry"), "{said}");
    }
}

#[cfg(unix)]
#[test]
fn the_stderr_of_a_server_that_exits_is_shown() {
    let dies = run(&["call", "add", "--", "sh", "-c", "echo 'the key is missing\u{1b}[2J' >&2; exit 7"]);
    let said = text(&dies.stderr);
    assert!(said.contains("`sh` exited (exit status: 7):\n"), "{said}");
    assert_eq!(said.matches("the key is missing").count(), 1, "{said}");
    assert!(!said.contains('\u{1b}'), "{said:?}");
}

#[test]
fn a_panic_of_a_handler_is_shown_with_the_stderr_of_the_server() {
    let called = run(&["call", &serve(), "panic"]);
    let said = text(&called.stderr);
    assert_eq!(called.status.code(), Some(4), "{said}");
    assert!(said.contains("the last lines of the server's standard error:\n  | "), "{said}");
    assert!(said.contains("panicked: ") && said.contains("trouble.rs"), "{said}");
    // An error with a reason needs no standard error.
    let refused = run(&["call", &serve(), "nothing"]);
    assert!(!text(&refused.stderr).contains("standard error"), "{}", text(&refused.stderr));
}

#[cfg(unix)]
#[test]
fn the_stderr_of_a_server_that_hangs_is_shown_without_its_exit() {
    let script = "echo >&2; echo 'listening on port 80' >&2; cat >/dev/null";
    let hangs = run(&["call", "add", "--revision", "2025-11-25", "--timeout", "1", "--", "sh", "-c", script]);
    let said = text(&hangs.stderr);
    assert_eq!(said.matches("standard error:\n  | listening on port 80\n").count(), 1, "{said}");
    assert!(!said.contains("exited") && !said.contains("signal"), "{said}");
}

#[cfg(unix)]
#[test]
fn verbose_shows_stderr_only_once() {
    let called = run(&["call", "print", "--arg", "text=stray", "--verbose", "--", STEADFAST, "serve"]);
    assert!(text(&called.stderr).contains("server: stray\n"), "{}", text(&called.stderr));
    // With a given revision the process is started once.
    let script = "echo 'the key is missing' >&2; exit 7";
    let dies = run(&["call", "add", "--revision", "2025-11-25", "--verbose", "--", "sh", "-c", script]);
    let said = text(&dies.stderr);
    assert_eq!(said.matches("the key is missing").count(), 1, "{said}");
    assert!(said.contains("`sh` exited (exit status: 7)\n"), "{said}");
}

/// A server that answers `initialize` and nothing else.
#[cfg(unix)]
#[test]
fn a_list_respects_the_timeout() {
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
    // Everything else is on standard error.
    let called = run(&["call", &serve(), "progress", "--arg", "steps=2", "--json"]);
    let result: Value = serde_json::from_slice(&called.stdout).expect("it is JSON");
    assert_eq!(result["content"][0]["text"], "2 steps");
    assert!(text(&called.stderr).contains("100%"));
    let failed = run(&["call", &serve(), "add", "--arg", "a=1", "--json"]);
    assert!(serde_json::from_slice::<Value>(&failed.stdout).is_ok_and(|result| result["isError"] == true));
}

#[cfg(unix)]
#[test]
fn an_interrupt_cancels_the_call_and_waits_for_the_server() {
    let folder = kit::TempFolder::new("interrupt");
    let log = folder.path("cleanup.log");
    let variable = format!("CLEANUP_LOG={log}");
    let arguments = ["call", &serve(), "slow_cleanup", "--arg", "ms=60000", "--env", &variable];
    let mut client = kit::RunningCommand::through_pipes(&arguments);
    // The tool says that it runs: only then is there something to clean up.
    client.wait_for("sleeping");
    client.interrupt();
    let (code, _, said) = client.end();
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("cancelling"), "{said}");
    let cleaned = std::fs::read_to_string(&log).unwrap_or_default();
    assert_eq!(cleaned.lines().count(), 1, "its cleanup has run when the command exits");
}

#[cfg(unix)]
#[test]
fn a_second_interrupt_does_not_wait_for_the_server() {
    let mut client = kit::RunningCommand::through_pipes(&["call", &serve(), "slow_cleanup", "--arg", "ms=60000"]);
    client.wait_for("sleeping");
    client.interrupt();
    client.wait_for("cancelling");
    client.interrupt();
    let (code, _, said) = client.end();
    assert_eq!(code, Some(130), "{said}");
}

#[cfg(unix)]
#[test]
fn sigterm_cancels_the_call_as_ctrl_c_does() {
    let folder = kit::TempFolder::new("terminated");
    let log = folder.path("cleanup.log");
    let variable = format!("CLEANUP_LOG={log}");
    let arguments = ["call", &serve(), "slow_cleanup", "--arg", "ms=60000", "--env", &variable];
    let mut client = kit::RunningCommand::through_pipes(&arguments);
    client.wait_for("sleeping");
    client.signal("TERM");
    let (code, _, said) = client.end();
    assert_eq!(code, Some(143), "{said}");
    let cleaned = std::fs::read_to_string(&log).unwrap_or_default();
    assert_eq!(cleaned.lines().count(), 1, "its cleanup has run when the command exits");
}

/// One that hears nothing: not the end of its input, and no signal that can be ignored.
#[cfg(target_os = "linux")]
#[test]
fn a_second_interrupt_kills_a_server_that_does_not_respond() {
    let folder = kit::TempFolder::new("deaf");
    let number = folder.path("number");
    let script = format!(
        r#"trap '' TERM INT
        echo $$ > '{number}'
        read line
        id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
        info='"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"deaf","version":"1"}}'
        printf '{{"jsonrpc":"2.0","id":%s,"result":{{%s}}}}\n' "$id" "$info"
        read line
        read line
        echo called >&2
        while :; do sleep 1; done"#
    );
    let arguments = ["call", "add", "--verbose", "--revision", "2025-11-25", "--", "sh", "-c", &script];
    let mut client = kit::RunningCommand::through_pipes(&arguments);
    client.wait_for("server: called");
    client.interrupt();
    client.wait_for("cancelling");
    client.interrupt();
    let (code, _, said) = client.end();
    assert_eq!(code, Some(130), "{said}");
    let number = std::fs::read_to_string(&number).expect("it has a number");
    let state = || std::fs::read_to_string(format!("/proc/{}/stat", number.trim())).unwrap_or_default();
    // It was killed; whoever inherits it may take a moment to notice.
    let gone = |stat: String| stat.is_empty() || stat.contains(") Z ");
    let ends = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !gone(state()) {
        assert!(std::time::Instant::now() < ends, "it still runs: {}", state());
        std::thread::yield_now();
    }
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
fn usage_errors_have_their_own_code() {
    let url = "http://127.0.0.1:1/mcp";
    for wrong in [
        &["call", url][..],
        &["call", url, "add", "--arg", "a"],
        &["call", url, "add", "--arguments-json", "[]"],
        &["call", url, "add", "--arg", "a=1", "--arg", "a=2"],
        &["prompt", url, "greet", "--arg", "a=1", "--arg", "a=2"],
        &["call", url, "add", "--timeout", "0"],
        &["call", url, "add", "--", STEADFAST, "serve"],
        &["call", url, "add", "--header", "nothing"],
        &["call", url, "add", "--revision", "1999-01-01"],
        &["call", url, "add", "--client-id", "me", "--client-secret-env", "STEADFAST_IS_NOT_SET", "--issuer", url],
        // A server that is not to be trusted could have the secret sent to itself.
        &["call", url, "add", "--client-id", "me", "--client-secret-env", "PATH"],
        &["call", "ftp://127.0.0.1", "add"],
        &["call", "ftp://127.0.0.1", "add", "--login"],
        &["list"],
        &["logout", "serve"],
        &["frobnicate"],
    ] {
        let ended = run(wrong);
        assert_eq!(ended.status.code(), Some(2), "{wrong:?}: {}", text(&ended.stderr));
    }
}

#[test]
fn the_help_has_the_exit_codes_and_an_example() {
    let serving = text(&run(&["serve", "--help"]).stdout);
    assert!(serving.contains("Example:\n  steadfast serve ") && serving.contains("Exit codes:"), "{serving}");
    for command in ["call", "list", "read", "prompt", "logout"] {
        let help = text(&run(&[command, "--help"]).stdout);
        for code in ["  0 ", "  1 ", "  2 ", "  3 ", "  4 ", "  5 ", "  6 ", "  130 "] {
            assert!(help.contains(code), "{command}: {help}");
        }
        assert!(help.contains(&format!("Example:\n  steadfast {command} ")), "{command}: {help}");
    }
}

#[test]
fn escape_sequences_of_a_server_are_escaped() {
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
fn progress_in_a_pipe_is_printed_as_lines() {
    let called = run(&["call", &serve(), "progress", "--arg", "steps=3"]);
    let said = text(&called.stderr);
    assert!(said.contains("steadfast: 100%") && !said.contains('\u{1b}'), "{said:?}");
}
