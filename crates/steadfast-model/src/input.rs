//! Multi round-trips (since 2026-07-28): a result that asks for input, and the answers that come with the next try.

use std::collections::BTreeMap;

use serde::de::{DeserializeOwned, Error as _};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::elicit::ElicitParams;
use crate::json::JsonObject;
use crate::meta::Meta;
use crate::method::Method;
use crate::page::EmptyParams;
use crate::sampling::CreateMessageParams;
use crate::setters::setters;
use crate::task::CreateTaskResult;

/// One thing that a server asks of the client before it can go on.
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
    /// The method that it is.
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

/// By way of JSON values, as [`Content`](crate::Content) is: what serde derives has a reader of its own for each type inside.
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

/// What a server asks for, by keys of its choosing.
pub type InputRequests = BTreeMap<String, InputRequest>;

/// A result that asks for input: the request is sent again with the answers.
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
    /// What is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<InputRequests>,
    /// What the client hands back with the answers, unread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// What travels beside.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl InputRequiredResult {
    /// Asks for nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// This value with one more thing asked for.
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

/// The answers to what a result asked for, by the keys that it asked under.
///
/// An answer does not say what it is: only who asked knows, and reads it by the type of its question.
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
pub struct InputResponses(pub JsonObject);

impl InputResponses {
    /// No answers.
    pub fn new() -> Self {
        Self::default()
    }

    /// The answer under that key; `None`: there is none.
    pub fn read<T: DeserializeOwned>(&self, key: &str) -> Option<Result<T, serde_json::Error>> {
        self.0.get(key).map(T::deserialize)
    }

    /// Adds an answer.
    pub fn insert<T: Serialize>(&mut self, key: impl Into<String>, answer: &T) -> Result<(), serde_json::Error> {
        self.0.insert(key.into(), serde_json::to_value(answer)?);
        Ok(())
    }
}

/// A result of whichever kind, told apart by `resultType`.
///
/// ```
/// use steadfast_model::{CallToolResult, AnyResult};
/// let old = r#"{"content":[]}"#;
/// assert!(matches!(AnyResult::<CallToolResult>::from_json(old).unwrap(), AnyResult::Complete(_)));
/// let new = r#"{"resultType":"input_required","requestState":"s"}"#;
/// assert!(matches!(AnyResult::<CallToolResult>::from_json(new).unwrap(), AnyResult::InputRequired(_)));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AnyResult<T> {
    /// The result. Results of older revisions do not say what they are, and are this.
    Complete(T),
    /// The request has to be sent again with answers.
    InputRequired(InputRequiredResult),
    /// The request goes on as a task.
    Task(Box<CreateTaskResult>),
    /// A kind of result that we do not know.
    Other(String),
}

impl<T: DeserializeOwned> AnyResult<T> {
    /// Reads the JSON text of a result.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Kind<'a> {
            #[serde(default, borrow, rename = "resultType")]
            result_type: Option<std::borrow::Cow<'a, str>>,
        }

        // An array would be taken for the members of an object in their order.
        if !text.trim_start().starts_with('{') {
            return Err(serde::de::Error::custom("a result is an object"));
        }
        let kind: Kind<'_> = serde_json::from_str(text)?;
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
