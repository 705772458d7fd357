//! JSON as the checkers and the scripted peers read it: a tree that borrows its strings from the message.
//!
//! Reading messages is a large part of the time of a run. `serde_json::Value` copies each string and hashes each key; this tree
//! does neither, and is read with the same calls.

use std::borrow::Cow;
use std::fmt;
use std::ops::Index;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::Number;

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
    Number(Number),
    String(Cow<'a, str>),
    Array(Vec<Self>),
    /// The members in their order, each key once.
    Object(Vec<(Cow<'a, str>, Self)>),
}

impl<'a> Json<'a> {
    /// Reads a text that is one JSON value.
    pub(crate) fn read(text: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }

    /// The member of an object.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        let members = self.as_object()?;
        members.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    pub(crate) fn as_object(&self) -> Option<&[(Cow<'a, str>, Self)]> {
        match self {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }

    pub(crate) fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    fn as_number(&self) -> Option<&Number> {
        match self {
            Self::Number(number) => Some(number),
            _ => None,
        }
    }

    pub(crate) fn as_u64(&self) -> Option<u64> {
        self.as_number()?.as_u64()
    }

    pub(crate) fn as_i64(&self) -> Option<i64> {
        self.as_number()?.as_i64()
    }

    pub(crate) fn as_f64(&self) -> Option<f64> {
        self.as_number()?.as_f64()
    }

    pub(crate) fn is_null(&self) -> bool {
        *self == Self::Null
    }

    pub(crate) fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }
}

/// Indexing returns the member of an object, and `null` if the value has no such member.
impl<'a> Index<&str> for Json<'a> {
    type Output = Json<'a>;

    fn index(&self, key: &str) -> &Self::Output {
        self.get(key).unwrap_or(&Json::Null)
    }
}

impl fmt::Display for Json<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(flag) => serializer.serialize_bool(*flag),
            Self::Number(number) => number.serialize(serializer),
            Self::String(text) => serializer.serialize_str(text),
            Self::Array(items) => serializer.collect_seq(items),
            Self::Object(members) => serializer.collect_map(members.iter().map(|(key, value)| (key, value))),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Json<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Self::Value, E> {
        Ok(Json::Bool(flag))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Json::Number(number.into()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Json::Number(number.into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Number::from_f64(number).map_or(Json::Null, Json::Number))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Json::String(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Json::String(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element()? {
            all.push(item);
        }
        Ok(Json::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut all: Vec<(Cow<'de, str>, Json<'de>)> = Vec::new();
        while let Some((Key(key), value)) = members.next_entry()? {
            // Of a key that occurs twice the last value counts.
            match all.iter_mut().find(|(known, _)| *known == key) {
                Some((_, known)) => *known = value,
                None => all.push((key, value)),
            }
        }
        Ok(Json::Object(all))
    }
}

/// The key of a member, borrowed unless it has escape sequences.
struct Key<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Key<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a key")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Texts of all kinds, with repeated keys, escape sequences and what is not JSON.
    const TEXTS: [&str; 12] = [
        r#"{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":[1,-2,3.5,1e3,true,null,"x"]}}"#,
        r#"{"a":1,"b":2,"a":{"c":3}}"#,
        r#"{"\u0061":"\n\"\\é","b":"é"}"#,
        "18446744073709551616",
        "-9223372036854775808",
        "[]",
        "{}",
        "\"text\"",
        "{",
        "1 2",
        "{\"a\":nul}",
        "",
    ];

    #[test]
    fn it_reads_and_writes_what_serde_json_does() {
        let deep = [vec![b'['; 127], vec![b']'; 127]].concat();
        let too_deep = [vec![b'['; 128], vec![b']'; 128]].concat();
        let texts = TEXTS.iter().map(|text| text.as_bytes()).chain([&*deep, &*too_deep, b"\"\xff\""]);
        for text in texts {
            let expected = serde_json::from_slice::<Value>(text).ok();
            let read = Json::read(text);
            assert_eq!(read.map(|json| json.to_string()), expected.map(|value| value.to_string()));
        }
    }

    #[test]
    fn members_are_found_and_what_is_missing_is_null() {
        let json = Json::read(br#"{"a":{"b":[true,"x"]},"n":-1,"a2":1.5}"#).unwrap();
        assert_eq!(json["a"]["b"].as_array().unwrap()[1].as_str(), Some("x"));
        assert_eq!((json["n"].as_i64(), json["n"].as_u64(), json["a2"].as_f64()), (Some(-1), None, Some(1.5)));
        assert!(json["b"]["c"].is_null() && json["a"].is_object());
        assert_eq!(json["a"]["b"].as_array().unwrap()[0].as_bool(), Some(true));
    }
}
