//! Encodes parameters, results and errors as JSON for one protocol revision.
//!
//! The types of `steadfast_model` belong to no protocol revision. A value is encoded for one revision in a single
//! pass into the buffer: members that the revision requires are added (`resultType`, `_meta` entries, `ttlMs`),
//! members that the revision does not have are left out or converted (a resource link becomes text). Decoding needs
//! no revision: the types read messages of any revision. Whether a message may be sent at all is decided in
//! [`crate::method`].
//!
//! ```
//! use steadfast_model::wire::{PerMessageMembers, write_result};
//! use steadfast_model::{CallToolResult, Implementation, Revision};
//!
//! let result = CallToolResult::text("5");
//! let server = PerMessageMembers::of_server(&Implementation::new("calculator", "1.0.0"));
//!
//! let mut old = Vec::new();
//! write_result(Revision::V2025_06_18, &result, &server, &mut old).unwrap();
//! assert_eq!(old, br#"{"content":[{"type":"text","text":"5"}]}"#);
//!
//! let mut new = Vec::new();
//! write_result(Revision::V2026_07_28, &result, &server, &mut new).unwrap();
//! assert!(new.starts_with(br#"{"resultType":"complete","content":"#));
//! ```

mod client_request;
mod content;
mod handshake;
mod message;
mod notification;
mod object;
mod prompt;
mod resource;
mod task;
mod text;
mod tool;

use std::borrow::Cow;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::value::RawValue;

pub use message::{RequestSubject, ToolsInResult, notification_params, request_params, request_result, result_caching};
pub use object::ObjectEncoder;
pub use tool::WRAPPER_MEMBER;

use crate::capabilities::ClientCapabilities;
use crate::implementation::Implementation;
use crate::json::JsonObject;
use crate::message::cache::CacheHints;
use crate::message::error::{ErrorObject, code};
use crate::message::id::RequestId;
use crate::message::meta::{ProgressToken, key};
use crate::revision::Revision;

/// A value whose JSON depends on the revision.
pub trait Encode {
    /// Writes the members of the value.
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error>;
}

/// A value that may be the result of a request.
pub trait RequestResult: Encode {
    /// The `resultType` that is added to results of this type (since 2026-07-28).
    const RESULT_TYPE: &'static str = "complete";

    /// True if the result already has the member `resultType`, as a relayed result may: then `resultType` is not added.
    fn has_result_type(&self) -> bool {
        false
    }

    /// How long the result may be cached: `None` if results of this kind are never cached, an inner `None` if the result does
    /// not say.
    fn caching(&self) -> Option<Option<CacheHints>> {
        None
    }
}

/// Members that are added to each message of one client or server, such as `_meta` entries, and are encoded only once.
///
/// Before 2026-07-28 the progress token is the only member that is added to messages.
#[derive(Clone, Debug, Default)]
pub struct PerMessageMembers {
    meta: Vec<MetaEntry>,
    cache: CacheHints,
}

/// An entry of `_meta` whose value is already encoded as JSON.
#[derive(Clone, Debug)]
struct MetaEntry {
    key: &'static str,
    value: Box<RawValue>,
    written_for: MetaEntryRevisions,
}

/// The revisions that an entry of `_meta` is written for.
#[derive(Clone, Copy, Debug)]
enum MetaEntryRevisions {
    All,
    Stateless,
    Only(Revision),
}

impl MetaEntry {
    fn is_written_for(&self, revision: Revision) -> bool {
        match self.written_for {
            MetaEntryRevisions::All => true,
            MetaEntryRevisions::Stateless => revision.is_stateless(),
            MetaEntryRevisions::Only(only) => revision == only,
        }
    }
}

impl PerMessageMembers {
    /// Adds nothing.
    pub fn none() -> Self {
        Self::default()
    }

    /// The members of a server's results: the name of the server in `_meta`.
    pub fn of_server(info: &Implementation) -> Self {
        Self::none().with_encoded(key::SERVER_INFO, info)
    }

    /// The members of a client's requests: the revision, the client and its capabilities in `_meta`.
    pub fn of_client(info: &Implementation, capabilities: &ClientCapabilities) -> Self {
        Self::none()
            .with_each_stateless(key::PROTOCOL_VERSION, |revision| serde_json::value::to_raw_value(&revision))
            .with_encoded(key::CLIENT_INFO, info)
            .with_encoded(key::CLIENT_CAPABILITIES, capabilities)
    }

    /// The members of a subscription's notifications: in `_meta`, the id of the request that opened the subscription.
    pub fn of_subscription(id: &RequestId) -> Self {
        Self::none().with_meta(key::SUBSCRIPTION_ID, id)
    }

    /// Adds an entry to the `_meta` of each message, in stateless revisions only.
    pub fn with_meta<T: Serialize + ?Sized>(mut self, key: &'static str, value: &T) -> Self {
        // A value that cannot be encoded is left out: common members never make a message fail.
        if let Ok(value) = serde_json::value::to_raw_value(value) {
            self.meta.retain(|entry| entry.key != key);
            self.meta.push(MetaEntry { key, value, written_for: MetaEntryRevisions::Stateless });
        }
        self
    }

    /// Adds the progress token of a request to the request's `_meta`, in every revision.
    pub fn with_progress_token(mut self, token: &ProgressToken) -> Self {
        if let Ok(value) = serde_json::value::to_raw_value(token) {
            self.meta.insert(0, MetaEntry { key: key::PROGRESS_TOKEN, value, written_for: MetaEntryRevisions::All });
        }
        self
    }

    /// Adds an entry of `_meta` whose JSON may differ between the stateless revisions.
    fn with_encoded<T: Encode>(self, key: &'static str, value: &T) -> Self {
        self.with_each_stateless(key, |revision| {
            serde_json::value::to_raw_value(&object::NestedObjectEncoder { value, revision })
        })
    }

    fn with_each_stateless(
        mut self,
        key: &'static str,
        encode: impl Fn(Revision) -> Result<Box<RawValue>, serde_json::Error>,
    ) -> Self {
        for &revision in Revision::stateless() {
            if let Ok(value) = encode(revision) {
                self.meta.push(MetaEntry { key, value, written_for: MetaEntryRevisions::Only(revision) });
            }
        }
        self
    }

    /// Sets the cache hints of cacheable results that do not have their own.
    pub fn with_cache(mut self, cache: CacheHints) -> Self {
        self.cache = cache;
        self
    }

    fn entries(&self, revision: Revision) -> impl Iterator<Item = &MetaEntry> + Clone {
        self.meta.iter().filter(move |entry| entry.is_written_for(revision))
    }
}

/// Appends a result. Nothing is appended if the result cannot be encoded for this revision.
pub fn write_result<R: RequestResult>(
    revision: Revision,
    result: &R,
    common_members: &PerMessageMembers,
    out: &mut Vec<u8>,
) -> Result<(), serde_json::Error> {
    append(out, &ResultForRevision { revision, result, common_members })
}

/// Appends the parameters of a request or notification. Nothing is appended if the parameters cannot be encoded for this
/// revision.
pub fn write_params<P: Encode>(
    revision: Revision,
    params: &P,
    common_members: &PerMessageMembers,
    out: &mut Vec<u8>,
) -> Result<(), serde_json::Error> {
    append(out, &ParamsForRevision { revision, params, common_members })
}

/// The parameters of a request or notification, as JSON text.
pub fn params_text<P: Encode>(
    revision: Revision,
    params: &P,
    common_members: &PerMessageMembers,
) -> Result<Box<str>, serde_json::Error> {
    serde_json::to_string(&ParamsForRevision { revision, params, common_members }).map(String::into_boxed_str)
}

/// Appends a value that is neither a result nor parameters, without the members that are added to each message.
pub fn write<T: Encode>(revision: Revision, value: &T, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    append(out, &object::NestedObjectEncoder { value, revision })
}

/// Appends an error object, with the error code that the revision defines.
pub fn write_error(revision: Revision, error: &ErrorObject, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    append(out, &*error_for(revision, error))
}

/// The error, with the error code that the revision defines for it.
///
/// A missing resource has its own error code before 2026-07-28, and the code of invalid parameters since. An error code that
/// the revision does not define becomes that of an internal error.
pub fn error_for(revision: Revision, error: &ErrorObject) -> Cow<'_, ErrorObject> {
    let code = match error.code {
        code::RESOURCE_NOT_FOUND if revision.is_stateless() => code::INVALID_PARAMS,
        code::URL_ELICITATION_REQUIRED if !revision.has_url_elicitation_error() => code::INTERNAL_ERROR,
        code => code,
    };
    if code == error.code { Cow::Borrowed(error) } else { Cow::Owned(ErrorObject { code, ..error.clone() }) }
}

/// Appends the JSON of the value; on an error, the buffer is left as it was.
fn append<T: Serialize>(out: &mut Vec<u8>, value: &T) -> Result<(), serde_json::Error> {
    let start = out.len();
    serde_json::to_writer(&mut *out, value).inspect_err(|_| out.truncate(start))
}

struct ResultForRevision<'a, R> {
    revision: Revision,
    result: &'a R,
    common_members: &'a PerMessageMembers,
}

impl<R: RequestResult> Serialize for ResultForRevision<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = ObjectEncoder::outermost(serializer.serialize_map(None)?, self.revision, self.common_members);
        if self.revision.is_stateless() && !self.result.has_result_type() {
            object.put("resultType", R::RESULT_TYPE)?;
        }
        self.result.encode(&mut object)?;
        if self.revision.is_stateless()
            && let Some(own) = self.result.caching()
        {
            let cache = own.unwrap_or(self.common_members.cache);
            object.put("ttlMs", &cache.ttl_ms)?;
            object.put("cacheScope", &cache.scope)?;
        }
        object.end()
    }
}

struct ParamsForRevision<'a, P> {
    revision: Revision,
    params: &'a P,
    common_members: &'a PerMessageMembers,
}

impl<P: Encode> Serialize for ParamsForRevision<'_, P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = ObjectEncoder::outermost(serializer.serialize_map(None)?, self.revision, self.common_members);
        self.params.encode(&mut object)?;
        object.end()
    }
}

/// The members of a value that serde writes as a JSON object; no members for `null` and `()`.
fn to_object<T: Serialize>(value: &T) -> Result<JsonObject, serde_json::Error> {
    use serde::ser::Error as _;
    match serde_json::to_value(value)? {
        serde_json::Value::Object(object) => Ok(object),
        serde_json::Value::Null => Ok(JsonObject::new()),
        _ => Err(serde_json::Error::custom("the parameters and results of a method have to be JSON objects")),
    }
}

/// Parameters and results of vendor methods, which are encoded the same for every revision.
impl Encode for JsonObject {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        for (key, value) in self.iter().filter(|(key, _)| *key != "_meta") {
            object.put(key, value)?;
        }
        object.raw_meta(self.get("_meta").and_then(serde_json::Value::as_object))
    }
}

impl RequestResult for JsonObject {
    fn has_result_type(&self) -> bool {
        self.contains_key("resultType")
    }
}

#[cfg(test)]
mod tests;
