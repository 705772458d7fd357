//! Explains decoding errors in the terms of JSON.
//!
//! Serde's messages are for the author of the Rust type: `invalid type: string "2", expected usize`. The author of a
//! JSON value, usually a model, has never seen the Rust type, but knows JSON. Only serde's own messages are rewritten;
//! messages of a type's own `Deserialize` stay as they are.

use std::borrow::Cow;

/// Explains why JSON could not be decoded, without the position, which is useless to the author of a value.
pub(crate) fn explain_json(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    explain_serde(text.strip_suffix(&position).unwrap_or(&text)).into_owned()
}

/// Explains serde's message about a value to the author of the value.
pub(crate) fn explain_serde(message: &str) -> Cow<'_, str> {
    rewrite(message).map_or(Cow::Borrowed(message), Cow::Owned)
}

fn rewrite(message: &str) -> Option<String> {
    if let Some(mismatch) = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: ")) {
        // The value comes first, and may contain any text.
        let (found, wanted) = mismatch.rsplit_once(", expected ")?;
        return Some(format!("it must be {}, and is {}", kind(wanted, found), value(found)));
    }
    if let Some(mismatch) = message.strip_prefix("invalid length ") {
        let (length, wanted) = mismatch.rsplit_once(", expected ")?;
        return Some(format!("it must be {}, and has {length}", kind(wanted, "")));
    }
    if let Some(mismatch) = message.strip_prefix("unknown variant ") {
        let (found, wanted) = mismatch.rsplit_once(", expected ")?;
        return Some(format!("it must be {wanted}, and is {found}"));
    }
    if let Some(mismatch) = message.strip_prefix("unknown field ") {
        return Some(match mismatch.rsplit_once(", expected ") {
            Some((name, known)) => format!("unknown member {name}, expected {known}"),
            None => format!("unknown member {}", mismatch.strip_suffix(", there are no fields")?),
        });
    }
    if let Some(name) = message.strip_prefix("missing field ") {
        return Some(format!("{name} is missing"));
    }
    if let Some(name) = message.strip_prefix("duplicate field ") {
        return Some(format!("{name} is given twice"));
    }
    match message {
        // serde's name for what an enum is decoded from.
        "expected value" => Some("it must be a string or an object".to_owned()),
        _ if message.starts_with("data did not match any variant of untagged enum ") => {
            Some("it matches none of the allowed forms".to_owned())
        }
        _ => None,
    }
}

/// Describes what a value has to be. `found` is serde's description of the value that was found.
fn kind<'a>(wanted: &'a str, found: &str) -> Cow<'a, str> {
    let is_integer = found.starts_with("integer ");
    let known = match wanted {
        "i8" => "an integer from -128 to 127",
        "i16" => "an integer from -32768 to 32767",
        "i32" => "an integer from -2147483648 to 2147483647",
        // The bounds matter only if they are exceeded.
        "i64" | "isize" if is_integer => "an integer from -9223372036854775808 to 9223372036854775807",
        "i64" | "isize" | "i128" => "an integer",
        "u8" => "an integer from 0 to 255",
        "u16" => "an integer from 0 to 65535",
        "u32" => "an integer from 0 to 4294967295",
        "u64" | "usize" | "u128" => "a non-negative integer",
        "f32" | "f64" => "a number",
        "a character" => "a string of one character",
        "path string" => "a string",
        "unit" => "null",
        "a sequence" => "an array",
        "a map" => "an object",
        "string or map" => "a string or an object",
        _ => return compound(wanted),
    };
    known.into()
}

/// Describes what a value has to be for compound types, and for types that are decoded from another type.
fn compound(wanted: &str) -> Cow<'_, str> {
    if let Some(number) = wanted.strip_prefix("a nonzero ") {
        return match number.strip_prefix('u') {
            Some(_) => "a positive integer".into(),
            None => "an integer other than 0".into(),
        };
    }
    let lengths = ["a tuple of size ", "an array of length "];
    if let Some(length) = lengths.iter().find_map(|form| wanted.strip_prefix(form)) {
        return format!("an array of {length} elements").into();
    }
    let counted = ["struct ", "tuple struct ", "tuple variant ", "struct variant "];
    if let Some(named) = counted.iter().find_map(|form| wanted.strip_prefix(form)) {
        // Types that are decoded from an array name its length.
        return match named.split_once(" with ") {
            Some((_, elements)) => format!("an array of {elements}").into(),
            None if wanted.starts_with("tuple") => "an array".into(),
            None => "an object".into(),
        };
    }
    if wanted.starts_with("enum ") {
        return "a string or an object".into();
    }
    if ["internally tagged enum ", "adjacently tagged enum "].iter().any(|form| wanted.starts_with(form)) {
        return "an object".into();
    }
    wanted.into()
}

/// Describes a value that could not be decoded, in the terms of JSON; `found` is serde's description of the value.
fn value(found: &str) -> Cow<'_, str> {
    let quoted = ["boolean `", "integer `", "floating point `", "number `"];
    if let Some(literal) = quoted.iter().find_map(|form| found.strip_prefix(form)?.strip_suffix('`')) {
        return literal.into();
    }
    match found {
        "sequence" => "an array".into(),
        "map" => "an object".into(),
        "unit value" | "Option value" => "null".into(),
        _ if found.starts_with("string ") => format!("the {found}").into(),
        _ => found.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::num::NonZeroU8;
    use std::path::PathBuf;

    use serde::Deserialize;
    use serde::de::DeserializeOwned;

    use super::*;

    /// The explanation of a value that cannot be decoded as `T`.
    fn explained<T: DeserializeOwned>(value: &str) -> String {
        explain_json(&serde_json::from_str::<T>(value).err().expect("it is no such thing"))
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "never made")]
    struct Point {
        x: f64,
        y: f64,
    }

    #[derive(Deserialize)]
    #[allow(dead_code, reason = "never made")]
    struct Pair(u8, u8);

    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    #[allow(dead_code, reason = "never made")]
    enum Colour {
        Red,
        Green,
        Mixed { red: u8 },
    }

    #[derive(Deserialize)]
    #[serde(tag = "kind")]
    #[allow(dead_code, reason = "never made")]
    enum Shape {
        Circle { radius: u8 },
    }

    #[derive(Deserialize)]
    #[serde(untagged)]
    #[allow(dead_code, reason = "never made")]
    enum Either {
        Number(u8),
        Text(String),
    }

    #[test]
    fn numbers_are_explained_in_terms_of_json() {
        assert_eq!(explained::<usize>("\"two\""), "it must be a non-negative integer, and is the string \"two\"");
        assert_eq!(explained::<u64>("-3"), "it must be a non-negative integer, and is -3");
        assert_eq!(explained::<u8>("300"), "it must be an integer from 0 to 255, and is 300");
        assert_eq!(explained::<i32>("1.5"), "it must be an integer from -2147483648 to 2147483647, and is 1.5");
        assert_eq!(explained::<i64>("null"), "it must be an integer, and is null");
        assert_eq!(
            explained::<i64>("9223372036854775808"),
            "it must be an integer from -9223372036854775808 to 9223372036854775807, and is 9223372036854775808"
        );
        assert_eq!(explained::<f64>("true"), "it must be a number, and is true");
        assert_eq!(explained::<NonZeroU8>("0"), "it must be a positive integer, and is 0");
    }

    #[test]
    fn strings_and_compound_values_are_explained_in_terms_of_json() {
        assert_eq!(explained::<String>("[1]"), "it must be a string, and is an array");
        assert_eq!(explained::<PathBuf>("7"), "it must be a string, and is 7");
        assert_eq!(explained::<char>("\"ab\""), "it must be a string of one character, and is the string \"ab\"");
        assert_eq!(explained::<bool>("{}"), "it must be a boolean, and is an object");
        assert_eq!(explained::<Vec<u8>>("7"), "it must be an array, and is 7");
        assert_eq!(explained::<BTreeMap<String, u8>>("[]"), "it must be an object, and is an array");
        assert_eq!(explained::<(u8, u8)>("[1]"), "it must be an array of 2 elements, and has 1");
        assert_eq!(explained::<[u8; 3]>("7"), "it must be an array of 3 elements, and is 7");
        assert_eq!(explained::<Point>("7"), "it must be an object, and is 7");
        assert_eq!(explained::<Point>("[1]"), "it must be an array of 2 elements, and has 1");
        assert_eq!(explained::<Pair>("7"), "it must be an array, and is 7");
    }

    #[test]
    fn errors_name_the_members() {
        assert_eq!(explained::<Point>(r#"{"x":1}"#), "`y` is missing");
        assert_eq!(explained::<Point>(r#"{"x":1,"x":2}"#), "`x` is given twice");
        assert_eq!(explained::<Point>(r#"{"x":1,"z":2}"#), "unknown member `z`, expected `x` or `y`");
    }

    #[test]
    fn errors_name_the_alternatives() {
        assert_eq!(explained::<Colour>("\"blue\""), "it must be one of `red`, `green`, `mixed`, and is `blue`");
        assert_eq!(explained::<Colour>("7"), "it must be a string or an object");
        assert_eq!(explained::<Shape>("7"), "it must be an object, and is 7");
        assert_eq!(explained::<Either>("[]"), "it matches none of the allowed forms");
    }

    #[test]
    fn a_value_may_contain_any_text() {
        let value = serde_json::to_string("invalid type: a, expected u8").expect("it can be written");
        assert_eq!(
            explained::<u8>(&value),
            "it must be an integer from 0 to 255, and is the string \"invalid type: a, expected u8\""
        );
    }

    #[test]
    fn messages_of_a_type_itself_are_not_rewritten() {
        assert_eq!(explain_serde("the port is taken"), "the port is taken");
        assert_eq!(explain_serde("invalid type: whatever"), "invalid type: whatever");
    }
}
