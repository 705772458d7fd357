//! JSON for files in version control: what holds no other array or object is on one line, so that a round is one line
//! of a difference between two runs.

use serde_json::Value;

/// The text of a value, with an end of line.
pub(crate) fn text(value: &Value) -> String {
    let mut text = String::new();
    write(value, 0, &mut text);
    text.push('\n');
    text
}

fn write(value: &Value, depth: usize, text: &mut String) {
    match value {
        Value::Array(items) if !items.iter().all(is_scalar) => {
            let items = items.iter().map(|item| (String::new(), item));
            block(('[', ']'), items, depth, text);
        }
        Value::Object(fields) if !fields.values().all(is_scalar) => {
            let fields = fields.iter().map(|(name, field)| (format!("{}: ", Value::from(name.as_str())), field));
            block(('{', '}'), fields, depth, text);
        }
        flat => text.push_str(&flat.to_string()),
    }
}

fn block<'a>(
    (open, close): (char, char),
    items: impl Iterator<Item = (String, &'a Value)>,
    depth: usize,
    text: &mut String,
) {
    text.push(open);
    for (position, (name, item)) in items.enumerate() {
        text.push_str(if position == 0 { "\n" } else { ",\n" });
        text.push_str(&"  ".repeat(depth + 1));
        text.push_str(&name);
        write(item, depth + 1, text);
    }
    text.push('\n');
    text.push_str(&"  ".repeat(depth));
    text.push(close);
}

fn is_scalar(value: &Value) -> bool {
    !value.is_array() && !value.is_object()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_holds_nothing_else_is_on_one_line() {
        let value = json!({"rounds": [{"requests": 1}, {"requests": 2}], "smoke": false});
        let expected = "{\n  \"rounds\": [\n    {\"requests\":1},\n    {\"requests\":2}\n  ],\n  \"smoke\": false\n}\n";
        assert_eq!(text(&value), expected);
        assert_eq!(serde_json::from_str::<Value>(&text(&value)).ok(), Some(value));
    }
}
