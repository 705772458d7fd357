//! A tool starts a child process that reads its standard input, which is not where the requests are.

use std::time::Duration;

use serde_json::json;

use crate::check_context::CheckContext;
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "child_reads_stdin",
    fault: "a tool starts a child process that reads its stdin",
    must: "no request is eaten",
    checks: &[
        Check::new("calls_meanwhile_raced", Era::BOTH, calls_meanwhile),
        Check::new("calls_in_one_write", Era::BOTH, calls_in_one_write),
        Check::new("input_closes_meanwhile", Era::BOTH, input_closes),
    ],
};

/// Children that read come and go while calls are made.
fn calls_meanwhile(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let mut readers = Vec::new();
    let mut number = 0;
    context.race(|context| {
        if number % 50 == 0 {
            readers.push(client.call("spawn_reader", json!({ "ms": 200 }))?);
        }
        number += 1;
        context.random.pause(400);
        client.round_trip().map(drop)
    })?;
    for id in &readers {
        let eaten = client.text(id)?;
        ensure!(eaten.is_empty(), "a child process read {eaten:?}");
    }
    client.finish()?;
    Ok(())
}

fn calls_in_one_write(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let reader = client.call("spawn_reader", json!({ "ms": 500 }))?;
    std::thread::sleep(Duration::from_millis(50));
    let mut lines = String::new();
    let mut ids = Vec::new();
    for number in 0..1_000 {
        let id = client.fresh_id();
        client.count(&id);
        lines.push_str(&client.call_line(&id, "echo", json!({ "text": number.to_string() })));
        ids.push(id);
    }
    client.send(lines)?;
    for (number, id) in ids.iter().enumerate() {
        ensure!(client.text(id)? == number.to_string(), "echo of {number}");
    }
    let eaten = client.text(&reader)?;
    ensure!(eaten.is_empty(), "a child process read {eaten:?}");
    client.finish()?;
    Ok(())
}

/// The end of input is not the child's to see, and the server does not wait for the child. Its output pipe is not
/// held open by it either: the reader sees the end.
fn input_closes(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    client.call("spawn_reader", json!({ "ms": 30_000 }))?;
    client.round_trip()?;
    let ending = client.finish()?;
    context.note_exit(ending);
    Ok(())
}
