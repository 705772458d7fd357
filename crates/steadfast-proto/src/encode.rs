//! Encodes messages.
//!
//! A result is encoded directly into the message that is sent: with one allocation, and without a JSON value in between. An
//! [`EncodedResponse`] can only be created in this module, so that everything that is sent as a response is a valid response.

use serde::Serialize;
use steadfast_model::wire::{self, Encode, PerMessageMembers};
use steadfast_model::{ErrorObject, Method, RequestId, Revision};

/// An encoded response to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedResponse(Vec<u8>);

impl EncodedResponse {
    /// A response whose result the closure `write` appends. If `write` fails, the response is an internal error with the cause.
    pub fn result<E: std::fmt::Display>(id: &RequestId, write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Self {
        Self::result_in(Vec::with_capacity(256), id, write)
    }

    /// Like [`EncodedResponse::result`], but encodes the response into an existing buffer.
    pub fn result_in<E: std::fmt::Display>(
        buffer: Vec<u8>,
        id: &RequestId,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Self {
        let mut body = buffer;
        body.clear();
        body.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        id.write_json(&mut body);
        body.extend_from_slice(b",\"result\":");
        match write(&mut body) {
            Ok(()) => {
                body.push(b'}');
                Self(body)
            }
            Err(error) => Self::error(id, &ErrorObject::internal(format!("the result could not be encoded: {error}"))),
        }
    }

    /// A response with a result that serde encodes.
    pub fn serialized(id: &RequestId, result: &impl Serialize) -> Self {
        Self::result(id, |out| serde_json::to_writer(out, result))
    }

    /// An encoded response with a JSON-RPC error in place of a result.
    pub fn error(id: &RequestId, error: &ErrorObject) -> Self {
        let mut body = Vec::with_capacity(160);
        body.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        id.write_json(&mut body);
        body.push(b',');
        write_error(error, &mut body);
        body.push(b'}');
        Self(body)
    }

    /// The number of bytes of the response.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Always false: an encoded response has at least one byte.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes of the encoded response, without a delimiter such as a newline.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// An error response without an id. JSON-RPC writes `"id":null` into such a response; since 2025-11-25 MCP leaves the id out.
pub fn error_without_id(error: &ErrorObject, null_id: bool) -> Vec<u8> {
    let mut body = Vec::with_capacity(160);
    body.extend_from_slice(b"{\"jsonrpc\":\"2.0\",");
    if null_id {
        body.extend_from_slice(b"\"id\":null,");
    }
    write_error(error, &mut body);
    body.push(b'}');
    body
}

/// Encodes a request of this side.
pub(crate) fn request(id: &RequestId, method: &str, params: Option<&str>) -> Vec<u8> {
    let mut body = Vec::with_capacity(64 + method.len() + params.map_or(0, str::len));
    body.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    id.write_json(&mut body);
    write_method(method, params, &mut body);
    body
}

/// Encodes a notification of this side.
pub(crate) fn notification(method: &str, params: Option<&str>) -> Vec<u8> {
    let mut body = Vec::with_capacity(48 + method.len() + params.map_or(0, str::len));
    body.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
    write_method(method, params, &mut body);
    body
}

/// Encodes a notification with parameters for the revision.
pub(crate) fn notification_of(revision: Revision, method: Method, params: &impl Encode) -> Vec<u8> {
    // These types have string keys and finite numbers, so they can be encoded.
    let text = wire::params_text(revision, params, &PerMessageMembers::none()).unwrap_or_default();
    notification(method.name(), Some(if text.is_empty() { "{}" } else { &text }))
}

/// Encodes several responses as one array.
pub(crate) fn batch(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut body = Vec::with_capacity(2 + parts.iter().map(|part| part.len() + 1).sum::<usize>());
    body.push(b'[');
    for (place, part) in parts.iter().enumerate() {
        if place > 0 {
            body.push(b',');
        }
        body.extend_from_slice(part);
    }
    body.push(b']');
    body
}

fn write_method(method: &str, params: Option<&str>, body: &mut Vec<u8>) {
    // Names of methods need no escapes: those of the table have none, and those of a vendor are checked.
    body.extend_from_slice(b",\"method\":\"");
    body.extend_from_slice(method.as_bytes());
    body.push(b'"');
    if let Some(params) = params {
        body.extend_from_slice(b",\"params\":");
        body.extend_from_slice(params.as_bytes());
    }
    body.push(b'}');
}

fn write_error(error: &ErrorObject, body: &mut Vec<u8>) {
    body.extend_from_slice(b"\"error\":");
    let start = body.len();
    if serde_json::to_writer(&mut *body, error).is_err() {
        // Only the data of an error can fail to serialize; an error without it is better than no response.
        body.truncate(start);
        body.extend_from_slice(b"{\"code\":-32603,\"message\":\"internal error\"}");
    }
}
