//! A tool prints to standard output, which belongs to the protocol.

use serde_json::json;

use crate::check_context::CheckContext;
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "print",
    fault: "print",
    must: "stdout carries protocol only",
    checks: &[Check::new("any_text", Era::BOTH, any_text), Check::new("among_calls_raced", Era::BOTH, among_calls)],
};

fn any_text(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let texts = [
        "a stray line".to_owned(),
        "{\"jsonrpc\":\"2.0\",\"id\":100001,\"result\":{}}".to_owned(),
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}".to_owned(),
        "several\nlines\nin one".to_owned(),
        String::new(),
        "long ".repeat(10_000),
    ];
    let mut ids = Vec::new();
    for text in &texts {
        ids.push(client.call("print", json!({ "text": text }))?);
    }
    for id in &ids {
        client.text(id)?;
    }
    client.round_trip()?;
    // Every line is protocol, and there are no more lines than answers: the opening, the prints, the round trip.
    client.finish()?;
    let lines = client.place();
    ensure!(lines == texts.len() + 2, "{lines} lines for {} answers", texts.len() + 2);
    let errors = client.server.errors.text();
    ensure!(errors.contains("a stray line"), "what was printed is not on standard error");
    Ok(())
}

/// Prints race with answers: no answer is torn.
fn among_calls(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let mut ids = Vec::new();
    context.race(|context| {
        let mut lines = String::new();
        for number in 0..4 {
            let id = client.fresh_id();
            client.count(&id);
            let text = "x".repeat(context.random.place(3_000));
            let tool = if number % 2 == 0 { "print" } else { "echo" };
            lines.push_str(&client.call_line(&id, tool, json!({ "text": text })));
            ids.push(id);
        }
        client.send(lines)
    })?;
    for id in &ids {
        client.text(id)?;
    }
    client.finish()?;
    let lines = client.place();
    ensure!(lines == ids.len() + 1, "{lines} lines for {} answers", ids.len() + 1);
    Ok(())
}
