//! What a function is made into, with its options.

use proc_macro2::{Span, TokenStream};
use syn::{Error, Ident, LitStr, Result};

use crate::emit::{self, Callee};
use crate::options::{PromptOptions, ResourceOptions, ToolOptions};
use crate::signature::{Function, Kind, Problems};

/// What a function is made into.
pub(crate) enum Made {
    Tool(ToolOptions),
    Prompt(PromptOptions),
    Resource(ResourceOptions),
}

impl Made {
    pub(crate) fn parse(kind: Kind, options: TokenStream) -> Result<Self> {
        match kind {
            Kind::Tool => ToolOptions::parse(options).map(Self::Tool),
            Kind::Prompt => PromptOptions::parse(options).map(Self::Prompt),
            Kind::Resource => ResourceOptions::parse(options).map(Self::Resource),
        }
    }

    /// Whether the function fits the options.
    pub(crate) fn check(&self, function: &Function) -> Result<()> {
        match self {
            Self::Tool(_) => check_completion(function),
            Self::Prompt(_) => Ok(()),
            Self::Resource(options) => check_variables(function, options),
        }
    }

    /// The expression that makes it.
    pub(crate) fn emit(&self, function: &Function, docs: &str, callee: &Callee) -> TokenStream {
        match self {
            Self::Tool(options) => emit::tool(function, options, docs, callee),
            Self::Prompt(options) => emit::prompt(function, options, docs, callee),
            Self::Resource(options) => emit::resource(function, options, docs, callee),
        }
    }

    /// What tells it from others of its kind.
    pub(crate) fn key(&self, function: &Function) -> LitStr {
        let name = match self {
            Self::Tool(options) => &options.described.name,
            Self::Prompt(options) => &options.described.name,
            Self::Resource(options) => return options.uri.text.clone(),
        };
        name.as_ref().unwrap_or(&function.default_name).clone()
    }

    /// The type that is made.
    pub(crate) fn kind(&self) -> Ident {
        self.ident(["Tool", "Prompt", "Resource", "ResourceTemplate"])
    }

    /// The method of the builder that takes it.
    pub(crate) fn adder(&self) -> Ident {
        self.ident(["tool", "prompt", "resource", "resource_template"])
    }

    fn ident(&self, [tool, prompt, resource, template]: [&str; 4]) -> Ident {
        let name = match self {
            Self::Tool(_) => tool,
            Self::Prompt(_) => prompt,
            Self::Resource(options) if options.uri.variables.is_empty() => resource,
            Self::Resource(_) => template,
        };
        Ident::new(name, Span::call_site())
    }
}

fn check_completion(function: &Function) -> Result<()> {
    let Some(complete) = function.arguments().find_map(|argument| argument.complete.as_ref()) else { return Ok(()) };
    let message = "the arguments of a tool are not completed, as nobody types them: leave `complete` out";
    Err(Error::new_spanned(complete, message))
}

/// Each variable of the URI is a parameter, and each parameter a variable.
fn check_variables(function: &Function, options: &ResourceOptions) -> Result<()> {
    let uri = &options.uri;
    let mut problems = Problems::default();
    for argument in function.arguments() {
        let name = argument.name.value();
        if uri.variables.contains(&name) {
            continue;
        }
        let message = if uri.variables.is_empty() {
            format!("a resource at a fixed URI takes no arguments: write `{{{name}}}` in the URI, or leave this out")
        } else {
            format!(
                "`{name}` is not in the URI, which has {}: write `{{{name}}}` in it, or leave this out",
                uri.written()
            )
        };
        problems.add(Error::new(argument.name.span(), message));
    }
    for variable in &uri.variables {
        if function.arguments().all(|argument| argument.name.value() != *variable) {
            let message = if syn::parse_str::<Ident>(variable).is_ok() {
                format!("`{{{variable}}}` has no parameter: add `{variable}: String` to the function")
            } else {
                format!(
                    "`{{{variable}}}` has no parameter: add one with `#[arg(rename = \"{variable}\")]` to the function"
                )
            };
            problems.add(Error::new(uri.text.span(), message));
        }
    }
    problems.finish()
}
