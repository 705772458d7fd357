//! Elicitation: a server asks the client's user for input.

use serde::de::{Deserializer, Error as _};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::form::FormSchema;
use super::task::TaskMetadata;
use crate::json::JsonObject;
use crate::message::meta::Meta;
use crate::setters::setters;

/// The parameters of `elicitation/create`.
///
/// ```
/// use steadfast_model::{ElicitParams, FormField, FormSchema};
/// let form = FormSchema::new().with_required("name", FormField::string());
/// let params = ElicitParams::form("Who are you?", form);
/// assert_eq!(serde_json::to_value(&params).unwrap()["mode"], "form");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ElicitParams {
    /// Elicitation by a form that the user fills in. Revisions before 2025-11-25 have only elicitation by form, and
    /// no `mode` member.
    Form(ElicitFormParams),
    /// Elicitation by a URL that the user visits (since 2025-11-25).
    Url(ElicitUrlParams),
}

impl ElicitParams {
    /// Asks the user to fill in a form.
    pub fn form(message: impl Into<String>, requested_schema: FormSchema) -> Self {
        Self::Form(ElicitFormParams::new(message, requested_schema))
    }

    /// Asks the user to visit a URL.
    pub fn url(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self::Url(ElicitUrlParams::new(message, url))
    }

    /// The message of the elicitation, which the client shows to its user.
    pub fn message(&self) -> &str {
        match self {
            Self::Form(params) => &params.message,
            Self::Url(params) => &params.message,
        }
    }
}

/// The parameters of an elicitation by form.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitFormParams {
    /// The message of the elicitation, which the client shows to its user.
    pub message: String,
    /// The form.
    pub requested_schema: FormSchema,
    /// If set, asks the client to run this request as an MCP task (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// Metadata of the elicitation request (up to revision 2025-11-25).
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ElicitFormParams {
    /// The parameters of an elicitation that asks the user to fill in this form.
    pub fn new(message: impl Into<String>, requested_schema: FormSchema) -> Self {
        Self { message: message.into(), requested_schema, task: None, meta: None }
    }
}

setters!(ElicitFormParams { with_task(task: TaskMetadata), with_meta(meta: Meta) });

/// The parameters of an elicitation that asks the user to visit a URL.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitUrlParams {
    /// The message of the elicitation, which the client shows to its user.
    pub message: String,
    /// The URL that the user is asked to visit.
    pub url: String,
    /// The id of this URL elicitation, which the notification of its completion repeats. The elicitation id is required in
    /// 2025-11-25 and absent in later revisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<String>,
    /// If set, asks the client to run this request as an MCP task (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// Metadata of the elicitation request (up to revision 2025-11-25).
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ElicitUrlParams {
    /// The parameters of an elicitation that asks the user to visit this URL.
    pub fn new(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self { message: message.into(), url: url.into(), ..Self::default() }
    }
}

setters!(ElicitUrlParams {
    with_elicitation_id(elicitation_id: String),
    with_task(task: TaskMetadata),
    with_meta(meta: Meta),
});

impl Serialize for ElicitParams {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(tag = "mode", rename_all = "lowercase")]
        enum TaggedElicitParams<'a> {
            Form(&'a ElicitFormParams),
            Url(&'a ElicitUrlParams),
        }
        match self {
            Self::Form(params) => TaggedElicitParams::Form(params).serialize(serializer),
            Self::Url(params) => TaggedElicitParams::Url(params).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ElicitParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut object = JsonObject::deserialize(deserializer)?;
        let mode = object.shift_remove("mode");
        let value = Value::Object(object);
        match mode.as_ref().map(Value::as_str) {
            None | Some(Some("form")) => serde_json::from_value(value).map(Self::Form),
            Some(Some("url")) => serde_json::from_value(value).map(Self::Url),
            Some(_) => return Err(D::Error::custom("the mode of an elicitation must be `form` or `url`")),
        }
        .map_err(D::Error::custom)
    }
}

/// How the user responded to an elicitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ElicitAction {
    /// Accepted.
    Accept,
    /// Declined.
    Decline,
    /// The user dismissed the elicitation without an answer.
    Cancel,
}

/// The result of `elicitation/create`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ElicitResult {
    /// How the user responded to the elicitation.
    pub action: ElicitAction,
    /// The form as the user filled it in: strings, numbers, booleans and lists of strings, by field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<JsonObject>,
    /// Metadata of the elicitation result (up to revision 2025-11-25).
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ElicitResult {
    /// The result of an elicitation whose form the user filled in.
    pub fn accept(content: JsonObject) -> Self {
        Self { action: ElicitAction::Accept, content: Some(content), meta: None }
    }

    /// The result of an elicitation by URL: the user agreed to visit the URL.
    pub fn agree() -> Self {
        Self { action: ElicitAction::Accept, content: None, meta: None }
    }

    /// The user declined.
    pub fn decline() -> Self {
        Self { action: ElicitAction::Decline, content: None, meta: None }
    }

    /// The result of an elicitation that the user dismissed without an answer.
    pub fn cancel() -> Self {
        Self { action: ElicitAction::Cancel, content: None, meta: None }
    }
}

setters!(ElicitResult { with_meta(meta: Meta) });

/// The parameters of `notifications/elicitation/complete` (2025-11-25 only): the user has done what the URL of an elicitation
/// asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitationCompleteParams {
    /// The id of the URL elicitation that is complete.
    pub elicitation_id: String,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ElicitationCompleteParams {
    /// The parameters of the notification that the elicitation with this id is complete.
    pub fn new(elicitation_id: impl Into<String>) -> Self {
        Self { elicitation_id: elicitation_id.into(), meta: None }
    }
}

setters!(ElicitationCompleteParams { with_meta(meta: Meta) });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_elicitation_without_a_mode_is_a_form() {
        let text = r#"{"message":"m","requestedSchema":{"type":"object","properties":{}}}"#;
        assert!(matches!(serde_json::from_str(text).unwrap(), ElicitParams::Form(_)));
        let text = r#"{"mode":"url","message":"m","url":"https://example.org","elicitationId":"1"}"#;
        assert!(matches!(serde_json::from_str(text).unwrap(), ElicitParams::Url(_)));
        assert!(serde_json::from_str::<ElicitParams>(r#"{"mode":"smell","message":"m"}"#).is_err());
    }
}
