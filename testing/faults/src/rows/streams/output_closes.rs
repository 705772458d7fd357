//! The reader of standard output goes away: no response can be delivered any more.

use std::time::Duration;

use serde_json::json;

use crate::check_context::{CheckContext, cleanup_lines};
use crate::client::Client;
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::limits::{ENDING_ACCEPTED, LONG_MS};
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "output_reader_goes_away",
    fault: "stdout's reader goes away (EPIPE) with calls running",
    must: "handlers stopped, cleanups run, exit without a panic",
    checks: &[
        Check::new("nothing_to_write", Era::BOTH, nothing_to_write),
        Check::new("answers_to_write", Era::BOTH, answers_to_write),
        Check::new("progress_to_write", Era::BOTH, progress_to_write),
        Check::new("requests_keep_coming", Era::BOTH, requests_keep_coming),
        Check::new("both_ends_close_in_either_order_raced", Era::BOTH, either_order),
    ],
};

/// Long calls only: the server has no reason to write and has to notice all the same.
fn nothing_to_write(context: &mut CheckContext) -> Verdict {
    lose_reader(context, |_| Ok(()))
}

/// Calls end after the reader went: their answers meet EPIPE.
fn answers_to_write(context: &mut CheckContext) -> Verdict {
    lose_reader(context, |client| {
        for ms in [0, 1, 5, 20, 50] {
            client.call("sleep", json!({ "ms": ms }))?;
        }
        Ok(())
    })
}

fn progress_to_write(context: &mut CheckContext) -> Verdict {
    lose_reader(context, |client| {
        for _ in 0..3 {
            let (_, _, line) = client.progress_call_line("progress", json!({ "steps": 1_000, "ms": 2 }));
            client.send(line)?;
        }
        Ok(())
    })
}

fn lose_reader(context: &mut CheckContext, more: impl FnOnce(&mut Client) -> Verdict) -> Verdict {
    let log = context.new_file();
    let launch = context.launch().cleanup_log(&log);
    let mut client = context.open_with(&launch)?;
    client.call("slow_cleanup", json!({ "ms": LONG_MS }))?;
    client.call("sleep", json!({ "ms": LONG_MS }))?;
    client.call("slow_cleanup", json!({ "ms": LONG_MS }))?;
    client.let_them_run()?;
    more(&mut client)?;
    client.server.output.close();
    let ending = client.ended_somehow(ENDING_ACCEPTED)?;
    context.note_exit(ending);
    ensure!(cleanup_lines(&log) == 2, "two slow_cleanup wrote {} lines", cleanup_lines(&log));
    Ok(())
}

fn requests_keep_coming(context: &mut CheckContext) -> Verdict {
    let log = context.new_file();
    let launch = context.launch().cleanup_log(&log);
    let mut client = context.open_with(&launch)?;
    client.call("slow_cleanup", json!({ "ms": LONG_MS }))?;
    client.let_them_run()?;
    client.server.output.close();
    // Writes fail from the moment that the server is gone: that is the end we wait for.
    for number in 0..20_000 {
        if client.call("echo", json!({ "text": number.to_string() })).is_err() {
            break;
        }
        std::thread::sleep(Duration::from_micros(50));
    }
    let ending = client.ended_somehow(ENDING_ACCEPTED)?;
    context.note_exit(ending);
    ensure!(cleanup_lines(&log) == 1, "slow_cleanup wrote {} lines", cleanup_lines(&log));
    Ok(())
}

fn either_order(context: &mut CheckContext) -> Verdict {
    context.race(|context| {
        let log = context.new_file();
        let launch = context.launch().cleanup_log(&log);
        let mut client = context.open_with(&launch)?;
        client.call("slow_cleanup", json!({ "ms": LONG_MS }))?;
        client.let_them_run()?;
        client.call("sleep", json!({ "ms": context.random.below(3) }))?;
        client.call("echo", json!({ "text": "last" }))?;
        let input_first = context.random.coin();
        context.random.pause(1_000);
        if input_first {
            client.server.close_input();
            context.random.pause(3_000);
            client.server.output.close();
        } else {
            client.server.output.close();
            context.random.pause(3_000);
            client.server.close_input();
        }
        client.ended_somehow(ENDING_ACCEPTED)?;
        ensure!(cleanup_lines(&log) == 1, "slow_cleanup wrote {} lines", cleanup_lines(&log));
        std::fs::remove_file(&log)?;
        Ok(())
    })
}
