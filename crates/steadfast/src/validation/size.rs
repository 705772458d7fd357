//! How large a value is, and how often it may be looked at.

use serde_json::Value;

pub(super) struct Size {
    /// Levels of nesting; a number has one.
    pub(super) levels: usize,
    /// How often its parts are looked at, if each level is reached in so many ways from the one above.
    pub(super) looks: usize,
}

impl Size {
    /// Goes over the value. Never recurses.
    pub(super) fn of(value: &Value, ways: usize) -> Self {
        let mut size = Self { levels: 0, looks: 0 };
        let mut left = vec![(value, 1, 1_usize)];
        while let Some((value, level, looks)) = left.pop() {
            size.levels = size.levels.max(level);
            size.looks = size.looks.saturating_add(looks);
            let (level, looks) = (level + 1, looks.saturating_mul(ways));
            match value {
                Value::Object(members) => left.extend(members.values().map(|inner| (inner, level, looks))),
                Value::Array(elements) => left.extend(elements.iter().map(|inner| (inner, level, looks))),
                _ => {}
            }
        }
        size
    }
}
