//! Multi round-trips (since 2026-07-28): a result that asks the client for input, and the responses that the client sends with
//! its next attempt.

use std::collections::BTreeMap;

use serde::de::{DeserializeOwned, Error as _};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::meta::Meta;
use super::page::EmptyParams;
use crate::feature::elicit::ElicitParams;
use crate::feature::sampling::CreateMessageParams;
use crate::feature::task::CreateTaskResult;
use crate::json::JsonObject;
use crate::method::Method;
use crate::setters::setters;

/// A request to the client inside a result: the server needs the client's response to continue.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum InputRequest {
    /// Ask the user.
    Elicit(ElicitParams),
    /// Ask the model.
    CreateMessage(CreateMessageParams),
    /// List the roots.
    ListRoots(Option<EmptyParams>),
}

impl InputRequest {
    /// Its method.
    pub fn method(&self) -> Method {
        match self {
            Self::Elicit(_) => Method::Elicit,
            Self::CreateMessage(_) => Method::CreateMessage,
            Self::ListRoots(_) => Method::ListRoots,
        }
    }
}

impl Serialize for InputRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("method", self.method().name())?;
        match self {
            Self::Elicit(params) => map.serialize_entry("params", params)?,
            Self::CreateMessage(params) => map.serialize_entry("params", params)?,
            Self::ListRoots(Some(params)) => map.serialize_entry("params", params)?,
            Self::ListRoots(None) => {}
        }
        map.end()
    }
}

/// Input requests are decoded by way of JSON values, as [`Content`](crate::Content) is: the code that serde derives would have
/// a separate decoder for each type inside.
impl<'de> Deserialize<'de> for InputRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const METHODS: &[&str] = &["elicitation/create", "sampling/createMessage", "roots/list"];
        let mut object = JsonObject::deserialize(deserializer)?;
        let params = object.shift_remove("params");
        let Some(Value::String(method)) = object.get("method") else {
            return Err(D::Error::custom("an input request needs a `method` that is a string"));
        };
        let needed = |params: Option<Value>| params.ok_or_else(|| D::Error::missing_field("params"));
        match Method::from_name(method) {
            Some(Method::Elicit) => serde_json::from_value(needed(params)?).map(Self::Elicit),
            Some(Method::CreateMessage) => serde_json::from_value(needed(params)?).map(Self::CreateMessage),
            Some(Method::ListRoots) => serde_json::from_value(params.unwrap_or_default()).map(Self::ListRoots),
            _ => return Err(D::Error::unknown_variant(method, METHODS)),
        }
        .map_err(D::Error::custom)
    }
}

/// The input requests of a result, by keys that the server chooses.
pub type InputRequests = BTreeMap<String, InputRequest>;

/// A result that asks the client for input: the client sends the request again with its responses.
///
/// ```
/// use steadfast_model::{InputRequest, InputRequiredResult};
/// let result = InputRequiredResult::new()
///     .with_input_request("roots", InputRequest::ListRoots(None))
///     .with_request_state("sealed");
/// assert_eq!(result.input_requests.unwrap().len(), 1);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InputRequiredResult {
    /// The input requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<InputRequests>,
    /// Opaque state of the server, which the client sends back with its responses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl InputRequiredResult {
    /// An input-required result that has no input requests yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an input request to this result.
    pub fn with_input_request(mut self, key: impl Into<String>, request: InputRequest) -> Self {
        self.input_requests.get_or_insert_default().insert(key.into(), request);
        self
    }
}

setters!(InputRequiredResult {
    with_input_requests(input_requests: InputRequests),
    with_request_state(request_state: String),
    with_meta(meta: Meta),
});

/// The responses to the input requests of a result, by the same keys.
///
/// A response to an input request does not name its type: the server knows the type from the input request under the same key.
///
/// ```
/// use steadfast_model::{InputResponses, ListRootsResult, Root};
/// let mut responses = InputResponses::new();
/// responses.insert("roots", &ListRootsResult::new(vec![Root::new("file:///home")])).unwrap();
/// let roots: ListRootsResult = responses.read("roots").unwrap().unwrap();
/// assert_eq!(roots.roots[0].uri, "file:///home");
/// assert!(responses.read::<ListRootsResult>("other").is_none());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InputResponses(JsonObject);

impl InputResponses {
    /// No responses.
    pub fn new() -> Self {
        Self::default()
    }

    /// Decodes the response to the input request with this key, if there is one.
    pub fn read<T: DeserializeOwned>(&self, key: &str) -> Option<Result<T, serde_json::Error>> {
        self.0.get(key).map(T::deserialize)
    }

    /// Adds a response.
    pub fn insert<T: Serialize>(&mut self, key: impl Into<String>, answer: &T) -> Result<(), serde_json::Error> {
        self.0.insert(key.into(), serde_json::to_value(answer)?);
        Ok(())
    }

    /// All responses as JSON, by their keys.
    pub fn as_object(&self) -> &JsonObject {
        &self.0
    }

    /// All responses as JSON, by their keys.
    pub fn as_object_mut(&mut self) -> &mut JsonObject {
        &mut self.0
    }
}

impl From<JsonObject> for InputResponses {
    fn from(object: JsonObject) -> Self {
        Self(object)
    }
}

impl From<InputResponses> for JsonObject {
    fn from(responses: InputResponses) -> Self {
        responses.0
    }
}

/// The result of a request, of any kind that `resultType` names: complete, input required, task or unknown.
///
/// ```
/// use steadfast_model::{CallToolResult, DeferrableResult};
/// let old = r#"{"content":[]}"#;
/// assert!(matches!(DeferrableResult::<CallToolResult>::from_json(old).unwrap(), DeferrableResult::Complete(_)));
/// let new = r#"{"resultType":"input_required","requestState":"s"}"#;
/// assert!(matches!(DeferrableResult::<CallToolResult>::from_json(new).unwrap(), DeferrableResult::InputRequired(_)));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum DeferrableResult<T> {
    /// The complete result. Before 2026-07-28 results have no `resultType`, and all are complete.
    Complete(T),
    /// The request has to be sent again with responses to these input requests.
    InputRequired(InputRequiredResult),
    /// The request continues as a task.
    Task(Box<CreateTaskResult>),
    /// A result whose `resultType` is unknown to this crate, as the text of its `resultType`.
    Other(String),
}

impl<T: DeserializeOwned> DeferrableResult<T> {
    /// Reads the JSON text of a result.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct ResultTypeMember<'a> {
            #[serde(default, borrow, rename = "resultType")]
            result_type: Option<std::borrow::Cow<'a, str>>,
        }

        // serde would read an array as the fields of a struct in order.
        if !text.trim_start().starts_with('{') {
            return Err(serde::de::Error::custom("the result of a request must be a JSON object"));
        }
        let kind: ResultTypeMember<'_> = serde_json::from_str(text)?;
        match kind.result_type.as_deref() {
            None | Some("complete") => serde_json::from_str(text).map(Self::Complete),
            Some("input_required") => serde_json::from_str(text).map(Self::InputRequired),
            Some("task") => serde_json::from_str(text).map(|task| Self::Task(Box::new(task))),
            Some(other) => Ok(Self::Other(other.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_input_request_is_read_by_its_method() {
        let read = |value: Value| serde_json::from_value::<InputRequest>(value);
        for value in [
            json!({"method": "elicitation/create", "params": {"mode": "url", "message": "m", "url": "https://a.example"}}),
            json!({"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 5}}),
            json!({"method": "roots/list"}),
        ] {
            assert_eq!(serde_json::to_value(read(value.clone()).unwrap()).unwrap(), value);
        }
        assert_eq!(read(json!({"method": "roots/list", "params": null})).unwrap(), InputRequest::ListRoots(None));
        assert!(matches!(read(json!({"params": {}, "method": "roots/list"})), Ok(InputRequest::ListRoots(Some(_)))));
        for wrong in [json!({"method": "ping"}), json!({"method": "elicitation/create"}), json!({}), json!([])] {
            assert!(read(wrong).is_err());
        }
    }
}
