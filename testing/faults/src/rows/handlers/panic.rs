//! A tool panics.

use serde_json::{Value, json};

use crate::bench::Bench;
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

fn one(bench: &mut Bench) -> Verdict {
    let mut client = bench.open()?;
    client.panics_expected = true;
    let id = client.call("panic", json!({}))?;
    let said = judge(&client, &id)?;
    client.fence()?;
    let ending = client.finish()?;
    bench.note_ending(ending);
    for message in panic_messages(&client.server.errors.text()) {
        ensure!(!said.contains(&message), "the message of the panic leaks to the peer: {said}");
    }
    bench.note(format!("the peer hears: {said}"));
    Ok(())
}

fn many(bench: &mut Bench) -> Verdict {
    let mut client = bench.open()?;
    client.panics_expected = true;
    let mut sleeping = Vec::new();
    let mut panicking = Vec::new();
    for _ in 0..100 {
        sleeping.push(client.call("sleep", json!({ "ms": 200 }))?);
        panicking.push(client.call("panic", json!({}))?);
    }
    client.fence()?;
    for id in &panicking {
        judge(&client, id)?;
    }
    for id in &sleeping {
        client.text(id)?;
    }
    client.finish()?;
    Ok(())
}

fn raced(bench: &mut Bench) -> Verdict {
    let mut client = bench.open()?;
    client.panics_expected = true;
    let mut fenced = Vec::new();
    bench.race(|bench| {
        let id = client.call("panic", json!({}))?;
        bench.random.pause(300);
        client.cancel(&id)?;
        let (place, _) = client.fence()?;
        fenced.push((id, place));
        Ok(())
    })?;
    client.finish()?;
    fenced.iter().try_for_each(|(id, place)| client.silent_since(id, *place))
}
