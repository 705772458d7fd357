//! The checks: what a client must have seen, and where there is nothing to see.

use serde_json::{Value, json};

use crate::Result;
use crate::expected::covers;
use crate::transport::Transport;

/// How many calls the `concurrent` check makes at once; the scripts know it too.
const AT_ONCE: usize = 32;

/// One thing that a client does.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) name: &'static str,
    /// Whether a handler was stopped, which `slow_cleanup` writes down: exactly once.
    pub(crate) cleans_up: bool,
    /// Whether the connection is cut after the second of four steps.
    pub(crate) is_cut: bool,
    expected: fn() -> Value,
}

impl Check {
    pub(crate) const ALL: &'static [Check] = &[
        Check::new("list", || json!({ "tools": ["add", "echo", "progress", "slow_cleanup"], "add": ["a", "b"] })),
        Check::new("call", || json!({ "add": ["5", false], "echo": ["héllo\n\u{2028} 𝄞", false] })),
        Check::new("large", || json!({ "length": 1 << 19, "is_error": false })),
        Check::new("errors", || {
            json!({
                "bad_arguments": true,
                "codes": { "no_such_tool": -32602, "panic": -32603 },
                "afterwards": ["5", false],
            })
        }),
        Check::new("print", || json!({ "printed": ["printed", false], "add": ["5", false] })),
        Check::new(
            "concurrent",
            || json!({ "answers": (0..AT_ONCE).map(|n| json!([format!("call {n}"), false])).collect::<Vec<_>>() }),
        ),
        Check::new("progress", four_steps),
        Check::new(
            "log",
            || json!({ "answer": ["logged", false], "logs": [["warning", "careful"], ["error", "careful"]] }),
        ),
        Check::new("resources", || {
            json!({
                "resources": ["steadfast://counter"],
                "templates": ["steadfast://laws/{law}"],
                "texts": { "steadfast://counter": "0", "steadfast://laws/L8": L8 },
                "not_found": true,
            })
        }),
        Check::new(
            "subscribe",
            || json!({ "before": "0", "after": "1", "at_the_end": "2", "updates": ["steadfast://counter"] }),
        ),
        Check::new("prompts", || {
            json!({
                "prompts": { "explain_law": [["law", true], ["audience", false]] },
                "text": format!(
                    "Explain to a child why an MCP server should keep this law, with an example.\n\n{L8}"
                ),
                "refused": true,
            })
        }),
        Check::new(
            "complete",
            || json!({ "law": ["L1", "L10"], "audience": ["a child", "a colleague"], "template": ["L1", "L10"] }),
        ),
        Check::new("elicit", || {
            let question = json!(["Who are you?", ["manner", "name"]]);
            json!({
                "questions": [question, question],
                "accepted": ["Good day, Ada.", false],
                "declined": ["the user declined", true],
            })
        }),
        Check::new("sample", || json!({ "questions": ["What is the capital of France?"], "answer": ["Paris", false] })),
        Check::new("roots", || json!({ "roots": ["file:///interop", false] })),
        Check { is_cut: true, ..Check::new("resume", four_steps) },
        Check::new("release", || json!({ "answer": ["welcome back", false], "afterwards": ["5", false] })),
        Check { cleans_up: true, ..Check::new("cancel", || json!({ "cleaned_up": true, "afterwards": ["5", false] })) },
        Check { cleans_up: true, ..Check::new("close", || json!({})) },
    ];

    const fn new(name: &'static str, expected: fn() -> Value) -> Self {
        Self { name, cleans_up: false, is_cut: false, expected }
    }

    /// Why there is nothing to check, if there is not.
    pub(crate) fn missing(&self, transport: Transport, revision: &str) -> Option<&'static str> {
        let over_http = transport == Transport::Http;
        match self.name {
            "print" if over_http => Some("standard output is not the protocol's over HTTP"),
            "elicit" if revision < "2025-06-18" => Some("elicitation came with 2025-06-18"),
            "resume" if !over_http => Some("only streams of HTTP can be resumed"),
            "resume" if revision >= "2026" => Some("2026-07-28 resumes no stream"),
            "release" if !over_http || revision != "2025-11-25" => {
                Some("only 2025-11-25 over HTTP lets a server release the connection")
            }
            _ => None,
        }
    }

    /// Compares what a client reported with what it must have seen, in the requested revision.
    pub(crate) fn judge(&self, revision: &str, report: &Value) -> Result {
        if let Some(words) = report.get("error").and_then(Value::as_str) {
            return Err(words.trim().to_owned());
        }
        let agreed = report.get("revision").and_then(Value::as_str);
        if agreed != Some(revision) {
            return Err(format!("agreed on {agreed:?}"));
        }
        let expected = (self.expected)();
        let seen = report.get("seen").ok_or("no `seen`")?;
        if covers(&expected, seen) { Ok(()) } else { Err(format!("saw {seen}, expected {expected}")) }
    }
}

const L8: &str = "Identity: a second request with an id in flight is rejected.";

fn four_steps() -> Value {
    json!({ "text": "4 steps", "steps": [[1, 4], [2, 4], [3, 4], [4, 4]] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str) -> &'static Check {
        Check::ALL.iter().find(|check| check.name == name).unwrap()
    }

    #[test]
    fn a_fraction_of_nothing_is_the_same_number() {
        let report = json!({ "revision": "2025-11-25", "seen": {
            "text": "4 steps", "steps": [[1.0, 4.0], [2.0, 4.0], [3.0, 4.0], [4.0, 4.0]] } });
        assert_eq!(check("progress").judge("2025-11-25", &report), Ok(()));
    }

    #[test]
    fn a_missing_step_fails() {
        let report =
            json!({ "revision": "2025-11-25", "seen": { "text": "4 steps", "steps": [[1, 4], [2, 4], [4, 4]] } });
        assert!(check("resume").judge("2025-11-25", &report).is_err());
    }

    #[test]
    fn another_revision_than_asked_for_fails() {
        let report = json!({ "revision": "2025-06-18", "seen": {} });
        assert!(check("close").judge("2025-11-25", &report).is_err());
    }

    #[test]
    fn what_a_client_failed_with_is_the_failure() {
        let report = json!({ "error": "it fell over\n" });
        assert_eq!(check("close").judge("2025-11-25", &report), Err("it fell over".to_owned()));
    }

    #[test]
    fn more_tools_than_are_needed_pass_and_fewer_fail() {
        let report =
            |tools: &[&str]| json!({ "revision": "2025-11-25", "seen": { "tools": tools, "add": ["a", "b"] } });
        let more = report(&["add", "blob", "echo", "progress", "slow_cleanup"]);
        assert_eq!(check("list").judge("2025-11-25", &more), Ok(()));
        assert!(check("list").judge("2025-11-25", &report(&["add", "echo", "progress"])).is_err());
    }
}
