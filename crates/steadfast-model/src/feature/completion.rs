//! Completion: the server proposes values of an argument while a user types it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::message::meta::Meta;
use crate::setters::setters;

/// A reference to the prompt, resource or resource template whose argument is to be completed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum Reference {
    /// A prompt.
    #[serde(rename = "ref/prompt")]
    Prompt(PromptReference),
    /// A reference to a resource or resource template.
    #[serde(rename = "ref/resource")]
    Resource(ResourceReference),
}

impl Reference {
    /// A reference to the prompt with this name.
    pub fn prompt(name: impl Into<String>) -> Self {
        Self::Prompt(PromptReference { name: name.into(), title: None })
    }

    /// A reference to the resource or resource template with this URI.
    pub fn resource(uri: impl Into<String>) -> Self {
        Self::Resource(ResourceReference { uri: uri.into() })
    }
}

/// Names a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptReference {
    /// The name of the prompt that is referred to.
    pub name: String,
    /// The display name of the prompt (since 2025-06-18).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// A reference to a resource or resource template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResourceReference {
    /// The URI of the resource, or the URI template of the resource template.
    pub uri: String,
}

/// The argument that the user is typing, which is to be completed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompleteArgument {
    /// Its name.
    pub name: String,
    /// The part of the argument's value that the user has typed so far.
    pub value: String,
}

/// The context of a completion request: the other arguments that the user has filled in already (since 2025-06-18).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompleteContext {
    /// The values of the arguments that the user has filled in already, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<BTreeMap<String, String>>,
}

impl CompleteContext {
    /// The context of a completion request in which these arguments are already filled in.
    pub fn new(arguments: BTreeMap<String, String>) -> Self {
        Self { arguments: Some(arguments) }
    }

    /// The value of the argument `name`, if the user has filled it in already.
    pub fn argument(&self, name: &str) -> Option<&str> {
        self.arguments.as_ref()?.get(name).map(String::as_str)
    }
}

/// The parameters of `completion/complete`.
///
/// ```
/// use steadfast_model::{CompleteParams, Reference};
/// let params = CompleteParams::new(Reference::prompt("review"), "language", "ru");
/// assert_eq!(serde_json::to_value(&params).unwrap()["ref"]["type"], "ref/prompt");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompleteParams {
    /// The prompt, resource or resource template that the argument to complete belongs to.
    #[serde(rename = "ref")]
    pub reference: Reference,
    /// The argument.
    pub argument: CompleteArgument,
    /// The other arguments of the prompt or resource template that the user has filled in already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<CompleteContext>,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CompleteParams {
    /// Asks the server to complete the argument `name`, of which the user has typed `value` so far.
    pub fn new(reference: Reference, name: impl Into<String>, value: impl Into<String>) -> Self {
        let argument = CompleteArgument { name: name.into(), value: value.into() };
        Self { reference, argument, context: None, meta: None }
    }
}

setters!(CompleteParams { with_context(context: CompleteContext), with_meta(meta: Meta) });

/// The values that a server proposes for an argument that the user is typing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Completion {
    /// The proposed values of the argument: at most a hundred, best first.
    pub values: Vec<String>,
    /// The total number of proposed values, including those that are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// True if the server has more values to propose than are in `values`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
}

impl Completion {
    /// The maximum number of values in one completion result.
    pub const MAX_VALUES: usize = 100;

    /// A completion that proposes these values for an argument. Values beyond [`Completion::MAX_VALUES`] are left
    /// out, but counted in `total`.
    pub fn new(mut values: Vec<String>) -> Self {
        let total = values.len();
        let has_more = total > Self::MAX_VALUES;
        values.truncate(Self::MAX_VALUES);
        Self { values, total: u64::try_from(total).ok(), has_more: Some(has_more) }
    }
}

setters!(Completion { with_total(total: u64), with_has_more(has_more: bool) });

/// The result of `completion/complete`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompleteResult {
    /// The values.
    pub completion: Completion,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CompleteResult {
    /// These values.
    pub fn new(completion: Completion) -> Self {
        Self { completion, meta: None }
    }
}

setters!(CompleteResult { with_meta(meta: Meta) });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_beyond_the_limit_are_counted_and_left_out() {
        let completion = Completion::new((0..101).map(|number| number.to_string()).collect());
        assert_eq!(completion.values.len(), Completion::MAX_VALUES);
        assert_eq!((completion.total, completion.has_more), (Some(101), Some(true)));
    }
}
