//! Standard input closes: while long calls run, and right after quick ones.

use std::time::Duration;

use serde_json::json;

use crate::check_context::{CheckContext, cleanup_lines};
use crate::client::expect;
use crate::client::message::Id;
use crate::client::{Client, initialized_line};
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::limits::{ENDING_ACCEPTED, LONG_MS};
use crate::table::{Check, Row};

pub(crate) static LONG_CALLS: Row = Row {
    name: "input_closes_with_long_calls",
    fault: "stdin closes with three long calls running",
    must: "handlers are stopped, slow_cleanup wrote its line, exit code 0, within the drain window plus 1 s, nothing on \
           stderr at the default log level that looks like a crash",
    checks: &[
        Check::new("three_long_calls", Era::BOTH, three_long_calls),
        Check::new("three_cleanups", Era::BOTH, three_cleanups),
        Check::new("cleanups_before_the_first_word", Era::BOTH, cleanups_first),
        Check::new("a_call_that_ends_within_the_window", Era::BOTH, ends_within_the_window),
        Check::new("nothing_running", Era::BOTH, nothing_running),
        Check::new("nothing_said", Era::BOTH, nothing_said),
    ],
};

pub(crate) static BURST: Row = Row {
    name: "input_closes_behind_a_burst",
    fault: "stdin closes right behind a burst of 1,000 quick calls",
    must: "all 1,000 answers are written before exit",
    checks: &[
        Check::new("thousand_calls", Era::BOTH, thousand_calls),
        Check::new("whole_conversation_in_one_write", Era::BOTH, whole_conversation),
        Check::new("short_bursts_raced", Era::BOTH, short_bursts),
    ],
};

/// How often the whole burst is sent, each time to a new server.
const BURSTS: usize = 10;
const BURST_CALLS: u64 = 1_000;

fn three_long_calls(context: &mut CheckContext) -> Verdict {
    let log = context.new_file();
    let launch = context.launch().cleanup_log(&log);
    let mut client = context.open_with(&launch)?;
    let sleep = client.call("sleep", json!({ "ms": LONG_MS }))?;
    let cleanup = client.call("slow_cleanup", json!({ "ms": LONG_MS }))?;
    let (progress, _, line) = client.progress_call_line("progress", json!({ "steps": 10_000, "ms": LONG_MS }));
    client.send(line)?;
    client.let_them_run()?;
    let ending = client.finish()?;
    context.note_exit(ending);
    ensure!(cleanup_lines(&log) == 1, "slow_cleanup wrote {} lines", cleanup_lines(&log));
    for id in [sleep, cleanup, progress] {
        stopped(&client, &id)?;
    }
    Ok(())
}

fn three_cleanups(context: &mut CheckContext) -> Verdict {
    let log = context.new_file();
    let launch = context.launch().cleanup_log(&log);
    let mut client = context.open_with(&launch)?;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(client.call("slow_cleanup", json!({ "ms": LONG_MS }))?);
    }
    client.let_them_run()?;
    let ending = client.finish()?;
    context.note_exit(ending);
    ensure!(cleanup_lines(&log) == 3, "three slow_cleanup wrote {} lines", cleanup_lines(&log));
    ids.iter().try_for_each(|id| stopped(&client, id))
}

/// There are clients that kill a server at the first word that it says after they have closed its input.
fn cleanups_first(context: &mut CheckContext) -> Verdict {
    // Enough of them that some are likely late if the server does not wait for them.
    const CALLS: usize = 200;
    let log = context.new_file();
    let launch = context.launch().cleanup_log(&log);
    let mut client = context.open_with(&launch)?;
    let first = client.call("slow_cleanup", json!({ "ms": LONG_MS }))?;
    for _ in 1..CALLS {
        client.call("slow_cleanup", json!({ "ms": LONG_MS }))?;
    }
    client.let_them_run()?;
    client.server.close_input();
    client.answer_within(&first, ENDING_ACCEPTED)?;
    let lines = cleanup_lines(&log);
    ensure!(lines == CALLS, "{lines} of {CALLS} had cleaned up when the first answer came");
    let ending = client.ended(ENDING_ACCEPTED)?;
    context.note_exit(ending);
    Ok(())
}

/// A call that runs past the window gets an error from the server, while the output is still read.
fn stopped(client: &Client, id: &Id) -> Verdict {
    let answer = client.answer_within(id, Duration::ZERO)?;
    expect::own_condition(&answer)?;
    Ok(())
}

fn ends_within_the_window(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let id = client.call("sleep", json!({ "ms": 200 }))?;
    let ending = client.finish()?;
    context.note_exit(ending);
    client.text(&id)?;
    Ok(())
}

fn nothing_running(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    client.round_trip()?;
    let ending = client.finish()?;
    context.note_exit(ending);
    Ok(())
}

fn nothing_said(context: &mut CheckContext) -> Verdict {
    let launch = context.launch();
    let mut client = context.start(&launch)?;
    let ending = client.finish()?;
    context.note_exit(ending);
    ensure!(client.place() == 0, "the server spoke without being asked");
    Ok(())
}

fn thousand_calls(context: &mut CheckContext) -> Verdict {
    for _ in 0..BURSTS {
        let mut client = context.open()?;
        burst(&mut client, String::new(), BURST_CALLS)?;
    }
    context.note(format!("{BURSTS} bursts"));
    Ok(())
}

/// As `printf '...' | steadfast serve` does it: the client does not wait for the response to `initialize`.
fn whole_conversation(context: &mut CheckContext) -> Verdict {
    for _ in 0..BURSTS {
        let launch = context.launch();
        let mut client = context.start(&launch)?;
        let id = client.fresh_id();
        client.count(&id);
        let mut opening = client.opening_line(&id);
        if !context.era.is_stateless() {
            opening.push_str(&initialized_line());
        }
        burst(&mut client, opening, BURST_CALLS)?;
        expect::result(&client.answer(&id)?)?;
    }
    context.note(format!("{BURSTS} bursts"));
    Ok(())
}

fn short_bursts(context: &mut CheckContext) -> Verdict {
    context.race(|context| {
        let mut client = context.open()?;
        let calls = 1 + context.random.below(20);
        let lines = additions(&mut client, calls);
        client.send(&lines.0)?;
        context.random.pause(1_500);
        client.finish()?;
        answered(&client, &lines.1)
    })
}

/// Sends the calls and the handshake in one write, closes at once, and expects every response.
fn burst(client: &mut Client, opening: String, calls: u64) -> Verdict {
    let (lines, ids) = additions(client, calls);
    client.send(opening + &lines)?;
    client.finish()?;
    answered(client, &ids)
}

fn additions(client: &mut Client, calls: u64) -> (String, Vec<Id>) {
    let mut lines = String::new();
    let mut ids = Vec::new();
    for number in 0..calls {
        let id = client.fresh_id();
        client.count(&id);
        lines.push_str(&client.call_line(&id, "add", json!({ "a": number, "b": 1 })));
        ids.push(id);
    }
    (lines, ids)
}

fn answered(client: &Client, ids: &[Id]) -> Verdict {
    let missing = ids.iter().filter(|id| client.answer_count(id) == 0).count();
    ensure!(missing == 0, "{missing} of {} answers are missing", ids.len());
    for (number, id) in ids.iter().enumerate() {
        let text = client.text(id)?;
        ensure!(text == (number + 1).to_string(), "{number} + 1 gave {text}");
    }
    Ok(())
}
