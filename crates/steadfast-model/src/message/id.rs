//! Request ids: stored and compared exactly.
//!
//! JSON-RPC allows a string or an integer as a request id. `7` and `"7"` are different ids, an integer may be larger than any
//! machine type, and two spellings of one string (`"A"`, `"\u0041"`) are the same id. A [`RequestId`] therefore keeps the
//! canonical JSON text of what the peer wrote, with the common case, an integer that fits 64 bits, kept without an allocation.

use std::fmt;
use std::sync::Arc;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;

/// The id of a request: a string or an integer, in canonical form.
///
/// ```
/// use steadfast_model::RequestId;
/// let number = RequestId::from(7);
/// let text = RequestId::from("7");
/// assert_ne!(number, text);
/// assert_eq!(number.to_string(), "7");
/// assert_eq!(text.to_string(), "\"7\"");
/// // Larger than any machine integer, and still exact.
/// let large = RequestId::parse("18446744073709551616").unwrap();
/// assert_eq!(large.to_string(), "18446744073709551616");
/// assert!(RequestId::parse("1.5").is_none());
/// assert!(RequestId::parse("null").is_none());
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(RequestIdRepr);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum RequestIdRepr {
    Integer(i64),
    /// Canonical JSON text: digits of an integer beyond 64 bits, or a quoted string.
    Text(Arc<str>),
}

impl RequestId {
    /// Reads an id from its JSON text. `None` if the text is not a JSON string or integer.
    pub fn parse(json: &str) -> Option<Self> {
        match json.as_bytes().first()? {
            b'"' => {
                let text: std::borrow::Cow<'_, str> = serde_json::from_str::<CowStr<'_>>(json).ok()?.0;
                Some(Self::from(&*text))
            }
            b'-' | b'0'..=b'9' => Self::parse_integer(json),
            _ => None,
        }
    }

    fn parse_integer(json: &str) -> Option<Self> {
        if let Ok(value) = json.parse::<i64>() {
            // `i64::from_str` takes "007", which JSON does not.
            let canonical_length = json.len() == decimal_length(value) || json == "-0";
            return canonical_length.then_some(Self(RequestIdRepr::Integer(value)));
        }
        let digits = json.strip_prefix('-').unwrap_or(json);
        let canonical = !digits.is_empty() && !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
        canonical.then(|| Self(RequestIdRepr::Text(json.into())))
    }

    /// The request id as an integer, if it is one that fits 64 bits.
    pub fn as_integer(&self) -> Option<i64> {
        match self.0 {
            RequestIdRepr::Integer(value) => Some(value),
            RequestIdRepr::Text(_) => None,
        }
    }

    /// Appends the canonical JSON text of the request id to the buffer.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match &self.0 {
            RequestIdRepr::Integer(value) => {
                let mut digits = [0_u8; 20];
                out.extend_from_slice(format_integer(*value, &mut digits));
            }
            RequestIdRepr::Text(text) => out.extend_from_slice(text.as_bytes()),
        }
    }

    /// The number of bytes that [`RequestId::write_json`] appends.
    pub fn json_length(&self) -> usize {
        match &self.0 {
            RequestIdRepr::Integer(value) => decimal_length(*value),
            RequestIdRepr::Text(text) => text.len(),
        }
    }
}

struct CowStr<'a>(std::borrow::Cow<'a, str>);

impl<'de> Deserialize<'de> for CowStr<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = CowStr<'de>;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a string")
            }
            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(CowStr(text.into()))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(CowStr(text.to_owned().into()))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

fn decimal_length(value: i64) -> usize {
    let sign = usize::from(value < 0);
    sign + value.unsigned_abs().checked_ilog10().map_or(1, |log| log as usize + 1)
}

fn format_integer(value: i64, buffer: &mut [u8; 20]) -> &[u8] {
    let mut at = buffer.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        // The remainder of a division by ten fits a byte.
        #[allow(clippy::cast_possible_truncation)]
        let digit = (rest % 10) as u8;
        buffer[at] = b'0' + digit;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        at -= 1;
        buffer[at] = b'-';
    }
    &buffer[at..]
}

impl From<i64> for RequestId {
    fn from(value: i64) -> Self {
        Self(RequestIdRepr::Integer(value))
    }
}

impl From<i32> for RequestId {
    fn from(value: i32) -> Self {
        Self(RequestIdRepr::Integer(value.into()))
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> Self {
        Self(RequestIdRepr::Text(serde_json::Value::from(text).to_string().into()))
    }
}

impl From<String> for RequestId {
    fn from(text: String) -> Self {
        Self::from(&*text)
    }
}

/// The canonical JSON text of the request id: a string id is shown with its quotes, so that `7` and `"7"` look different in a
/// log.
impl fmt::Display for RequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            RequestIdRepr::Integer(value) => value.fmt(formatter),
            RequestIdRepr::Text(text) => formatter.write_str(text),
        }
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RequestId({self})")
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            RequestIdRepr::Integer(value) => serializer.serialize_i64(*value),
            RequestIdRepr::Text(text) => {
                let raw: &RawValue = serde_json::from_str(text).map_err(serde::ser::Error::custom)?;
                raw.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(raw.get())
            .ok_or_else(|| de::Error::custom("a request id or progress token must be a string or an integer"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_with_different_escapes_are_one_id() {
        assert_eq!(RequestId::parse(r#""A""#), RequestId::parse(r#""\u0041""#));
        assert_eq!(RequestId::parse(r#""a\/b""#), RequestId::parse(r#""a/b""#));
    }

    #[test]
    fn integers_beyond_the_machine_stay_exact_and_apart() {
        for text in ["9007199254740993", "9223372036854775808", "18446744073709551616", "-9223372036854775809"] {
            let id = RequestId::parse(text).unwrap();
            assert_eq!(id.to_string(), text);
            let mut out = Vec::new();
            id.write_json(&mut out);
            assert_eq!(out, text.as_bytes());
            assert_eq!(id.json_length(), text.len());
            assert_ne!(id, RequestId::from(text));
        }
    }

    #[test]
    fn extremes_are_written_as_they_were_read() {
        for value in [0, 9, 10, -1, -10, i64::MAX, i64::MIN] {
            let id = RequestId::from(value);
            let mut out = Vec::new();
            id.write_json(&mut out);
            assert_eq!(out, value.to_string().as_bytes());
            assert_eq!(id.json_length(), out.len());
        }
    }

    #[test]
    fn other_values_are_not_ids() {
        for text in ["1.5", "1.0", "1e3", "null", "true", "{}", "[]", "007", "-", "", "\"open"] {
            assert_eq!(RequestId::parse(text), None, "{text}");
        }
    }

    #[test]
    fn serde_keeps_large_integers() {
        let id: RequestId = serde_json::from_str("18446744073709551616").unwrap();
        assert_eq!(serde_json::to_string(&id).unwrap(), "18446744073709551616");
    }
}
