//! What was expected, compared with what was seen.

use serde_json::Value;

/// Whether `seen` is as expected. A list of tools may have more of them; numbers may be written with a fraction.
pub(crate) fn covers(expected: &Value, seen: &Value) -> bool {
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
