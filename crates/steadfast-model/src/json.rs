//! JSON objects in fields of typed values, and the members of a JSON object that its Rust type has no field for.

use std::fmt;

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

/// A JSON object; its members keep the order in which they were written.
pub type JsonObject = serde_json::Map<String, serde_json::Value>;

/// The members of a JSON object that its Rust type has no field for.
///
/// Values that are relayed (content, capabilities, tools) preserve unknown members, so that the receiver gets everything that
/// the sender wrote. Without unknown members, a value of this type is only a null pointer.
///
/// ```
/// use steadfast_model::{Content, ExtraMembers};
/// let content: Content = serde_json::from_str(r#"{"type":"text","text":"hi","x-vendor":1}"#).unwrap();
/// let Content::Text(text) = &content else { panic!() };
/// assert_eq!(text.extra.as_object().unwrap()["x-vendor"], 1);
/// assert!(serde_json::to_string(&content).unwrap().contains("x-vendor"));
/// assert!(ExtraMembers::default().as_object().is_none());
/// ```
#[derive(Clone, Default, PartialEq)]
pub struct ExtraMembers(Option<Box<JsonObject>>);

impl ExtraMembers {
    /// The unknown members of the object, if there are any.
    pub fn as_object(&self) -> Option<&JsonObject> {
        self.0.as_deref()
    }

    /// True if the object has no members besides the fields of its type.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Adds or replaces an unknown member: one that the Rust type of the JSON object has no field for.
    pub fn insert(&mut self, key: impl Into<String>, value: impl Into<serde_json::Value>) {
        self.0.get_or_insert_default().insert(key.into(), value.into());
    }
}

impl From<JsonObject> for ExtraMembers {
    fn from(object: JsonObject) -> Self {
        Self((!object.is_empty()).then(|| Box::new(object)))
    }
}

impl fmt::Debug for ExtraMembers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self.as_object().into_iter().flatten()).finish()
    }
}

impl Serialize for ExtraMembers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.as_object().into_iter().flatten())
    }
}

impl<'de> Deserialize<'de> for ExtraMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        JsonObject::deserialize(deserializer).map(Self::from)
    }
}

/// Decodes a member that is present to `Some`, so that `null` and an absent member stay different.
pub(crate) fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}
