//! The server gets a signal to stop, or its client is killed.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::check_context::{CheckContext, cleanup_lines, seconds, wait_for_cleanups};
use crate::client::expect;
use crate::client::orphan::CLIENT_MODE;
use crate::era::Era;
use crate::failure::{Failure, Verdict, ensure};
use crate::limits::{BLOCK_MS, ENDING_ACCEPTED, LONG_MS, PROMPT};
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "signals",
    fault: "SIGTERM with calls running; SIGKILL of the client",
    must: "drain, cleanup, exit; no orphan",
    checks: &[
        Check::new("sigterm_with_calls_running", Era::BOTH, |context| drain(context, Signal::TERM)),
        Check::new("sigint_with_calls_running", Era::BOTH, |context| drain(context, Signal::INT)),
        Check::new("sigterm_when_idle", Era::BOTH, idle),
        Check::new("sigterm_before_a_word", Era::BOTH, before_a_word),
        Check::new("sigterm_twice", Era::BOTH, twice),
        Check::new("sigterm_after_the_end_of_input", Era::HANDSHAKE, after_the_end_of_input),
        Check::new("sigterm_with_unread_output", Era::BOTH, unread_output),
        Check::new("sigterm_behind_quick_calls_raced", Era::BOTH, raced),
        Check::new("sigkill_of_the_client", Era::BOTH, client_killed),
    ],
};

/// What ends within the window is answered, what does not is stopped and answered so, cleanups run.
fn drain(context: &mut CheckContext, signal: Signal) -> Verdict {
    let log = context.new_file();
    let launch = context.launch().cleanup_log(&log);
    let mut client = context.open_with(&launch)?;
    let long = client.call("sleep", json!({ "ms": LONG_MS }))?;
    let cleanup = client.call("slow_cleanup", json!({ "ms": LONG_MS }))?;
    let short = client.call("sleep", json!({ "ms": 250 }))?;
    client.let_them_run()?;
    client.server.signal(signal)?;
    let ending = client.ended(ENDING_ACCEPTED)?;
    context.note_exit(ending);
    client.text(&short)?;
    for id in [&long, &cleanup] {
        expect::own_condition(&client.answer_within(id, Duration::ZERO)?)?;
    }
    ensure!(cleanup_lines(&log) == 1, "slow_cleanup wrote {} lines", cleanup_lines(&log));
    Ok(())
}

fn idle(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    client.round_trip()?;
    client.server.signal(Signal::TERM)?;
    let ending = client.ended(ENDING_ACCEPTED)?;
    context.note_exit(ending);
    Ok(())
}

/// A signal before the handlers are installed kills, as it should; after that it drains. Never a panic.
fn before_a_word(context: &mut CheckContext) -> Verdict {
    for _ in 0..50 {
        let launch = context.launch();
        let mut client = context.start(&launch)?;
        context.random.pause(8_000);
        client.server.signal(Signal::TERM)?;
        let ending = client.server.wait(ENDING_ACCEPTED)?;
        let killed = std::os::unix::process::ExitStatusExt::signal(&ending.status) == Some(Signal::TERM.as_raw());
        ensure!(killed || ending.status.code() == Some(0), "ended with {}", ending.status);
    }
    Ok(())
}

/// The second signal ends the drain, however long that would have been.
fn twice(context: &mut CheckContext) -> Verdict {
    let launch = context.launch().argument("--drain").argument(BLOCK_MS.to_string());
    let mut client = context.open_with(&launch)?;
    client.call("stubborn", json!({ "ms": LONG_MS }))?;
    client.call("block_thread", json!({ "ms": LONG_MS }))?;
    client.let_them_run()?;
    client.server.signal(Signal::TERM)?;
    std::thread::sleep(Duration::from_millis(50));
    client.server.signal(Signal::TERM)?;
    let ending = client.server.wait(ENDING_ACCEPTED)?;
    context.note_exit(ending);
    let errors = client.server.errors.text();
    ensure!(!errors.contains("panicked"), "the second signal made it panic");
    Ok(())
}

/// No client waits for the handlers, and SIGKILL follows: it is stopped at once, however long the drain would be.
fn after_the_end_of_input(context: &mut CheckContext) -> Verdict {
    let log = context.new_file();
    let launch = context.launch().cleanup_log(&log).argument("--drain").argument(LONG_MS.to_string());
    let mut client = context.open_with(&launch)?;
    client.call("slow_cleanup", json!({ "ms": LONG_MS }))?;
    let asking = client.call("ask_roots", json!({}))?;
    client.requests_from_server("roots/list", 1)?;
    client.let_them_run()?;
    client.server.close_input();
    // What waits for the client fails when the end of input is seen.
    client.answer_within(&asking, ENDING_ACCEPTED)?;
    client.server.signal(Signal::TERM)?;
    let ending = client.ended(ENDING_ACCEPTED)?;
    context.note_exit(ending);
    ensure!(cleanup_lines(&log) == 1, "slow_cleanup wrote {} lines", cleanup_lines(&log));
    Ok(())
}

fn unread_output(context: &mut CheckContext) -> Verdict {
    let log = context.new_file();
    let launch = context.launch().cleanup_log(&log);
    let mut client = context.open_with(&launch)?;
    client.call("slow_cleanup", json!({ "ms": LONG_MS }))?;
    client.let_them_run()?;
    client.server.output.hold_back();
    for _ in 0..50 {
        client.call("blob", json!({ "bytes": 65_536 }))?;
    }
    std::thread::sleep(Duration::from_millis(100));
    client.server.signal(Signal::TERM)?;
    let ending = client.ended_somehow(ENDING_ACCEPTED)?;
    context.note_exit(ending);
    ensure!(cleanup_lines(&log) == 1, "slow_cleanup wrote {} lines", cleanup_lines(&log));
    Ok(())
}

/// What was read before the signal is answered; nothing is answered twice; the end is clean.
fn raced(context: &mut CheckContext) -> Verdict {
    context.race(|context| {
        let mut client = context.open()?;
        let first = client.call("echo", json!({ "text": "first" }))?;
        client.text(&first)?;
        for _ in 0..context.random.below(10) {
            client.call("sleep", json!({ "ms": context.random.below(3) }))?;
        }
        context.random.pause(3_000);
        client.server.signal(Signal::TERM)?;
        client.ended(ENDING_ACCEPTED)?;
        Ok(())
    })
}

/// The client dies without a word. The server sees both of its streams end, stops its handlers and goes.
fn client_killed(context: &mut CheckContext) -> Verdict {
    for _ in 0..5 {
        let log = context.new_file();
        let mut client = Command::new(&context.client_program)
            .arg(CLIENT_MODE)
            .arg(context.program())
            .arg(context.era.revision())
            .arg(&log)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()?;
        let mut line = String::new();
        if let Some(output) = client.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        // `kill` sends SIGKILL: the client cannot close anything in order.
        client.kill()?;
        client.wait()?;
        let server: u32 =
            line.trim().parse().map_err(|_| Failure(format!("the client did not get its calls running: {line:?}")))?;
        let start = Instant::now();
        while runs(server) {
            ensure!(start.elapsed() < ENDING_ACCEPTED, "the server outlives its client by {ENDING_ACCEPTED:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
        context.note(format!("gone after {}", seconds(start.elapsed())));
        wait_for_cleanups(&log, 1).map_err(|failure| failure.at(format!("the cleanup within {PROMPT:?}")))?;
        ensure!(cleanup_lines(&log) == 1, "slow_cleanup wrote {} lines", cleanup_lines(&log));
    }
    Ok(())
}

/// A zombie does not run: it only waits for the process that inherited it.
fn runs(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z') && !line.contains('X'))
}
