//! The size of a JSON value, and how many times a check against a schema may visit its parts.

use serde_json::Value;

pub(super) struct ValueValidationCost {
    /// The nesting depth of a JSON value: 1 for a scalar such as a number.
    pub(super) levels: usize,
    /// How many times a check visits parts of the value, if each level is reached by `branching` paths from the level
    /// above.
    pub(super) visits: usize,
}

impl ValueValidationCost {
    /// Measures how deep a JSON value is, and how many times a check against a schema may visit its parts. Never
    /// recurses.
    pub(super) fn of(value: &Value, branching: usize) -> Self {
        let mut size = Self { levels: 0, visits: 0 };
        let mut remaining = vec![(value, 1, 1_usize)];
        while let Some((value, level, visits)) = remaining.pop() {
            size.levels = size.levels.max(level);
            size.visits = size.visits.saturating_add(visits);
            let (level, visits) = (level + 1, visits.saturating_mul(branching));
            match value {
                Value::Object(members) => remaining.extend(members.values().map(|inner| (inner, level, visits))),
                Value::Array(elements) => remaining.extend(elements.iter().map(|inner| (inner, level, visits))),
                _ => {}
            }
        }
        size
    }
}
