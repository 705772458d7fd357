//! The error object of a response, and the error codes of the protocol.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::capabilities::ClientCapabilities;
use crate::feature::elicit::{ElicitParams, ElicitUrlParams};
use crate::revision::Revision;

/// The error codes that JSON-RPC and MCP define.
pub mod code {
    /// The error code for bytes that are not JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// The error code for JSON that is not a JSON-RPC message, or is a message that must not be sent in this state.
    pub const INVALID_REQUEST: i64 = -32600;
    /// The error code for a method that does not exist, or belongs to a capability that the receiver has not declared.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The error code for parameters that do not fit the method.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The error code for a request that its receiver failed to process.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// The error code for a resource that does not exist, before 2026-07-28; since then it is [`INVALID_PARAMS`].
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// The error code for an HTTP request whose headers and body disagree (since 2026-07-28).
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The error code for a request that needs a capability that the client did not declare (since 2026-07-28).
    pub const MISSING_CAPABILITY: i64 = -32021;
    /// The error code for a request that names a revision that the server does not support (since 2026-07-28).
    pub const UNSUPPORTED_VERSION: i64 = -32022;
    /// The error code for a request that needs the user to visit a URL first (2025-11-25).
    pub const URL_ELICITATION_REQUIRED: i64 = -32042;
}

/// A JSON-RPC error object.
///
/// ```
/// use steadfast_model::{ErrorObject, code};
/// let error: ErrorObject = serde_json::from_str(r#"{"code":-32601,"message":"no such method","x":1}"#).unwrap();
/// assert_eq!(error.code, code::METHOD_NOT_FOUND);
/// assert_eq!(error.to_string(), "no such method (-32601)");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ErrorObject {
    /// The JSON-RPC error code; [`code`] has those that JSON-RPC and MCP define. Peers may use any other integer as
    /// an error code.
    pub code: i64,
    /// What went wrong, in one sentence for people.
    pub message: Cow<'static, str>,
    /// Details of the error, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl ErrorObject {
    /// A JSON-RPC error object with this code and message, without `data`.
    pub fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Sets the `data` of this JSON-RPC error object.
    pub fn with_data(mut self, data: impl Into<Value>) -> Self {
        self.data = Some(data.into());
        self
    }

    /// The error for bytes that are not JSON.
    pub fn parse_error(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::PARSE_ERROR, message)
    }

    /// The error for a message that is valid JSON, but is not a message that may be sent in this state.
    pub fn invalid_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::INVALID_REQUEST, message)
    }

    /// The error for a method that does not exist.
    pub fn method_not_found(method: &str) -> Self {
        Self::new(code::METHOD_NOT_FOUND, format!("method not found: {}", excerpt(method)))
    }

    /// The error for parameters that do not fit the method.
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }

    /// The error for a request that its receiver failed to process.
    pub fn internal(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::INTERNAL_ERROR, message)
    }

    /// The error for a resource that does not exist. [`crate::wire::write_error`] replaces the error code where the
    /// revision has another one for a missing resource.
    pub fn resource_not_found(uri: &str) -> Self {
        Self::new(code::RESOURCE_NOT_FOUND, format!("resource not found: {}", excerpt(uri)))
            .with_data(json!({ "uri": uri }))
    }

    /// The error for an HTTP request whose headers and body disagree.
    pub fn header_mismatch(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::HEADER_MISMATCH, message)
    }

    /// The error for a request that needs capabilities that the client did not declare.
    pub fn missing_capability(message: impl Into<Cow<'static, str>>, required: &ClientCapabilities) -> Self {
        let required = serde_json::to_value(required).unwrap_or_default();
        Self::new(code::MISSING_CAPABILITY, message).with_data(json!({ "requiredCapabilities": required }))
    }

    /// The error for a request that names a revision that the server does not support.
    pub fn unsupported_version(requested: &str, supported: &[Revision]) -> Self {
        let requested = &*excerpt(requested);
        Self::new(code::UNSUPPORTED_VERSION, format!("unsupported protocol version: {requested}"))
            .with_data(json!({ "requested": requested, "supported": supported }))
    }

    /// The error for a request that needs the user to visit these URLs first (2025-11-25).
    pub fn url_elicitation_required(message: impl Into<Cow<'static, str>>, elicitations: Vec<ElicitUrlParams>) -> Self {
        let elicitations: Vec<_> = elicitations.into_iter().map(ElicitParams::Url).collect();
        let elicitations = serde_json::to_value(elicitations).unwrap_or_default();
        Self::new(code::URL_ELICITATION_REQUIRED, message).with_data(json!({ "elicitations": elicitations }))
    }

    /// True if this error says that a resource does not exist, in the form of any revision.
    pub fn is_resource_not_found(&self) -> bool {
        let names_uri = || self.data.as_ref().is_some_and(|data| data.get("uri").is_some());
        self.code == code::RESOURCE_NOT_FOUND || (self.code == code::INVALID_PARAMS && names_uri())
    }
}

impl fmt::Display for ErrorObject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for ErrorObject {}

/// The beginning of a text that a peer chose, short enough for an error message or a log line.
pub fn excerpt(text: &str) -> Cow<'_, str> {
    const LONGEST: usize = 100;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_resource_is_recognised_in_both_forms() {
        let old = ErrorObject::resource_not_found("file:///a");
        let new = ErrorObject { code: code::INVALID_PARAMS, ..old.clone() };
        assert!(old.is_resource_not_found() && new.is_resource_not_found());
        assert!(!ErrorObject::invalid_params("no such tool").is_resource_not_found());
    }

    #[test]
    fn an_unsupported_version_names_the_supported_ones() {
        let error = ErrorObject::unsupported_version("1.0.0", &[Revision::V2026_07_28]);
        assert_eq!(error.data.unwrap(), json!({"requested": "1.0.0", "supported": ["2026-07-28"]}));
    }

    #[test]
    fn unknown_error_codes_are_preserved() {
        let error: ErrorObject = serde_json::from_str(r#"{"code":1,"message":"","data":null}"#).unwrap();
        assert_eq!(error.code, 1);
        assert!(serde_json::from_str::<ErrorObject>(r#"{"message":"no code"}"#).is_err());
    }
}
