//! Support for the code that the macros generate. The support code for macros is not a public API: it changes without
//! notice.

pub use std::sync::Arc;

pub use schemars;
pub use serde_json::Value;
pub use steadfast_model::{Icon, PromptArgument, ToolAnnotations};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::context::Context;
pub use super::input::need::RequiredClientCapability;
use super::prompt::reply::IntoPromptReply;
use super::prompt::{ServerPrompt, ServerPromptBuilder, described_argument};
use super::resource::reply::IntoResourceReply;
use super::resource::template::{ServerResourceTemplate, ServerResourceTemplateBuilder};
use super::resource::{ServerResource, ServerResourceBuilder};
pub use super::tool::parameters::ParameterTuple;
use super::tool::parameters::may_be_absent;
use super::tool::reply::IntoToolReply;
pub use super::tool::schema::ArgumentSchemaBuilder;
use super::tool::{ServerTool, ServerToolBuilder};
pub use super::{Server, ServerBuilder, ServerType};

/// Builds a tool whose parameters are decoded by name, with an `async` handler.
pub fn async_handler<P, F, Out>(
    tool: ServerToolBuilder,
    properties: ArgumentSchemaBuilder,
    names: &'static [&'static str],
    function: F,
) -> ServerTool
where
    P: ParameterTuple,
    F: Fn(P, Context) -> Out + Send + Sync + 'static,
    Out: Future + Send + 'static,
    Out::Output: IntoToolReply,
{
    tool.typed_input_schema(properties.finish()).parameters_handler(names, function)
}

/// Builds a tool whose parameters are decoded by name, with a blocking handler.
pub fn blocking_handler_of<P, F, Out>(
    tool: ServerToolBuilder,
    properties: ArgumentSchemaBuilder,
    names: &'static [&'static str],
    function: F,
) -> ServerTool
where
    P: ParameterTuple,
    F: Fn(P, Context) -> Out + Send + Sync + 'static,
    Out: IntoToolReply + 'static,
{
    tool.typed_input_schema(properties.finish()).blocking_parameters_handler(names, function)
}

/// Creates the definition of a prompt's argument.
pub fn prompt_argument(name: &str, description: &str, required: bool) -> PromptArgument {
    described_argument(name, description, required)
}

/// Builds a prompt whose parameters are decoded by name, with an `async` handler.
pub fn prompt_on_workers<P, F, Out>(
    prompt: ServerPromptBuilder,
    names: &'static [&'static str],
    function: F,
) -> ServerPrompt
where
    P: ParameterTuple,
    F: Fn(P, Context) -> Out + Send + Sync + 'static,
    Out: Future + Send + 'static,
    Out::Output: IntoPromptReply,
{
    prompt.parameters_handler(names, function)
}

/// Builds a prompt whose parameters are decoded by name, with a blocking handler.
pub fn prompt_on_threads<P, F, Out>(
    prompt: ServerPromptBuilder,
    names: &'static [&'static str],
    function: F,
) -> ServerPrompt
where
    P: ParameterTuple,
    F: Fn(P, Context) -> Out + Send + Sync + 'static,
    Out: IntoPromptReply,
{
    prompt.blocking_parameters_handler(names, function)
}

/// Builds a resource whose parameters are decoded by name, with an `async` handler.
pub fn resource_on_workers<P, F, Out>(
    resource: ServerResourceBuilder,
    names: &'static [&'static str],
    function: F,
) -> ServerResource
where
    P: ParameterTuple,
    F: Fn(P, Context) -> Out + Send + Sync + 'static,
    Out: Future + Send + 'static,
    Out::Output: IntoResourceReply,
{
    resource.parameters_handler(names, function)
}

/// Builds a resource whose parameters are decoded by name, with a blocking handler.
pub fn resource_on_threads<P, F, Out>(
    resource: ServerResourceBuilder,
    names: &'static [&'static str],
    function: F,
) -> ServerResource
where
    P: ParameterTuple,
    F: Fn(P, Context) -> Out + Send + Sync + 'static,
    Out: IntoResourceReply,
{
    resource.blocking_parameters_handler(names, function)
}

/// Builds a resource template whose variables are decoded by name, with an `async` handler.
pub fn template_on_workers<P, F, Out>(
    template: ServerResourceTemplateBuilder,
    names: &'static [&'static str],
    function: F,
) -> ServerResourceTemplate
where
    P: ParameterTuple,
    F: Fn(P, Context) -> Out + Send + Sync + 'static,
    Out: Future + Send + 'static,
    Out::Output: IntoResourceReply,
{
    template.parameters_handler(names, function)
}

/// Builds a resource template whose variables are decoded by name, with a blocking handler.
pub fn template_on_threads<P, F, Out>(
    template: ServerResourceTemplateBuilder,
    names: &'static [&'static str],
    function: F,
) -> ServerResourceTemplate
where
    P: ParameterTuple,
    F: Fn(P, Context) -> Out + Send + Sync + 'static,
    Out: IntoResourceReply,
{
    template.blocking_parameters_handler(names, function)
}

/// Whether an argument of this type is required.
pub fn is_required<T: DeserializeOwned>() -> bool {
    !may_be_absent::<T>()
}

/// A type that can be a parameter of a prompt.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a parameter of a prompt",
    label = "not readable from a string",
    note = "derive `serde::Deserialize` for it"
)]
pub trait FromPromptArgument: DeserializeOwned + Send + 'static {}

impl<T: DeserializeOwned + Send + 'static> FromPromptArgument for T {}

/// Makes the compiler report an unsuitable parameter type at the type itself, and not in the middle of generated code.
pub const fn assert_prompt_parameter<T: FromPromptArgument>() {}

/// A type that can be a variable of a resource's URI.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a variable of a resource's URI",
    label = "not readable from a string",
    note = "derive `serde::Deserialize` for it"
)]
pub trait FromUriVariable: DeserializeOwned + Send + 'static {}

impl<T: DeserializeOwned + Send + 'static> FromUriVariable for T {}

/// Makes the compiler report an unsuitable parameter type at the type itself, and not in the middle of generated code.
pub const fn assert_resource_parameter<T: FromUriVariable>() {}

/// A type that can be a parameter of a tool.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a parameter of a tool",
    label = "not readable from JSON",
    note = "derive `serde::Deserialize` and `schemars::JsonSchema` for it"
)]
pub trait FromToolArgument: DeserializeOwned + schemars::JsonSchema + Send + 'static {}

impl<T: DeserializeOwned + schemars::JsonSchema + Send + 'static> FromToolArgument for T {}

/// Makes the compiler report an unsuitable parameter type at the type itself, and not in the middle of generated code.
pub const fn assert_parameter<T: FromToolArgument>() {}

/// The default value of an argument, which may or may not be `Serialize`: the inherent method `json` is called if the
/// value is `Serialize`, and the method of the fallback trait otherwise.
#[derive(Debug)]
pub struct ArgumentDefaultJson<'a, T>(pub &'a T);

impl<T: Serialize> ArgumentDefaultJson<'_, T> {
    /// The default value of the argument as JSON; `None` if it cannot be serialized.
    pub fn json(&self) -> Option<Value> {
        serde_json::to_value(self.0).ok()
    }
}

/// The fallback of [`ArgumentDefaultJson`] for default values that are not `Serialize`.
pub trait ArgumentDefaultJsonFallback {
    /// No JSON.
    fn json(&self) -> Option<Value> {
        None
    }
}

impl<T> ArgumentDefaultJsonFallback for ArgumentDefaultJson<'_, T> {}
