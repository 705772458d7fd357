//! `docs/features.md`: the table of methods, for readers.

use std::fmt::Write as _;

use steadfast_model::{Method, MethodKind, Revision, SentBy};

/// Where the document is, from the root of the repository.
pub const DOCUMENT: &str = "docs/features.md";

const OPENING: &str = "\
# Methods by revision

Every request and notification of the protocol and of its tasks extension, and who may send it in which revision. This is
generated from the table that the code uses. A method without a sender in a revision does not exist there, and is refused as
unknown. *Needs* is what the receiver has to have declared; where a revision has no way to declare it (completions in
2024-11-05) the method is free to use. *In a result* means that since 2026-07-28 a server does not send the request: it
puts it into a result that asks for input, and the client tries again with the answer.

Written by `cargo run -p requirements -- features` from `crates/steadfast-model/src/method.rs`. Change that instead.

";

/// The text of the document.
pub fn document() -> String {
    let mut text = OPENING.to_owned();
    let revisions = Revision::ALL.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ");
    let _ = writeln!(text, "| method | kind | needs | {revisions} |");
    let _ = writeln!(text, "|{}", "---|".repeat(3 + Revision::ALL.len()));
    for &method in Method::ALL {
        let kind = if method.is_notification() { "notification" } else { "request" };
        let needs = method.capability().map(|capability| format!("{capability:?}").to_lowercase()).unwrap_or_default();
        let places = Revision::ALL.iter().map(|revision| place(method, *revision)).collect::<Vec<_>>().join(" | ");
        let _ = writeln!(text, "| `{method}` | {kind} | {needs} | {places} |");
    }
    text
}

fn place(method: Method, revision: Revision) -> &'static str {
    match (method.delivery_in(revision), method.sender_in(revision)) {
        (Some(MethodKind::InputRequest), _) => "in a result",
        (_, Some(SentBy::Client)) => "client",
        (_, Some(SentBy::Server)) => "server",
        (_, Some(SentBy::Both)) => "either",
        (_, None) => "",
    }
}
