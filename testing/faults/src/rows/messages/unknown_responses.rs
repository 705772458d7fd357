//! Responses with an unknown id, and responses that come twice: ignored.

use serde_json::json;

use crate::check_context::CheckContext;
use crate::client::Client;
use crate::client::message::Id;
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "answers_to_nothing",
    fault: "an answer to nothing; an answer twice; an error with null id",
    must: "ignored",
    checks: &[
        Check::new("answer_to_nothing", Era::BOTH, answer_to_nothing),
        Check::new("error_to_nothing", Era::BOTH, error_to_nothing),
        Check::new("error_with_null_id", Era::BOTH, error_with_null_id),
        Check::new("id_of_a_call_in_flight", Era::BOTH, id_of_call_in_flight),
        Check::new("answer_twice", Era::HANDSHAKE, answer_twice),
        Check::new("answer_under_the_other_type_of_id", Era::HANDSHAKE, other_type_of_id),
        Check::new("answer_after_the_call_was_cancelled", Era::HANDSHAKE, late_answer),
        Check::new("odd_answers", Era::BOTH, odd_answers),
        Check::new("answers_raced", Era::HANDSHAKE, raced),
    ],
};

/// Sends lines that must be ignored, before the handshake is long over and while a call runs.
fn ignored(context: &mut CheckContext, lines: &[String]) -> Verdict {
    let mut client = context.open()?;
    let flying = client.call("sleep", json!({ "ms": 150 }))?;
    client.round_trip()?;
    for line in lines {
        let start = client.place();
        client.send(format!("{line}\n"))?;
        let (end, _) = client.round_trip()?;
        let came = client.between(start, end);
        let about_it: Vec<&str> = came
            .iter()
            .filter(|message| message.answers() != Some(&flying))
            .map(|message| message.opening.as_str())
            .collect();
        ensure!(about_it.is_empty(), "{line} was answered: {about_it:?}");
    }
    client.text(&flying)?;
    client.finish()?;
    Ok(())
}

const ODD_IDS: &[&str] = &["999", "0", "-1", "\"999\"", "\"\"", "18446744073709551616", "1"];

fn answer_to_nothing(context: &mut CheckContext) -> Verdict {
    let lines: Vec<String> =
        ODD_IDS.iter().map(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}")).collect();
    ignored(context, &lines)
}

fn error_to_nothing(context: &mut CheckContext) -> Verdict {
    let error = "\"error\":{\"code\":-32603,\"message\":\"no\"}";
    let lines: Vec<String> = ODD_IDS.iter().map(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{error}}}")).collect();
    ignored(context, &lines)
}

fn error_with_null_id(context: &mut CheckContext) -> Verdict {
    let error = "\"error\":{\"code\":-32700,\"message\":\"Parse error\"}";
    ignored(
        context,
        &[format!("{{\"jsonrpc\":\"2.0\",\"id\":null,{error}}}"), format!("{{\"jsonrpc\":\"2.0\",{error}}}")],
    )
}

/// The ids of the two directions never meet.
fn id_of_call_in_flight(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let id = client.call("sleep", json!({ "ms": 200 }))?;
    client.round_trip()?;
    let start = client.place();
    client.send(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}\n"))?;
    client.send(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":1,\"message\":\"no\"}}}}\n"))?;
    let (end, _) = client.round_trip()?;
    ensure!(client.between(start, end).is_empty(), "an answer to nothing was answered");
    client.text(&id)?;
    client.finish()?;
    Ok(())
}

fn roots_answer(id: &Id) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"roots\":[{{\"uri\":\"file:///one\"}}]}}}}\n")
}

/// Makes the server ask, and gives the id of the call and of the server's request.
fn asked(client: &mut Client) -> Verdict<(Id, Id)> {
    let before = client.requests_from_server("roots/list", 0)?.len();
    let call = client.call("ask_roots", json!({}))?;
    let requests = client.requests_from_server("roots/list", before + 1)?;
    match requests.last() {
        Some(request) => Ok((call, request.clone())),
        None => crate::failure::fail!("no roots/list"),
    }
}

fn answer_twice(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let (call, request) = asked(&mut client)?;
    client.send(roots_answer(&request).repeat(3))?;
    client.text(&call)?;
    client.send(roots_answer(&request))?;
    let error = "\"error\":{\"code\":-32603,\"message\":\"changed my mind\"}";
    client.send(format!("{{\"jsonrpc\":\"2.0\",\"id\":{request},{error}}}\n"))?;
    let start = client.place();
    let (end, _) = client.round_trip()?;
    ensure!(client.between(start, end).is_empty(), "a second answer was answered");
    client.finish()?;
    Ok(())
}

fn other_type_of_id(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let (call, request) = asked(&mut client)?;
    let other = match request.as_json().strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        Some(text) if text.parse::<u64>().is_ok() => Id::raw(text),
        Some(text) => Id::string(&format!("{text} ")),
        None => Id::string(request.as_json()),
    };
    client.send(roots_answer(&other))?;
    client.round_trip()?;
    ensure!(client.answer_count(&call) == 0, "an answer to {other} was taken for {request}");
    client.send(roots_answer(&request))?;
    client.text(&call)?;
    client.finish()?;
    Ok(())
}

fn late_answer(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let (call, request) = asked(&mut client)?;
    client.cancel(&call)?;
    client.round_trip()?;
    client.send(roots_answer(&request))?;
    let (place, _) = client.round_trip()?;
    client.silent_since(&call, place)?;
    ensure!(client.answer_count(&call) == 0, "a cancelled call was answered");
    client.finish()?;
    Ok(())
}

/// Answers that are not even well-formed: no more than an error without an id may come of each, and calls go on.
fn odd_answers(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    for line in [
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{\"code\":1,\"message\":\"both\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":7}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":7}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{}}",
    ] {
        let start = client.place();
        client.send(format!("{line}\n"))?;
        let (end, _) = client.round_trip()?;
        let came = client.between(start, end);
        let fine = came.len() <= 1 && came.iter().all(crate::client::message::Message::is_unnamed_error);
        ensure!(fine, "{line} gave {} lines, the first {:?}", came.len(), came.first().map(|line| &line.opening));
    }
    client.finish()?;
    Ok(())
}

/// Answers, second answers and cancellations in any order: each call ends at most once.
fn raced(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    context.race(|context| {
        let (call, request) = asked(&mut client)?;
        let answer = roots_answer(&request);
        let cancel = crate::client::cancel_line(&call);
        let cancelled = context.random.coin();
        let mut lines = vec![answer.clone(), answer];
        if cancelled {
            lines.insert(context.random.place(3), cancel);
        }
        for line in lines {
            client.send(line)?;
            context.random.pause(200);
        }
        let (place, _) = client.round_trip()?;
        if cancelled { client.silent_since(&call, place) } else { client.text(&call).map(drop) }
    })?;
    client.finish()?;
    Ok(())
}
