//! Typed values from named strings: the arguments of a prompt, the variables of a resource template.
//!
//! On the wire each argument and each variable is a string. The string of a prompt argument or template variable is
//! decoded into the type of the handler's parameter: a number, a bool, a variant of an enum by its name, and JSON for
//! a list or an object. An empty string is `None` for an `Option`: clients send an empty string for a form field that
//! was not filled in.

use std::collections::{BTreeMap, btree_map};
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;

use super::explain;
use crate::error::Error;
use crate::server::tool::arguments::shorten;
use crate::server::tool::parameters::ParameterTuple;

/// Strings by name.
pub(crate) type NamedStrings = BTreeMap<String, String>;

/// Decodes all named strings into one value, such as a struct.
pub(crate) fn decode<T: DeserializeOwned>(strings: &NamedStrings) -> Result<T, Error> {
    T::deserialize(NamedStringsDeserializer(strings)).map_err(NamedStringDecodeError::into_error)
}

/// Decodes each named string into its element of a tuple of parameters.
pub(crate) fn decode_parameters<P: ParameterTuple>(strings: &NamedStrings, names: &[&'static str]) -> Result<P, Error> {
    P::read(names, NamedStringsAccess::of(strings)).map_err(NamedStringDecodeError::into_error)
}

/// Creates the error -32602 (invalid params) for a required argument that is missing.
pub(crate) fn missing(name: &str) -> Error {
    NamedStringDecodeError::custom_text(format!("`{name}` is missing")).into_error()
}

/// A decoding error: what is wrong, and with which argument.
#[derive(Debug)]
struct NamedStringDecodeError {
    name: Option<String>,
    reason: String,
}

impl NamedStringDecodeError {
    fn custom_text(reason: String) -> Self {
        Self { name: None, reason }
    }

    fn about(mut self, name: &str) -> Self {
        self.name.get_or_insert_with(|| name.to_owned());
        self
    }

    fn into_error(self) -> Error {
        Error::invalid_params(self.to_string())
    }
}

impl fmt::Display for NamedStringDecodeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = explain::explain_serde(&self.reason);
        let reason = shorten(&reason);
        match &self.name {
            Some(name) => write!(formatter, "Bad argument `{}`: {reason}", shorten(name)),
            None => write!(formatter, "Bad arguments: {reason}"),
        }
    }
}

impl std::error::Error for NamedStringDecodeError {}

impl de::Error for NamedStringDecodeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::custom_text(message.to_string())
    }

    fn missing_field(field: &'static str) -> Self {
        Self::custom_text(format!("`{field}` is missing"))
    }
}

/// All named strings, as the object that a struct is decoded from.
struct NamedStringsDeserializer<'de>(&'de NamedStrings);

impl<'de> Deserializer<'de> for NamedStringsDeserializer<'de> {
    type Error = NamedStringDecodeError;
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NamedStringDecodeError> {
        visitor.visit_map(NamedStringsAccess::of(self.0))
    }
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NamedStringDecodeError> {
        visitor.visit_some(self)
    }
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, NamedStringDecodeError> {
        visitor.visit_newtype_struct(self)
    }
    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NamedStringDecodeError> {
        visitor.visit_unit()
    }
    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit_struct
        seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

struct NamedStringsAccess<'de> {
    rest: btree_map::Iter<'de, String, String>,
    current: Option<(&'de str, &'de str)>,
}

impl<'de> NamedStringsAccess<'de> {
    fn of(strings: &'de NamedStrings) -> Self {
        Self { rest: strings.iter(), current: None }
    }
}

impl<'de> MapAccess<'de> for NamedStringsAccess<'de> {
    type Error = NamedStringDecodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, NamedStringDecodeError> {
        let Some((name, text)) = self.rest.next() else { return Ok(None) };
        self.current = Some((name, text));
        let name: StrDeserializer<'_, NamedStringDecodeError> = name.as_str().into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, NamedStringDecodeError> {
        let (name, text) = self.current.take().unwrap_or_default();
        seed.deserialize(StringValueDeserializer(text)).map_err(|complaint| complaint.about(name))
    }
}

/// One string, decoded as the requested type.
struct StringValueDeserializer<'de>(&'de str);

impl<'de> StringValueDeserializer<'de> {
    fn mismatch<T>(&self, expected: &dyn de::Expected) -> Result<T, NamedStringDecodeError> {
        Err(de::Error::invalid_value(Unexpected::Str(self.0), expected))
    }

    /// Decodes an integer. The requested type checks whether the integer is in range.
    fn integer<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NamedStringDecodeError> {
        let text = self.0.trim();
        if let Ok(number) = text.parse::<u64>() {
            visitor.visit_u64(number)
        } else if let Ok(number) = text.parse::<i64>() {
            visitor.visit_i64(number)
        } else if let Ok(number) = text.parse::<u128>() {
            visitor.visit_u128(number)
        } else if let Ok(number) = text.parse::<i128>() {
            visitor.visit_i128(number)
        } else {
            self.mismatch(&visitor)
        }
    }

    fn float<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NamedStringDecodeError> {
        match self.0.trim().parse() {
            Ok(number) => visitor.visit_f64(number),
            Err(_) => self.mismatch(&visitor),
        }
    }

    /// Decodes a sequence, map or struct from this string, which must be JSON.
    fn json<T>(
        self,
        read: impl FnOnce(&mut JsonStrDeserializer<'de>) -> serde_json::Result<T>,
    ) -> Result<T, NamedStringDecodeError> {
        let mut reader = serde_json::Deserializer::from_str(self.0);
        let value = read(&mut reader).and_then(|value| reader.end().map(|()| value));
        value.map_err(|error| {
            // If the text is not JSON, the position helps.
            let reason = if error.is_data() { explain::explain_json(&error) } else { error.to_string() };
            NamedStringDecodeError::custom_text(format!("the JSON text is not valid: {reason}"))
        })
    }
}

type JsonStrDeserializer<'de> = serde_json::Deserializer<serde_json::de::StrRead<'de>>;

/// Implements methods of `Deserializer` by a call of `integer` or `float`.
macro_rules! decode_with {
    ($how:ident: $($method:ident)+) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NamedStringDecodeError> {
            self.$how(visitor)
        }
    )+};
}

impl<'de> Deserializer<'de> for StringValueDeserializer<'de> {
    type Error = NamedStringDecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NamedStringDecodeError> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NamedStringDecodeError> {
        match self.0.trim() {
            "true" => visitor.visit_bool(true),
            "false" => visitor.visit_bool(false),
            _ => self.mismatch(&"`true` or `false`"),
        }
    }

    decode_with!(integer: deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128);
    decode_with!(integer: deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128);
    decode_with!(float: deserialize_f32 deserialize_f64);

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NamedStringDecodeError> {
        if self.0.is_empty() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NamedStringDecodeError> {
        if self.0.is_empty() { visitor.visit_unit() } else { self.mismatch(&visitor) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, NamedStringDecodeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NamedStringDecodeError> {
        // A variant with fields is a JSON object; one without is its name.
        if self.0.trim_start().starts_with('{') {
            return self.json(|reader| reader.deserialize_enum(name, variants, visitor));
        }
        let text: StrDeserializer<'_, NamedStringDecodeError> = self.0.into_deserializer();
        visitor.visit_enum(text)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NamedStringDecodeError> {
        self.json(|reader| reader.deserialize_seq(visitor))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, NamedStringDecodeError> {
        self.json(|reader| reader.deserialize_tuple(length, visitor))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NamedStringDecodeError> {
        self.json(|reader| reader.deserialize_map(visitor))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NamedStringDecodeError> {
        self.json(|reader| reader.deserialize_struct(name, fields, visitor))
    }

    forward_to_deserialize_any! { char str string bytes byte_buf unit_struct tuple_struct identifier ignored_any }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use steadfast_model::JsonObject;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Trip {
        city: String,
        days: u8,
        #[serde(default)]
        by_night: bool,
        unit: Option<Unit>,
        budget: Option<f64>,
        #[serde(default)]
        stops: Vec<String>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Unit {
        Celsius,
        Fahrenheit,
    }

    fn strings<const N: usize>(members: [(&str, &str); N]) -> NamedStrings {
        members.map(|(name, text)| (name.to_owned(), text.to_owned())).into()
    }

    fn complaint<const N: usize>(members: [(&str, &str); N]) -> String {
        let complete = [("city", "Ulm"), ("days", "3")];
        let mut all = strings(complete);
        all.extend(strings(members));
        decode::<Trip>(&all).unwrap_err().object().message.clone().into_owned()
    }

    #[test]
    fn each_string_is_decoded_as_its_type() {
        let all = strings([
            ("city", "Ulm"),
            ("days", " 3 "),
            ("by_night", "true"),
            ("unit", "celsius"),
            ("budget", "1e3"),
            ("stops", r#"["Bonn","Kiel"]"#),
            ("more", "is ignored"),
        ]);
        let expected = Trip {
            city: "Ulm".into(),
            days: 3,
            by_night: true,
            unit: Some(Unit::Celsius),
            budget: Some(1000.0),
            stops: vec!["Bonn".into(), "Kiel".into()],
        };
        assert_eq!(decode::<Trip>(&all).unwrap(), expected);
    }

    #[test]
    fn an_empty_string_is_none() {
        let trip = decode::<Trip>(&strings([("city", ""), ("days", "3"), ("unit", ""), ("budget", "")])).unwrap();
        assert_eq!((trip.city.as_str(), trip.unit, trip.budget), ("", None, None));
    }

    #[test]
    fn an_invalid_argument_is_named() {
        let cases = [
            ("days", "many", "Bad argument `days`: it must be an integer from 0 to 255, and is the string \"many\""),
            ("days", "300", "Bad argument `days`: it must be an integer from 0 to 255, and is 300"),
            ("by_night", "yes", "Bad argument `by_night`: it must be `true` or `false`, and is the string \"yes\""),
            ("unit", "kelvin", "Bad argument `unit`: it must be `celsius` or `fahrenheit`, and is `kelvin`"),
            ("budget", "much", "Bad argument `budget`: it must be a number, and is the string \"much\""),
        ];
        for (name, text, expected) in cases {
            assert_eq!(complaint([(name, text)]), expected);
        }
        assert!(complaint([("stops", "Bonn")]).starts_with("Bad argument `stops`: the JSON text is not valid: "));
        assert_eq!(
            complaint([("stops", "[7]")]),
            "Bad argument `stops`: the JSON text is not valid: it must be a string, and is 7"
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = decode::<Trip>(&strings([("days", "3")])).unwrap_err();
        assert_eq!(error.object().message, "Bad arguments: `city` is missing");
        let error = decode_parameters::<(String, u8)>(&strings([("days", "3")]), &["city", "days"]).unwrap_err();
        assert_eq!(error.object().message, "Bad arguments: `city` is missing");
        assert_eq!(missing("city").object(), error.object());
    }

    #[test]
    fn a_tuple_is_decoded_by_names() {
        let all = strings([("days", "3"), ("city", "Ulm"), ("more", "")]);
        let read = decode_parameters::<(String, i16, Option<u8>)>(&all, &["city", "days", "hour"]).unwrap();
        assert_eq!(read, ("Ulm".to_owned(), 3, None));
    }

    #[test]
    fn a_map_has_all_strings() {
        let all = strings([("days", "3"), ("city", "Ulm")]);
        assert_eq!(decode::<NamedStrings>(&all).unwrap(), all);
        assert_eq!(decode::<JsonObject>(&all).unwrap()["days"], "3");
    }

    #[test]
    fn a_long_value_is_not_repeated() {
        let long = "x".repeat(100_000);
        assert!(complaint([("days", long.as_str())]).len() < 500);
    }
}
