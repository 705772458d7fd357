//! `_meta`: the metadata of a message, and the keys that the protocol defines.

mod name;

use std::fmt;
use std::ops::{Deref, DerefMut};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::id::RequestId;
use crate::capabilities::ClientCapabilities;
use crate::feature::logging::LoggingLevel;
use crate::implementation::Implementation;
use crate::json::JsonObject;

pub use name::{InvalidMetaKey, check_extension, check_key, is_reserved};

/// The keys of `_meta` that the protocol defines.
pub mod key {
    /// The `_meta` key of the token under which a request's progress is reported.
    pub const PROGRESS_TOKEN: &str = "progressToken";
    /// The key under which a request names its protocol revision (since 2026-07-28).
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// The `_meta` key of the name and version of the client that sent the request.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// The `_meta` key of the capabilities that the client declares with this request.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// The `_meta` key of the minimum level of the log messages that the client wants about this request.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// The `_meta` key of the id of the `subscriptions/listen` request that a notification belongs to.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// The `_meta` key of the name and version of the server that sent the result.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// The `_meta` key of the task that a message belongs to (2025-11-25).
    pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
    /// W3C trace context: the trace that a request belongs to.
    pub const TRACEPARENT: &str = "traceparent";
    /// W3C trace context: data that tracing systems add about the trace.
    pub const TRACESTATE: &str = "tracestate";
    /// W3C baggage.
    pub const BAGGAGE: &str = "baggage";
}

/// A `_meta` object: an ordered map with typed access to the protocol's own keys.
///
/// `Meta` dereferences to the map of all entries of `_meta`, for access to keys that the protocol does not define. A
/// `_meta` key whose value has the wrong type reads as absent: `_meta` never makes a message unreadable.
///
/// ```
/// use steadfast_model::{Meta, ProgressToken, Revision};
/// let mut meta = Meta::new();
/// meta.set_progress_token(&ProgressToken::from(7));
/// meta.insert("com.example/colour".into(), "red".into());
/// assert_eq!(meta.progress_token(), Some(ProgressToken::from(7)));
/// assert_eq!(meta.protocol_version(), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Meta(JsonObject);

impl Meta {
    /// An empty `_meta`.
    pub fn new() -> Self {
        Self::default()
    }

    /// The token under which progress is reported. A progress token that is an integer beyond 64 bits is not exact here:
    /// [`RequestMeta`] reads the token of a request exactly.
    pub fn progress_token(&self) -> Option<ProgressToken> {
        self.typed(key::PROGRESS_TOKEN)
    }

    /// The protocol revision that the request is written in.
    pub fn protocol_version(&self) -> Option<&str> {
        self.text(key::PROTOCOL_VERSION)
    }

    /// The name and version of the client that sent the request.
    pub fn client_info(&self) -> Option<Implementation> {
        self.typed(key::CLIENT_INFO)
    }

    /// The capabilities that the client declares with this request.
    pub fn client_capabilities(&self) -> Option<ClientCapabilities> {
        self.typed(key::CLIENT_CAPABILITIES)
    }

    /// The minimum level of the log messages that the client wants about this request.
    pub fn log_level(&self) -> Option<LoggingLevel> {
        self.typed(key::LOG_LEVEL)
    }

    /// The id of the `subscriptions/listen` request that a notification belongs to.
    pub fn subscription_id(&self) -> Option<RequestId> {
        self.typed(key::SUBSCRIPTION_ID)
    }

    /// The name and version of the server that sent the result.
    pub fn server_info(&self) -> Option<Implementation> {
        self.typed(key::SERVER_INFO)
    }

    /// The W3C trace that the request belongs to.
    pub fn traceparent(&self) -> Option<&str> {
        self.text(key::TRACEPARENT)
    }

    /// Asks for progress notifications with this token.
    pub fn set_progress_token(&mut self, token: &ProgressToken) {
        self.set(key::PROGRESS_TOKEN, token);
    }

    /// Sets the protocol revision that the request is written in.
    pub fn set_protocol_version(&mut self, version: &str) {
        self.set(key::PROTOCOL_VERSION, version);
    }

    /// Sets the name and version of the client.
    pub fn set_client_info(&mut self, info: &Implementation) {
        self.set(key::CLIENT_INFO, info);
    }

    /// Sets the capabilities that the client declares with the request.
    pub fn set_client_capabilities(&mut self, capabilities: &ClientCapabilities) {
        self.set(key::CLIENT_CAPABILITIES, capabilities);
    }

    /// Asks the server for log messages of this level and above.
    pub fn set_log_level(&mut self, level: LoggingLevel) {
        self.set(key::LOG_LEVEL, &level);
    }

    /// Sets the id of the subscription that a notification belongs to.
    pub fn set_subscription_id(&mut self, id: &RequestId) {
        self.set(key::SUBSCRIPTION_ID, id);
    }

    /// Sets the name and version of the server.
    pub fn set_server_info(&mut self, info: &Implementation) {
        self.set(key::SERVER_INFO, info);
    }

    /// Sets the W3C trace that the request belongs to.
    pub fn set_traceparent(&mut self, traceparent: &str) {
        self.set(key::TRACEPARENT, traceparent);
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.as_str()
    }

    fn typed<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        T::deserialize(self.0.get(key)?).ok()
    }

    fn set<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) {
        // None of the protocol's own types can fail to become a value.
        self.0.insert(key.to_owned(), serde_json::to_value(value).unwrap_or(Value::Null));
    }
}

impl Deref for Meta {
    type Target = JsonObject;

    fn deref(&self) -> &JsonObject {
        &self.0
    }
}

impl DerefMut for Meta {
    fn deref_mut(&mut self) -> &mut JsonObject {
        &mut self.0
    }
}

impl From<JsonObject> for Meta {
    fn from(object: JsonObject) -> Self {
        Self(object)
    }
}

impl From<Meta> for JsonObject {
    fn from(meta: Meta) -> Self {
        meta.0
    }
}

/// The part of a request's `_meta` that the receiver of the request needs, decoded without building a map.
///
/// ```
/// use steadfast_model::RequestMeta;
/// let meta: RequestMeta = serde_json::from_str(
///     r#"{"progressToken":18446744073709551616,"io.modelcontextprotocol/protocolVersion":"2026-07-28","x":[1]}"#,
/// ).unwrap();
/// assert_eq!(meta.progress_token.unwrap().to_string(), "18446744073709551616");
/// assert_eq!(meta.protocol_version.as_deref(), Some("2026-07-28"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct RequestMeta {
    /// The token under which progress is reported, exactly as the peer wrote it.
    #[serde(default, rename = "progressToken")]
    pub progress_token: Option<ProgressToken>,
    /// The protocol revision that the request is written in.
    #[serde(default, rename = "io.modelcontextprotocol/protocolVersion")]
    pub protocol_version: Option<String>,
    /// The name and version of the client that sent the request.
    #[serde(default, rename = "io.modelcontextprotocol/clientInfo")]
    pub client_info: Option<Implementation>,
    /// The capabilities that the client declares with the request.
    #[serde(default, rename = "io.modelcontextprotocol/clientCapabilities")]
    pub client_capabilities: Option<ClientCapabilities>,
    /// The minimum level of the log messages that the client wants about this request.
    #[serde(default, rename = "io.modelcontextprotocol/logLevel")]
    pub log_level: Option<LoggingLevel>,
    /// The W3C trace (`traceparent`) that the request belongs to.
    #[serde(default)]
    pub traceparent: Option<String>,
}

/// The token that connects progress notifications to a request: a string or an integer, as exact as a [`RequestId`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProgressToken(RequestId);

impl ProgressToken {
    /// The string or integer of the token.
    pub fn as_id(&self) -> &RequestId {
        &self.0
    }

    /// The string or integer of the token.
    pub fn into_id(self) -> RequestId {
        self.0
    }
}

impl<T: Into<RequestId>> From<T> for ProgressToken {
    fn from(token: T) -> Self {
        Self(token.into())
    }
}

impl fmt::Display for ProgressToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_keys_are_read_back() {
        let mut meta = Meta::new();
        let info = Implementation::new("client", "1");
        meta.set_client_info(&info);
        meta.set_log_level(LoggingLevel::Warning);
        meta.set_subscription_id(&RequestId::from("s-1"));
        meta.set_protocol_version("2026-07-28");
        assert_eq!(meta.client_info(), Some(info));
        assert_eq!(meta.log_level(), Some(LoggingLevel::Warning));
        assert_eq!(meta.subscription_id(), Some(RequestId::from("s-1")));
        assert_eq!(meta.protocol_version(), Some("2026-07-28"));
    }

    #[test]
    fn a_key_of_the_wrong_type_reads_as_absent() {
        let meta: Meta = serde_json::from_str(r#"{"progressToken":{},"traceparent":7}"#).unwrap();
        assert_eq!(meta.progress_token(), None);
        assert_eq!(meta.traceparent(), None);
    }

    #[test]
    fn numbers_are_relayed_exactly() {
        let text = r#"{"a":123456789.12345679,"b":5e-324,"c":9007199254740993,"d":0.1}"#;
        let meta: Meta = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&meta).unwrap(), text);
    }

    #[test]
    fn members_keep_their_order() {
        let text = r#"{"z":1,"a":2,"m":3}"#;
        let meta: Meta = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&meta).unwrap(), text);
    }
}
