//! A tool panics.

use serde_json::{Value, json};

use crate::check_context::CheckContext;
use crate::client::Client;
use crate::client::expect::{self, INTERNAL_ERROR};
use crate::client::message::Id;
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "panic",
    fault: "panic",
    must: "error -32603 for that call, no message of the panic leaks to the peer, others unaffected",
    checks: &[
        Check::new("one", Era::BOTH, one),
        Check::new("many_among_others", Era::BOTH, many),
        Check::new("cancelled_raced", Era::BOTH, raced),
    ],
};

/// Words of a panic that have no business on the wire.
const LEAKS: &[&str] = &["panicked", ".rs", "src/", "called `", "unwrap", "backtrace"];

fn judge(client: &Client, id: &Id) -> Verdict<String> {
    let answer = client.answer(id)?;
    let error = expect::error(&answer, &[INTERNAL_ERROR])?;
    let said =
        if error.data == Value::Null { error.message.clone() } else { format!("{} {}", error.message, error.data) };
    for leak in LEAKS {
        ensure!(!said.contains(leak), "the panic leaks to the peer: {said}");
    }
    Ok(said)
}

/// The messages of panics that a hook printed: what follows "panicked at ...:", on that line or the next.
fn panic_messages(errors: &str) -> Vec<String> {
    let mut messages = Vec::new();
    let mut lines = errors.lines();
    while let Some(line) = lines.next() {
        if line.contains("panicked at") {
            messages.extend(lines.next().map(|next| next.trim().to_owned()));
        }
    }
    messages.retain(|message| message.len() > 4);
    messages
}

fn one(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    client.panics_expected = true;
    let id = client.call("panic", json!({}))?;
    let said = judge(&client, &id)?;
    client.round_trip()?;
    let ending = client.finish()?;
    context.note_exit(ending);
    for message in panic_messages(&client.server.errors.text()) {
        ensure!(!said.contains(&message), "the message of the panic leaks to the peer: {said}");
    }
    context.note(format!("the peer hears: {said}"));
    Ok(())
}

fn many(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    client.panics_expected = true;
    let mut sleeping = Vec::new();
    let mut panicking = Vec::new();
    for _ in 0..100 {
        sleeping.push(client.call("sleep", json!({ "ms": 200 }))?);
        panicking.push(client.call("panic", json!({}))?);
    }
    client.round_trip()?;
    for id in &panicking {
        judge(&client, id)?;
    }
    for id in &sleeping {
        client.text(id)?;
    }
    client.finish()?;
    Ok(())
}

fn raced(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    client.panics_expected = true;
    let mut fenced = Vec::new();
    context.race(|context| {
        let id = client.call("panic", json!({}))?;
        context.random.pause(300);
        client.cancel(&id)?;
        let (place, _) = client.round_trip()?;
        fenced.push((id, place));
        Ok(())
    })?;
    client.finish()?;
    fenced.iter().try_for_each(|(id, place)| client.silent_since(id, *place))
}
