//! Lines over the limit.

use serde_json::json;

use super::Expected::{MaybeNamed, Unnamed};
use super::{bad, between_calls_of};
use crate::check_context::CheckContext;
use crate::client::expect::{self, INVALID_REQUEST, PARSE_ERROR};
use crate::client::message::Id;
use crate::failure::{Verdict, ensure};
use crate::limits::{FRAME_LIMIT, LONG_LINE_KIB};

/// A refusal for a limit is a condition of the server's own, or a request that cannot be read.
const OVERSIZED: &[i64] = &[PARSE_ERROR, INVALID_REQUEST, expect::INTERNAL_ERROR];

pub(super) fn line_over_small_limit(context: &mut CheckContext) -> Verdict {
    const LIMIT: usize = 65_536;
    let launch = context.launch().argument("--max-frame").argument(LIMIT.to_string());
    let mut client = context.open_with(&launch)?;
    let mut lines = Vec::new();
    for length in [LIMIT + 1, LIMIT * 2, LIMIT * 20] {
        lines.push(bad("x".repeat(length), Unnamed(OVERSIZED)));
        let id = Id::number(1_000 + length as u64);
        let call = client.call_line(&id, "echo", json!({ "text": "y".repeat(length) })).trim_end().to_owned();
        lines.push((call.into_bytes(), MaybeNamed(id, OVERSIZED)));
        lines.push(bad(b"\xff".repeat(length), Unnamed(OVERSIZED)));
    }
    between_calls_of(&mut client, lines)?;
    // What fits is served.
    let text = "z".repeat(LIMIT / 2);
    let id = client.call("echo", json!({ "text": text }))?;
    ensure!(client.text(&id)? == text, "an echo of half the limit");
    client.finish()?;
    Ok(())
}

pub(super) fn line_over_default_limit(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    client.round_trip()?;
    let idle = client.server.memory()?.resident;
    let id = Id::number(48);
    let call = client.call_line(&id, "echo", json!({ "text": "y".repeat(4 * FRAME_LIMIT) })).trim_end().to_owned();
    between_calls_of(&mut client, vec![(call.into_bytes(), MaybeNamed(id, OVERSIZED))])?;
    let over = client.server.memory()?.peak.saturating_sub(idle);
    context.note_memory("64 MiB line: peak over idle", over);
    ensure!(over <= LONG_LINE_KIB, "a refused line cost {over} KiB, the bound is {LONG_LINE_KIB} KiB");
    client.finish()?;
    Ok(())
}
