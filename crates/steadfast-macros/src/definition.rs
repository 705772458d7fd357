//! The definition that a function becomes (a tool, prompt or resource), with its options.

use proc_macro2::{Span, TokenStream};
use syn::{Error, Ident, LitStr, Result};

use crate::emit::{self, HandlerCallSyntax};
use crate::options::{PromptMacroOptions, ResourceMacroOptions, ToolMacroOptions};
use crate::signature::{DefinitionKind, ErrorCollector, HandlerSignature};

/// The options of the attribute that makes a function a tool, prompt or resource.
pub(crate) enum ItemMacroOptions {
    Tool(ToolMacroOptions),
    Prompt(PromptMacroOptions),
    Resource(ResourceMacroOptions),
}

impl ItemMacroOptions {
    pub(crate) fn parse(kind: DefinitionKind, options: TokenStream) -> Result<Self> {
        match kind {
            DefinitionKind::Tool => ToolMacroOptions::parse(options).map(Self::Tool),
            DefinitionKind::Prompt => PromptMacroOptions::parse(options).map(Self::Prompt),
            DefinitionKind::Resource => ResourceMacroOptions::parse(options).map(Self::Resource),
        }
    }

    /// Checks the signature of the function against the options of its attribute.
    pub(crate) fn check(&self, function: &HandlerSignature) -> Result<()> {
        match self {
            Self::Tool(_) => check_completion(function),
            Self::Prompt(_) => Ok(()),
            Self::Resource(options) => check_variables(function, options),
        }
    }

    /// Generates the expression that builds the tool, prompt or resource.
    pub(crate) fn emit(&self, function: &HandlerSignature, docs: &str, callee: &HandlerCallSyntax) -> TokenStream {
        match self {
            Self::Tool(options) => emit::tool(function, options, docs, callee),
            Self::Prompt(options) => emit::prompt(function, options, docs, callee),
            Self::Resource(options) => emit::resource(function, options, docs, callee),
        }
    }

    /// What identifies the tool, prompt or resource among others of its kind: its name, or its URI.
    pub(crate) fn key(&self, function: &HandlerSignature) -> LitStr {
        let name = match self {
            Self::Tool(options) => &options.common.name,
            Self::Prompt(options) => &options.common.name,
            Self::Resource(options) => return options.uri.text.clone(),
        };
        name.as_ref().unwrap_or(&function.default_name).clone()
    }

    /// The type that is built from the function (`ServerTool`, `ServerPrompt`, `ServerResource` or
    /// `ServerResourceTemplate`).
    pub(crate) fn kind(&self) -> Ident {
        self.ident(["ServerTool", "ServerPrompt", "ServerResource", "ServerResourceTemplate"])
    }

    /// The method of the server builder that adds the tool, prompt or resource.
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

fn check_completion(function: &HandlerSignature) -> Result<()> {
    let Some(complete) = function.arguments().find_map(|argument| argument.complete.as_ref()) else { return Ok(()) };
    let message = "arguments of a tool have no completion: remove `complete`";
    Err(Error::new_spanned(complete, message))
}

/// Checks that each variable of a resource's URI is an argument of the function, and each argument a variable of the URI.
fn check_variables(function: &HandlerSignature, options: &ResourceMacroOptions) -> Result<()> {
    let uri = &options.uri;
    let mut problems = ErrorCollector::default();
    for argument in function.arguments() {
        let name = argument.name.value();
        if uri.variables.contains(&name) {
            continue;
        }
        let message = if uri.variables.is_empty() {
            format!(
                "a resource at a fixed URI takes no arguments: write `{{{name}}}` in the URI, or remove this parameter"
            )
        } else {
            format!(
                "`{name}` is not in the URI, which has {}: write `{{{name}}}` in it, or remove this parameter",
                uri.list_variables()
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
