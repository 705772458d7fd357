//! The checks: what a client must have seen.

use serde_json::{Value, json};

use crate::Result;

/// How many calls the `concurrent` check makes at once; the scripts know it too.
const AT_ONCE: usize = 32;

/// One thing that a client does.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) name: &'static str,
    /// Whether a handler was stopped, which `slow_cleanup` writes down: exactly once.
    pub(crate) cleans_up: bool,
    expected: fn() -> Value,
}

impl Check {
    pub(crate) const ALL: &'static [Check] = &[
        Check::new("list", || json!({ "tools": ["add", "echo", "progress", "slow_cleanup"], "add": ["a", "b"] })),
        Check::new("call", || json!({ "add": ["5", false], "echo": ["héllo\n\u{2028} 𝄞", false] })),
        Check::new("large", || json!({ "length": 1 << 20, "is_error": false })),
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
        Check::new("progress", || json!({ "text": "4 steps", "steps": [[1, 4], [2, 4], [3, 4], [4, 4]] })),
        Check::new("roots", || json!({ "roots": ["file:///interop", false] })),
        Check { cleans_up: true, ..Check::new("cancel", || json!({ "cleaned_up": true, "afterwards": ["5", false] })) },
        Check { cleans_up: true, ..Check::new("close", || json!({})) },
    ];

    const fn new(name: &'static str, expected: fn() -> Value) -> Self {
        Self { name, cleans_up: false, expected }
    }

    /// Compares what a client told with what it must have seen, in the revision that was asked for.
    pub(crate) fn judge(&self, revision: &str, told: &Value) -> Result {
        let agreed = told.get("revision").and_then(Value::as_str);
        if agreed != Some(revision) {
            return Err(format!("agreed on {agreed:?}"));
        }
        let expected = (self.expected)();
        let seen = told.get("seen").ok_or("no `seen`")?;
        if covers(&expected, seen) { Ok(()) } else { Err(format!("saw {seen}, expected {expected}")) }
    }
}

/// Whether `seen` is as expected. A list of tools may have more of them; numbers may be written with a fraction.
fn covers(expected: &Value, seen: &Value) -> bool {
    match (expected, seen) {
        (Value::Number(expected), Value::Number(seen)) => expected.as_f64() == seen.as_f64(),
        (Value::Array(expected), Value::Array(seen)) => {
            expected.len() == seen.len() && expected.iter().zip(seen).all(|(expected, seen)| covers(expected, seen))
        }
        (Value::Object(expected), Value::Object(seen)) => {
            expected.len() == seen.len()
                && expected.iter().all(|(name, expected)| match (name.as_str(), seen.get(name)) {
                    (_, None) => false,
                    ("tools", Some(Value::Array(seen))) => {
                        expected.as_array().is_some_and(|tools| tools.iter().all(|tool| seen.contains(tool)))
                    }
                    (_, Some(seen)) => covers(expected, seen),
                })
        }
        _ => expected == seen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str) -> &'static Check {
        Check::ALL.iter().find(|check| check.name == name).unwrap()
    }

    #[test]
    fn a_fraction_of_nothing_is_the_same_number() {
        let told = json!({ "revision": "2025-11-25", "seen": {
            "text": "4 steps", "steps": [[1.0, 4.0], [2.0, 4.0], [3.0, 4.0], [4.0, 4.0]] } });
        assert_eq!(check("progress").judge("2025-11-25", &told), Ok(()));
    }

    #[test]
    fn a_missing_step_fails() {
        let told =
            json!({ "revision": "2025-11-25", "seen": { "text": "4 steps", "steps": [[1, 4], [2, 4], [4, 4]] } });
        assert!(check("progress").judge("2025-11-25", &told).is_err());
    }

    #[test]
    fn another_revision_than_asked_for_fails() {
        let told = json!({ "revision": "2025-06-18", "seen": {} });
        assert!(check("close").judge("2025-11-25", &told).is_err());
    }

    #[test]
    fn more_tools_than_are_needed_pass_and_fewer_fail() {
        let told = |tools: &[&str]| json!({ "revision": "2025-11-25", "seen": { "tools": tools, "add": ["a", "b"] } });
        let more = told(&["add", "blob", "echo", "progress", "slow_cleanup"]);
        assert_eq!(check("list").judge("2025-11-25", &more), Ok(()));
        assert!(check("list").judge("2025-11-25", &told(&["add", "echo", "progress"])).is_err());
    }
}
