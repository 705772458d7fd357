//! Completing an argument while a user types it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::message::meta::Meta;
use crate::setters::setters;

/// What an argument belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum Reference {
    /// A prompt.
    #[serde(rename = "ref/prompt")]
    Prompt(PromptReference),
    /// A resource or resource template.
    #[serde(rename = "ref/resource")]
    Resource(ResourceReference),
}

impl Reference {
    /// The prompt of that name.
    pub fn prompt(name: impl Into<String>) -> Self {
        Self::Prompt(PromptReference { name: name.into(), title: None })
    }

    /// The resource or template of that URI.
    pub fn resource(uri: impl Into<String>) -> Self {
        Self::Resource(ResourceReference { uri: uri.into() })
    }
}

/// Names a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptReference {
    /// The name that requests use.
    pub name: String,
    /// The display name (since 2025-06-18).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// Names a resource or resource template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResourceReference {
    /// The URI or its template.
    pub uri: String,
}

/// The argument that is being typed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompleteArgument {
    /// Its name.
    pub name: String,
    /// What is typed so far.
    pub value: String,
}

/// The other arguments, as far as they are filled in (since 2025-06-18).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompleteContext {
    /// The arguments that are filled in already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<BTreeMap<String, String>>,
}

impl CompleteContext {
    /// The context of a completion request in which these arguments are already filled in.
    pub fn new(arguments: BTreeMap<String, String>) -> Self {
        Self { arguments: Some(arguments) }
    }

    /// The value of that argument, if it is filled in.
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
    /// What the argument belongs to.
    #[serde(rename = "ref")]
    pub reference: Reference,
    /// The argument.
    pub argument: CompleteArgument,
    /// The other arguments, as far as they are filled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<CompleteContext>,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CompleteParams {
    /// Completes what is typed so far.
    pub fn new(reference: Reference, name: impl Into<String>, value: impl Into<String>) -> Self {
        let argument = CompleteArgument { name: name.into(), value: value.into() };
        Self { reference, argument, context: None, meta: None }
    }
}

setters!(CompleteParams { with_context(context: CompleteContext), with_meta(meta: Meta) });

/// Completions of an argument.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Completion {
    /// At most a hundred values, best first.
    pub values: Vec<String>,
    /// How many there are in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// True if there are more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
}

impl Completion {
    /// How many values one result may have.
    pub const MAX_VALUES: usize = 100;

    /// These values. Those beyond [`Completion::MAX_VALUES`] are counted in `total` and left out.
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
