//! Two calls with the same id in flight.

use serde_json::json;

use crate::check_context::CheckContext;
use crate::client::Client;
use crate::client::expect::{self, INVALID_REQUEST};
use crate::client::message::{Body, Id, Message};
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "duplicate_id",
    fault: "two calls with the same id in flight",
    must: "the second is refused, the first is answered",
    checks: &[
        Check::new("number", Era::THREE, |context| duplicate(context, &Id::number(9), 1)),
        Check::new("string", Era::THREE, |context| duplicate(context, &Id::string("nine"), 1)),
        Check::new("many_times", Era::THREE, |context| duplicate(context, &Id::number(9), 200)),
        Check::new("string_and_number_are_two", Era::BOTH, string_and_number),
        Check::new("free_again_after_the_answer", Era::BOTH, free_again),
        Check::new("cancelled_after_the_refusal", Era::BOTH, cancelled_after),
        Check::new("while_the_first_ends_raced", Era::BOTH, raced),
    ],
};

/// The refusals of that id: without an id member, since under it they would be read as the answer to the first.
fn refusals(client: &Client, id: &Id) -> Verdict<usize> {
    let unnamed: Vec<Message> =
        client.between(0, client.place()).into_iter().filter(Message::is_unnamed_error).collect();
    for message in &unnamed {
        let error = expect::error(message, &[INVALID_REQUEST])?;
        expect::unnamed(message, client.era.writes_null_id())?;
        expect::data_names(error, id)?;
    }
    Ok(unnamed.len())
}

fn duplicate(context: &mut CheckContext, id: &Id, times: usize) -> Verdict {
    let mut client = context.open()?;
    client.call_as(id, "sleep", json!({ "ms": 300 }))?;
    for _ in 0..times {
        let line = client.call_line(id, "echo", json!({ "text": "second" }));
        client.send(line)?;
    }
    client.round_trip()?;
    ensure!(refusals(&client, id)? == times, "{} refusals of {times}", refusals(&client, id)?);
    ensure!(client.answer_count(id) == 0, "{id} was answered while its first call still ran");
    let text = client.text(id)?;
    ensure!(text != "second", "the second call was answered");
    client.finish()?;
    Ok(())
}

fn string_and_number(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let (number, string) = (Id::number(7), Id::string("7"));
    client.call_as(&number, "sleep", json!({ "ms": 100 }))?;
    client.call_as(&string, "sleep", json!({ "ms": 100 }))?;
    client.text(&number)?;
    client.text(&string)?;
    client.finish()?;
    Ok(())
}

fn free_again(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let id = Id::number(9);
    for round in 1..=50 {
        client.call_as(&id, "echo", json!({ "text": "again" }))?;
        let wait = |seen: &crate::process::output::TranscriptState| (seen.answer_count(&id) == round).then_some(());
        let came = client.server.output.transcript.wait(crate::limits::CHECK_TIMEOUT, wait);
        ensure!(came.is_some(), "no answer to {id} in round {round}");
    }
    let refused = client.between(0, client.place()).iter().any(|line| matches!(line.body, Body::Error(_)));
    ensure!(!refused, "an id that was free again was refused");
    client.finish()?;
    Ok(())
}

fn cancelled_after(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let id = Id::number(9);
    client.call_as(&id, "sleep", json!({ "ms": 60_000 }))?;
    let line = client.call_line(&id, "echo", json!({ "text": "second" }));
    client.send(line)?;
    client.cancel(&id)?;
    client.round_trip()?;
    ensure!(refusals(&client, &id)? == 1, "the second was not refused");
    ensure!(client.answer_count(&id) == 0, "{id} was answered after its cancellation");
    client.finish()?;
    Ok(())
}

/// The second comes about when the first ends: it is served or refused, and there are two endings in all.
fn raced(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let mut both_served = 0;
    context.race(|context| {
        let id = client.fresh_id();
        let first = client.call_line(&id, "sleep", json!({ "ms": context.random.below(2) }));
        let second = client.call_line(&id, "echo", json!({ "text": "second" }));
        client.count(&id);
        client.count(&id);
        if context.random.coin() {
            client.send(first + &second)?;
        } else {
            client.send(first)?;
            context.random.pause(2_500);
            client.send(second)?;
        }
        client.round_trip()?;
        let ended = client.server.output.transcript.wait(crate::limits::CHECK_TIMEOUT, |seen| {
            let refused = seen.messages.iter().rev().take(12).filter(|line| names(line, &id)).count();
            let answered = seen.answer_count(&id);
            (refused + answered >= 2).then_some((refused, answered))
        });
        let Some((refused, answered)) = ended else {
            crate::failure::fail!("{id}: {} answers and no refusal", client.answer_count(&id))
        };
        ensure!(refused + answered == 2 && answered >= 1, "{id}: {refused} refusals and {answered} answers");
        both_served += usize::from(answered == 2);
        Ok(())
    })?;
    context.note(format!("{both_served} times the id was free again"));
    client.finish()?;
    Ok(())
}

fn names(message: &Message, id: &Id) -> bool {
    match &message.body {
        Body::Error(error) => message.is_unnamed_error() && expect::data_names(error, id).is_ok(),
        _ => false,
    }
}
