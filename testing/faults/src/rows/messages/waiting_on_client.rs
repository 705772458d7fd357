//! Handlers wait for a response of the client, and the client goes away.

use serde_json::json;

use crate::check_context::CheckContext;
use crate::client::Client;
use crate::client::expect;
use crate::client::message::{Body, Id};
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::limits::ENDING_ACCEPTED;
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "waiting_on_the_client",
    fault: "two ask_roots waiting, then stdin closes; then the same with stdout closed too",
    must: "both end with connection closed, no panic, exit",
    checks: &[
        Check::new("input_closes", Era::HANDSHAKE, input_closes),
        Check::new("input_then_output_closes", Era::HANDSHAKE, input_then_output),
        Check::new("output_then_input_closes", Era::HANDSHAKE, output_then_input),
        Check::new("input_closes_raced", Era::HANDSHAKE, input_closes_raced),
        Check::new("both_close_in_either_order_raced", Era::HANDSHAKE, both_raced),
        Check::new("no_requests_to_a_stateless_client", Era::STATELESS, stateless),
    ],
};

/// A client with two calls that wait for it. Gives the calls and the server's own requests.
fn waiting(context: &mut CheckContext) -> Verdict<(Client, Vec<Id>, Vec<Id>)> {
    let mut client = context.open()?;
    let calls = vec![client.call("ask_roots", json!({}))?, client.call("ask_roots", json!({}))?];
    let requests = client.requests_from_server("roots/list", 2)?;
    Ok((client, calls, requests))
}

/// The call ended because its connection did, and says so.
fn ended_with_closed(client: &Client, id: &Id) -> Verdict {
    let words = expect::any_failure(&client.answer(id)?, client.era)?;
    ensure!(words.to_lowercase().contains("clos"), "{id} ended, but not with connection closed: {words}");
    Ok(())
}

fn input_closes(context: &mut CheckContext) -> Verdict {
    let (mut client, calls, _) = waiting(context)?;
    let ending = client.finish()?;
    context.note_exit(ending);
    calls.iter().try_for_each(|id| ended_with_closed(&client, id))
}

fn input_then_output(context: &mut CheckContext) -> Verdict {
    let (mut client, ..) = waiting(context)?;
    client.server.close_input();
    client.server.output.close();
    let ending = client.ended_somehow(ENDING_ACCEPTED)?;
    context.note_exit(ending);
    Ok(())
}

fn output_then_input(context: &mut CheckContext) -> Verdict {
    let (mut client, ..) = waiting(context)?;
    client.server.output.close();
    client.server.close_input();
    let ending = client.ended_somehow(ENDING_ACCEPTED)?;
    context.note_exit(ending);
    Ok(())
}

/// The end comes about when one of the two is answered.
fn input_closes_raced(context: &mut CheckContext) -> Verdict {
    context.race(|context| {
        let (mut client, calls, requests) = waiting(context)?;
        let answered = usize::from(context.random.coin());
        for request in requests.iter().take(answered) {
            client.send(format!("{{\"jsonrpc\":\"2.0\",\"id\":{request},\"result\":{{\"roots\":[]}}}}\n"))?;
        }
        context.random.pause(1_000);
        client.finish()?;
        let good = calls.iter().filter(|id| client.text(id).is_ok()).count();
        ensure!(good == answered, "{answered} of the waiting calls were answered, {good} succeeded");
        for id in calls.iter().filter(|id| client.text(id).is_err()) {
            ended_with_closed(&client, id)?;
        }
        Ok(())
    })
}

fn both_raced(context: &mut CheckContext) -> Verdict {
    context.race(|context| {
        let (mut client, ..) = waiting(context)?;
        let input_first = context.random.coin();
        if input_first {
            client.server.close_input();
        } else {
            client.server.output.close();
        }
        context.random.pause(2_000);
        client.server.close_input();
        client.server.output.close();
        client.ended_somehow(ENDING_ACCEPTED)?;
        Ok(())
    })
}

/// Without a handshake a server sends no requests. The call ends in some way of its own, and never hangs.
fn stateless(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let calls = [client.call("ask_roots", json!({}))?, client.call("ask_roots", json!({}))?];
    for id in &calls {
        client.answer(id)?;
    }
    client.finish()?;
    let requests = client.between(0, client.place());
    let asked = requests.iter().any(|message| matches!(message.body, Body::Request { .. }));
    ensure!(!asked, "the server sent a request to a stateless client");
    Ok(())
}
