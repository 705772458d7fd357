//! Batches, where they are refused and where they are served.

use serde_json::json;

use super::Expected::Unnamed;
use super::{bad, between_calls, openings};
use crate::check_context::CheckContext;
use crate::client::expect::{self, INVALID_REQUEST};
use crate::client::message::{Body, Id};
use crate::failure::{Verdict, ensure, fail};

pub(super) fn batch_refused(context: &mut CheckContext) -> Verdict {
    between_calls(context, |client| {
        let member = client.request_line(&Id::number(83), "tools/list", json!({}));
        let member = member.trim_end();
        vec![
            bad("[]", Unnamed(&[INVALID_REQUEST])),
            bad(format!("[{member}]"), Unnamed(&[INVALID_REQUEST])),
            bad("[1,2,3]", Unnamed(&[INVALID_REQUEST])),
        ]
    })
}

/// One array when all have ended; no entry for a notification; a slow member delays only its array.
pub(super) fn batch_served(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let (slow, quick) = (client.fresh_id(), client.fresh_id());
    client.count(&slow);
    client.count(&quick);
    let members = [
        client.call_line(&slow, "sleep", json!({ "ms": 200 })),
        client.call_line(&quick, "add", json!({ "a": 2, "b": 3 })),
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/roots/list_changed\"}".to_owned(),
    ];
    let members: Vec<&str> = members.iter().map(|line| line.trim_end()).collect();
    client.send(format!("[{}]\n", members.join(",")))?;
    let (round_trip, _) = client.round_trip()?;
    let place = client.answer_place(&slow)?;
    ensure!(place == client.answer_place(&quick)?, "the answers to a batch are not in one array");
    ensure!(place > round_trip, "a batch held up a call that was not in it, or was answered in part");
    let array = client.between(place, place + 1);
    match array.first().map(|message| &message.body) {
        Some(Body::Batch(entries)) => ensure!(entries.len() == 2, "{} entries for two requests", entries.len()),
        _ => fail!("a batch was not answered with an array"),
    }
    let start = client.place();
    client.send("[]\n")?;
    let (end, _) = client.round_trip()?;
    let came = client.between(start, end);
    ensure!(came.len() == 1, "an empty batch: {}", openings(&came));
    for message in &came {
        expect::error(message, &[INVALID_REQUEST])?;
    }
    client.finish()?;
    Ok(())
}
