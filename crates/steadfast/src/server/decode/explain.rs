//! Why a value could not be read, in the words of JSON.
//!
//! Serde speaks to who wrote the type: `invalid type: string "2", expected usize`. Who wrote the value, a model most often, has
//! never seen the type, and knows JSON. Only the sentences that serde makes itself are put into other words; what a type's
//! own reader says stays as it is.

use std::borrow::Cow;

/// Why JSON could not be read, without the position: it is of no use to who wrote a value, not a text.
pub(crate) fn of_json(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    in_words(text.strip_suffix(&position).unwrap_or(&text)).into_owned()
}

/// What serde says of a value, for whoever wrote the value.
pub(crate) fn in_words(said: &str) -> Cow<'_, str> {
    worded(said).map_or(Cow::Borrowed(said), Cow::Owned)
}

fn worded(said: &str) -> Option<String> {
    if let Some(mismatch) = said.strip_prefix("invalid type: ").or_else(|| said.strip_prefix("invalid value: ")) {
        // The value comes first, and may hold any text.
        let (found, wanted) = mismatch.rsplit_once(", expected ")?;
        return Some(format!("it must be {}, and is {}", kind(wanted, found), value(found)));
    }
    if let Some(mismatch) = said.strip_prefix("invalid length ") {
        let (length, wanted) = mismatch.rsplit_once(", expected ")?;
        return Some(format!("it must be {}, and has {length}", kind(wanted, "")));
    }
    if let Some(mismatch) = said.strip_prefix("unknown variant ") {
        let (found, wanted) = mismatch.rsplit_once(", expected ")?;
        return Some(format!("it must be {wanted}, and is {found}"));
    }
    if let Some(mismatch) = said.strip_prefix("unknown field ") {
        return Some(match mismatch.rsplit_once(", expected ") {
            Some((name, known)) => format!("{name} is not known here, only {known}"),
            None => format!("{} is not known here", mismatch.strip_suffix(", there are no fields")?),
        });
    }
    if let Some(name) = said.strip_prefix("missing field ") {
        return Some(format!("{name} is missing"));
    }
    if let Some(name) = said.strip_prefix("duplicate field ") {
        return Some(format!("{name} is given twice"));
    }
    match said {
        // An enum is read from one of these.
        "expected value" => Some("it must be a string or an object".to_owned()),
        _ if said.starts_with("data did not match any variant of untagged enum ") => {
            Some("it has none of the forms that it may have".to_owned())
        }
        _ => None,
    }
}

/// What a value has to be. `found` is what it is, in serde's words.
fn kind<'a>(wanted: &'a str, found: &str) -> Cow<'a, str> {
    let is_integer = found.starts_with("integer ");
    let known = match wanted {
        "i8" => "an integer from -128 to 127",
        "i16" => "an integer from -32768 to 32767",
        "i32" => "an integer from -2147483648 to 2147483647",
        // Nobody needs to know the bounds who is not beyond them.
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
        _ => return built(wanted),
    };
    known.into()
}

/// What has parts, or is made of something else.
fn built(wanted: &str) -> Cow<'_, str> {
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
        // Those that are read from an array say how many elements it has.
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

/// What a value is.
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

    /// What is said of a value that is no `T`.
    fn said<T: DeserializeOwned>(value: &str) -> String {
        of_json(&serde_json::from_str::<T>(value).err().expect("it is no such thing"))
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
    fn numbers_are_told_by_what_json_calls_them() {
        assert_eq!(said::<usize>("\"two\""), "it must be a non-negative integer, and is the string \"two\"");
        assert_eq!(said::<u64>("-3"), "it must be a non-negative integer, and is -3");
        assert_eq!(said::<u8>("300"), "it must be an integer from 0 to 255, and is 300");
        assert_eq!(said::<i32>("1.5"), "it must be an integer from -2147483648 to 2147483647, and is 1.5");
        assert_eq!(said::<i64>("null"), "it must be an integer, and is null");
        assert_eq!(
            said::<i64>("9223372036854775808"),
            "it must be an integer from -9223372036854775808 to 9223372036854775807, and is 9223372036854775808"
        );
        assert_eq!(said::<f64>("true"), "it must be a number, and is true");
        assert_eq!(said::<NonZeroU8>("0"), "it must be a positive integer, and is 0");
    }

    #[test]
    fn texts_and_what_has_parts_are_told_by_what_json_calls_them() {
        assert_eq!(said::<String>("[1]"), "it must be a string, and is an array");
        assert_eq!(said::<PathBuf>("7"), "it must be a string, and is 7");
        assert_eq!(said::<char>("\"ab\""), "it must be a string of one character, and is the string \"ab\"");
        assert_eq!(said::<bool>("{}"), "it must be a boolean, and is an object");
        assert_eq!(said::<Vec<u8>>("7"), "it must be an array, and is 7");
        assert_eq!(said::<BTreeMap<String, u8>>("[]"), "it must be an object, and is an array");
        assert_eq!(said::<(u8, u8)>("[1]"), "it must be an array of 2 elements, and has 1");
        assert_eq!(said::<[u8; 3]>("7"), "it must be an array of 3 elements, and is 7");
        assert_eq!(said::<Point>("7"), "it must be an object, and is 7");
        assert_eq!(said::<Point>("[1]"), "it must be an array of 2 elements, and has 1");
        assert_eq!(said::<Pair>("7"), "it must be an array, and is 7");
    }

    #[test]
    fn members_are_named() {
        assert_eq!(said::<Point>(r#"{"x":1}"#), "`y` is missing");
        assert_eq!(said::<Point>(r#"{"x":1,"x":2}"#), "`x` is given twice");
        assert_eq!(said::<Point>(r#"{"x":1,"z":2}"#), "`z` is not known here, only `x` or `y`");
    }

    #[test]
    fn alternatives_are_named() {
        assert_eq!(said::<Colour>("\"blue\""), "it must be one of `red`, `green`, `mixed`, and is `blue`");
        assert_eq!(said::<Colour>("7"), "it must be a string or an object");
        assert_eq!(said::<Shape>("7"), "it must be an object, and is 7");
        assert_eq!(said::<Either>("[]"), "it has none of the forms that it may have");
    }

    #[test]
    fn a_value_may_hold_any_text() {
        let value = serde_json::to_string("invalid type: a, expected u8").expect("it can be written");
        assert_eq!(
            said::<u8>(&value),
            "it must be an integer from 0 to 255, and is the string \"invalid type: a, expected u8\""
        );
    }

    #[test]
    fn what_a_type_says_itself_is_left_alone() {
        assert_eq!(in_words("the port is taken"), "the port is taken");
        assert_eq!(in_words("invalid type: whatever"), "invalid type: whatever");
    }
}
