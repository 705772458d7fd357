//! Standard error is not read, or closed, while everything that is worth a log line pours in.

use std::fmt::Write as _;

use serde_json::json;

use crate::check_context::CheckContext;
use crate::client::message::Id;
use crate::client::{Client, cancel_line};
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::limits::PROMPT;
use crate::process::standard_error::StderrMode;
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "unread_stderr",
    fault: "stderr is not drained by the client while bad bytes flood in",
    must: "the server goes on",
    checks: &[
        Check::new("unread", Era::BOTH, |context| flood(context, StderrMode::LeaveUnread, None)),
        Check::new("unread_with_every_log_line_on", Era::BOTH, |context| {
            flood(context, StderrMode::LeaveUnread, Some("trace"))
        }),
        Check::new("closed", Era::BOTH, |context| flood(context, StderrMode::Close, Some("trace"))),
        Check::new("unread_and_print_blocks", Era::BOTH, print_blocks),
        Check::new("unread_and_panics", Era::BOTH, panics),
    ],
};

/// Blocks of bad lines, each followed by a call that must be answered.
const BLOCKS: usize = 50;
const LINES: usize = 400;

fn flood(context: &mut CheckContext, treatment: StderrMode, level: Option<&str>) -> Verdict {
    let mut launch = context.launch().errors(treatment);
    if let Some(level) = level {
        launch = launch.variable("RUST_LOG", level);
    }
    let mut client = context.open_with(&launch)?;
    let flying = client.call("sleep", json!({ "ms": 300 }))?;
    for _ in 0..BLOCKS {
        client.send(bad_block())?;
        client.round_trip()?;
    }
    client.text(&flying)?;
    let unnamed = client.between(0, client.place()).iter().filter(|line| line.is_unnamed_error()).count();
    ensure!(unnamed == BLOCKS * LINES * 2, "{} bad lines, {unnamed} errors", BLOCKS * LINES * 2);
    let ending = client.finish()?;
    context.note_exit(ending);
    Ok(())
}

/// Bad bytes and bad JSON, which are answered; late cancellations and answers to nothing, which are only logged.
fn bad_block() -> Vec<u8> {
    let mut block = Vec::new();
    for number in 0..LINES {
        block.extend_from_slice(b"\xff\xfe\xfd bad bytes\n{\"jsonrpc\":\n");
        block.extend_from_slice(cancel_line(&Id::number(number as u64)).as_bytes());
        let mut answer = String::new();
        let _ = writeln!(answer, "{{\"jsonrpc\":\"2.0\",\"id\":{number},\"result\":{{}}}}");
        block.extend_from_slice(answer.as_bytes());
    }
    block
}

/// What a handler prints goes to standard error, which is full: that handler waits, others do not.
fn print_blocks(context: &mut CheckContext) -> Verdict {
    let launch = context.launch().errors(StderrMode::LeaveUnread);
    let mut client = context.open_with(&launch)?;
    client.call("print", json!({ "text": "p".repeat(1_000_000) }))?;
    prompt(&mut client)?;
    let ending = client.finish()?;
    context.note_exit(ending);
    Ok(())
}

fn panics(context: &mut CheckContext) -> Verdict {
    let launch = context.launch().errors(StderrMode::LeaveUnread);
    let mut client = context.open_with(&launch)?;
    client.panics_expected = true;
    // Enough messages of panics to fill a pipe of 64 KiB several times.
    for _ in 0..3_000 {
        client.call("panic", json!({}))?;
    }
    prompt(&mut client)?;
    let ending = client.finish()?;
    context.note_exit(ending);
    Ok(())
}

fn prompt(client: &mut Client) -> Verdict {
    for _ in 0..20 {
        let (_, took) = client.round_trip()?;
        ensure!(took < PROMPT, "an echo took {took:?} while standard error is full");
    }
    Ok(())
}
