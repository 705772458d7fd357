//! The arguments of a call: raw JSON text until they are decoded into the handler's type.
//!
//! Arguments are decoded directly from the text of the message, once, without a tree of values in between. If that
//! fails, the arguments are decoded again by a deserializer that tracks its position, so that the error names the
//! argument.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::error::ToolError;
use crate::server::decode::explain;

/// The JSON text of `params.arguments`, as a range of the text of the request's parameters.
pub(crate) struct RawArguments {
    text: Box<str>,
    range: Range<usize>,
}

impl RawArguments {
    /// The arguments of a request without `params.arguments`: an empty JSON object.
    pub(crate) fn none() -> Self {
        Self { text: Box::default(), range: 0..0 }
    }

    /// The arguments at `range` of `text`: a JSON value whose syntax has been checked.
    pub(crate) fn within(text: Box<str>, range: Range<usize>) -> Self {
        Self { text, range }
    }

    /// The JSON text of the arguments: an object, unless the client made a mistake.
    pub(crate) fn text(&self) -> &str {
        match self.text.get(self.range.clone()) {
            None | Some("" | "null") => "{}",
            Some(text) => text,
        }
    }

    /// Decodes the arguments of the client's request as `T`.
    pub(crate) fn decode<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        self.decode_seed(PhantomData::<T>)
    }

    /// Decodes the arguments with a seed; if that fails, decodes them again with a deserializer that tracks its
    /// position.
    pub(crate) fn decode_seed<T, S>(&self, seed: S) -> Result<T, ToolError>
    where
        S: for<'de> DeserializeSeed<'de, Value = T> + Copy,
    {
        let text = self.text();
        if !text.trim_start().starts_with('{') {
            return Err(ToolError::new("Bad arguments: they must be an object with one member per argument"));
        }
        if let Ok(value) = seed.deserialize(&mut serde_json::Deserializer::from_str(text)) {
            return Ok(value);
        }
        let mut reader = serde_json::Deserializer::from_str(text);
        let mut track = serde_path_to_error::Track::new();
        seed.deserialize(serde_path_to_error::Deserializer::new(&mut reader, &mut track))
            .map_err(|error| argument_error(&track.path().to_string(), &error))
    }
}

impl fmt::Debug for RawArguments {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("RawArguments").field(&self.text()).finish()
    }
}

/// Creates the error about a bad argument, with which the model can correct its call.
fn argument_error(path: &str, error: &serde_json::Error) -> ToolError {
    let reason = explain::explain_json(error);
    let reason = shorten(&reason);
    if path == "." {
        return ToolError::new(format!("Bad arguments: {reason}"));
    }
    ToolError::new(format!("Bad argument `{path}`: {reason}"))
}

/// Shortens an error text that repeats a long value to its start and its end.
pub(crate) fn shorten(reason: &str) -> Cow<'_, str> {
    const MAX_BYTES: usize = 400;
    const KEEP_BYTES: usize = 150;
    if reason.len() <= MAX_BYTES {
        return reason.into();
    }
    let begin = reason.char_indices().map(|(at, _)| at).take_while(|at| *at <= KEEP_BYTES).last().unwrap_or_default();
    let end =
        reason.char_indices().map(|(at, _)| at).find(|at| *at >= reason.len() - KEEP_BYTES).unwrap_or(reason.len());
    let (begin, end) = (reason.get(..begin).unwrap_or_default(), reason.get(end..).unwrap_or_default());
    format!("{begin} [..] {end}").into()
}

/// Decodes an object and ignores its members: the arguments of a handler that takes none.
#[derive(Debug, Clone, Copy)]
pub struct NoArguments;

impl<'de> serde::Deserialize<'de> for NoArguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NoArgumentsVisitor;
        impl<'de> Visitor<'de> for NoArgumentsVisitor {
            type Value = NoArguments;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<NoArguments, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(NoArguments)
            }
        }
        deserializer.deserialize_map(NoArgumentsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use steadfast_model::JsonObject;

    use super::*;

    fn arguments(text: &str) -> RawArguments {
        RawArguments::within(text.into(), 0..text.len())
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Forecast {
        city: String,
        days: Option<u8>,
        #[serde(default)]
        stops: Vec<Stop>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Stop {
        hour: u8,
    }

    fn complaint(text: &str) -> String {
        arguments(text).decode::<Forecast>().unwrap_err().to_string()
    }

    #[test]
    fn arguments_are_decoded_from_their_range_of_the_message() {
        let message = r#"{"name":"forecast","arguments":{"city":"Ulm"}}"#;
        let start = message.find("{\"city").unwrap();
        let arguments = RawArguments::within(message.into(), start..message.len() - 1);
        let expected = Forecast { city: "Ulm".into(), days: None, stops: Vec::new() };
        assert_eq!(arguments.decode::<Forecast>().unwrap(), expected);
    }

    #[test]
    fn absent_and_null_are_an_empty_object() {
        assert!(RawArguments::none().decode::<JsonObject>().unwrap().is_empty());
        assert!(arguments("null").decode::<JsonObject>().unwrap().is_empty());
        assert!(RawArguments::none().decode::<NoArguments>().is_ok());
    }

    #[test]
    fn a_failure_names_the_argument_and_the_reason() {
        assert_eq!(
            complaint(r#"{"city":"Ulm","days":300}"#),
            "Bad argument `days`: it must be an integer from 0 to 255, and is 300"
        );
        assert_eq!(complaint(r#"{"city":7}"#), "Bad argument `city`: it must be a string, and is 7");
        assert_eq!(
            complaint(r#"{"city":"Ulm","stops":[{"hour":1},{"hour":"two"}]}"#),
            "Bad argument `stops[1].hour`: it must be an integer from 0 to 255, and is the string \"two\""
        );
        assert_eq!(complaint("{}"), "Bad arguments: `city` is missing");
    }

    #[test]
    fn a_long_value_is_not_repeated() {
        let long = format!(r#"{{"city":"Ulm","days":"{}"}}"#, "ü".repeat(100_000));
        let complaint = complaint(&long);
        assert!(complaint.len() < 500, "{}", complaint.len());
        let beginning = "Bad argument `days`: it must be an integer from 0 to 255, and is the string \"ü";
        assert!(complaint.starts_with(beginning), "{complaint}");
        assert!(complaint.contains(" [..] ") && complaint.ends_with("ü\""), "{complaint}");
    }

    #[test]
    fn arguments_that_are_not_an_object_are_rejected() {
        for text in ["[]", "7", "\"x\"", "true"] {
            assert!(complaint(text).contains("must be an object"), "{text}");
            assert!(arguments(text).decode::<NoArguments>().is_err(), "{text}");
        }
    }

    #[test]
    fn deeply_nested_unknown_members_are_ignored() {
        let deep = format!(r#"{{"city":"Ulm","more":{}{}}}"#, "[".repeat(400), "]".repeat(400));
        assert!(arguments(&deep).decode::<Forecast>().is_ok());
        assert!(arguments(&deep).decode::<JsonObject>().is_err());
    }
}
