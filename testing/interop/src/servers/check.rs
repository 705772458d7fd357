//! The checks: what our client does with a server, what it must see, and where there is nothing to see.

use std::pin::Pin;

use serde_json::{Value, json};
use steadfast::Error;

use super::session::{ROOT, Session};
use super::{calls, input, lists, shutdown};
use crate::Result;
use crate::expected::covers;

/// What was seen, when it is.
pub(crate) type CheckFuture<'a> = Pin<Box<dyn Future<Output = Result<Value, Error>> + Send + 'a>>;

/// One thing that our client does.
pub(crate) struct Check {
    pub(crate) name: &'static str,
    /// Whether the session cannot be used after this check.
    pub(crate) is_last: bool,
    pub(crate) see: fn(&Session) -> CheckFuture<'_>,
    pub(crate) expected: fn() -> Value,
}

/// The checks of a server that offers what `offers.json` says.
pub(crate) const ALL: &[Check] = &[
    Check::new(
        "open",
        |session| Box::pin(async { Ok(lists::open(session)) }),
        || json!({ "instructions": "Be kind.", "declared": ["tools", "resources", "prompts", "completions", "logging"] }),
    ),
    Check::new(
        "list",
        |session| Box::pin(lists::tools(session)),
        || json!({ "names": names("tools", "name"), "pages": 3, "arguments": ["a", "b"] }),
    ),
    Check::new("call", |session| Box::pin(calls::call(session)), || json!({ "add": ["5", false] })),
    Check::new(
        "structured",
        |session| Box::pin(calls::structured(session)),
        || json!({ "measured": { "characters": 17, "words": 5 }, "declared": ["characters", "words"] }),
    ),
    Check::new(
        "errors",
        |session| Box::pin(calls::errors(session)),
        || json!({ "failed": ["it failed on purpose", true], "unknown": true, "afterwards": ["5", false] }),
    ),
    Check::new(
        "concurrent",
        |session| Box::pin(calls::concurrent(session)),
        || json!({ "answers": (0..calls::AT_ONCE).map(|n| json!([(n + 1).to_string(), false])).collect::<Vec<_>>() }),
    ),
    Check::new(
        "progress",
        |session| Box::pin(calls::progress(session)),
        || json!({ "answer": ["4 steps", false], "steps": [[1, 4], [2, 4], [3, 4], [4, 4]] }),
    ),
    Check::new(
        "cancel",
        |session| Box::pin(calls::cancel(session)),
        || json!({ "stopped": 1, "afterwards": ["5", false] }),
    ),
    Check::new(
        "log",
        |session| Box::pin(calls::log(session)),
        || json!({ "answer": ["logged", false], "levels": ["warning", "error"] }),
    ),
    Check::new(
        "resources",
        |session| Box::pin(lists::resources(session)),
        || {
            json!({
                "resources": names("resources", "uri"),
                "templates": names("resourceTemplates", "uriTemplate"),
                "texts": ["0", "Hello, Ada!"],
                "not_found": true,
            })
        },
    ),
    Check::new(
        "subscribe",
        |session| Box::pin(lists::subscribe(session)),
        || json!({ "listening": true, "change": "interop://counter" }),
    ),
    Check::new(
        "changed",
        |session| Box::pin(lists::changed(session)),
        || json!({ "listening": true, "change": true, "before": false, "after": true }),
    ),
    Check::new(
        "prompts",
        |session| Box::pin(lists::prompts(session)),
        || {
            json!({
                "prompts": [["explain", [["topic", true], ["audience", false]]]],
                "text": "Explain tides to a child.",
                "unknown": true,
            })
        },
    ),
    Check::new(
        "complete",
        |session| Box::pin(lists::complete(session)),
        || json!({ "topic": ["tides", "time"], "name": ["Ada", "Alan"] }),
    ),
    Check::new(
        "elicit",
        |session| Box::pin(input::elicit(session)),
        || {
            let accepted = json!({ "age": 36, "loud": true, "manner": "polite", "name": "Ada" });
            json!({ "accepted": accepted, "declined": ["decline", false] })
        },
    ),
    Check::new("sample", |session| Box::pin(input::sample(session)), || json!({ "answer": ["Paris", false] })),
    Check::new("roots", |session| Box::pin(input::roots(session)), || json!({ "answer": [ROOT, false] })),
    Check::last(
        "close",
        |session| Box::pin(shutdown::close(session)),
        || json!({ "call": "Unknown", "afterwards": "NotSent", "gone": true }),
    ),
    Check::last(
        "kill",
        |session| Box::pin(shutdown::kill(session)),
        || json!({ "call": "Unknown", "afterwards": "NotSent" }),
    ),
];

impl Check {
    pub(crate) const fn new(name: &'static str, see: fn(&Session) -> CheckFuture<'_>, expected: fn() -> Value) -> Self {
        Self { name, is_last: false, see, expected }
    }

    pub(crate) const fn last(
        name: &'static str,
        see: fn(&Session) -> CheckFuture<'_>,
        expected: fn() -> Value,
    ) -> Self {
        Self { is_last: true, ..Self::new(name, see, expected) }
    }

    /// Compares what was seen with what must have been.
    pub(crate) fn judge(&self, seen: &Value) -> Result {
        let expected = (self.expected)();
        if covers(&expected, seen) { Ok(()) } else { Err(format!("saw {seen}, expected {expected}")) }
    }
}

/// Why there is nothing to check, if there is not.
pub(crate) fn missing(check: &str, revision: &str) -> Option<&'static str> {
    match check {
        "elicit" if revision < "2025-06-18" => Some("elicitation came with 2025-06-18"),
        "structured" if revision < "2025-06-18" => Some("structured output came with 2025-06-18"),
        _ => None,
    }
}

/// A member of each of the things that are offered, in their order.
fn names(list: &str, member: &str) -> Vec<Value> {
    let offers: Value = serde_json::from_str(include_str!("../../offers.json")).unwrap_or_default();
    let offered = offers.get(list).and_then(Value::as_array);
    offered.into_iter().flatten().filter_map(|offered| offered.get(member).cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::everything;

    #[test]
    fn what_is_offered_is_known() {
        assert_eq!(names("tools", "name").len(), 11);
        assert_eq!(names("resources", "uri"), ["interop://counter"]);
    }

    #[test]
    fn the_reference_server_has_no_column_of_its_own() {
        for check in everything::ALL {
            assert!(ALL.iter().any(|column| column.name == check.name), "{}", check.name);
        }
    }
}
