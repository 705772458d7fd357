//! The signature of a function that is a tool, a prompt or a resource.

use syn::spanned::Spanned;
use syn::{Attribute, Error, FnArg, LitStr, Receiver, Result, ReturnType, Safety, Signature, Type, parse_quote};

use crate::parameter::{self, HandlerArgument, HandlerParameter};

/// The maximum number of arguments of a function: the longest tuple that arguments can be deserialized to.
const MAX_ARGUMENTS: usize = 16;

/// The kind of definition that a function becomes: a tool, a prompt or a resource.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DefinitionKind {
    Tool,
    Prompt,
    Resource,
}

impl DefinitionKind {
    const ALL: [Self; 3] = [Self::Tool, Self::Prompt, Self::Resource];

    /// Which of `#[tool]`, `#[prompt]` and `#[resource]` an attribute is, by the last segment of its path.
    pub(crate) fn of(attribute: &Attribute) -> Option<Self> {
        let name = &attribute.path().segments.last()?.ident;
        Self::ALL.into_iter().find(|kind| name == kind.noun())
    }

    /// The name of the kind and of its attribute macro (`tool`, `prompt` or `resource`).
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
        }
    }
}

/// A parsed function.
pub(crate) struct HandlerSignature {
    pub(crate) kind: DefinitionKind,
    pub(crate) receiver: Option<Receiver>,
    pub(crate) parameters: Vec<HandlerParameter>,
    pub(crate) is_async: bool,
    pub(crate) default_name: LitStr,
    pub(crate) output: ReturnType,
}

impl HandlerSignature {
    /// Parses a function's signature, and removes the attributes of these macros from its parameters.
    pub(crate) fn parse(kind: DefinitionKind, signature: &mut Signature) -> Result<Self> {
        let mut problems = ErrorCollector::default();
        problems.note(check_qualifiers(kind, signature));
        let mut receiver = None;
        let mut parameters = Vec::new();
        for input in &mut signature.inputs {
            match input {
                FnArg::Receiver(this) => receiver = Some(this.clone()),
                FnArg::Typed(typed) => {
                    let span = typed.span();
                    if let Some(parsed) = problems.note(parameter::parse(typed)) {
                        parameters.push((parsed, span));
                    }
                }
            }
            parameter::strip(input);
        }
        let contexts = parameters.iter().filter(|(parameter, _)| matches!(parameter, HandlerParameter::Context { .. }));
        if let Some((_, span)) = contexts.clone().nth(1) {
            problems.add(Error::new(*span, "a call has only one `Context`: remove this parameter"));
        }
        let parameters: Vec<HandlerParameter> = parameters.into_iter().map(|(parameter, _)| parameter).collect();
        let arguments: Vec<&HandlerArgument> = arguments(&parameters).collect();
        if let Some(beyond) = arguments.get(MAX_ARGUMENTS) {
            let message = format!("more than {MAX_ARGUMENTS} arguments: group some of them in a struct");
            problems.add(Error::new(beyond.variable.span(), message));
        }
        for (position, argument) in arguments.iter().enumerate() {
            if arguments.iter().take(position).any(|earlier| earlier.name.value() == argument.name.value()) {
                let message = format!("there is an argument named `{}` already", argument.name.value());
                problems.add(Error::new(argument.name.span(), message));
            }
        }
        problems.finish()?;
        let name = signature.ident.to_string();
        let default_name = LitStr::new(name.strip_prefix("r#").unwrap_or(&name), signature.ident.span());
        let is_async = signature.asyncness.is_some();
        Ok(Self { kind, receiver, parameters, is_async, default_name, output: signature.output.clone() })
    }

    /// The parameters that are arguments of the request.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &HandlerArgument> {
        arguments(&self.parameters)
    }

    /// The return type of the function, if there is one.
    pub(crate) fn return_type(&self) -> Option<&Type> {
        match &self.output {
            ReturnType::Type(_, kind) => Some(kind),
            ReturnType::Default => None,
        }
    }
}

/// Allows the lints that do not apply to tools, prompts and resources: these functions take owned values and `&self` whether
/// they need them or not, and `async` decides where they run.
pub(crate) fn allowed_lints() -> Attribute {
    parse_quote! {
        #[allow(
            clippy::needless_pass_by_value,
            clippy::too_many_arguments,
            clippy::unused_async,
            clippy::unused_self
        )]
    }
}

fn arguments(parameters: &[HandlerParameter]) -> impl Iterator<Item = &HandlerArgument> {
    parameters.iter().filter_map(|parameter| match parameter {
        HandlerParameter::Argument(argument) => Some(&**argument),
        _ => None,
    })
}

fn check_qualifiers(kind: DefinitionKind, signature: &Signature) -> Result<()> {
    let noun = kind.noun();
    if let Safety::Unsafe(token) = &signature.safety {
        return Err(Error::new(token.span(), format!("a {noun} is called by clients: it cannot be `unsafe`")));
    }
    if let Some(variadic) = &signature.variadic {
        return Err(Error::new(variadic.span(), format!("a {noun} has a fixed number of parameters")));
    }
    Ok(())
}

/// Collects compile errors, so that all mistakes are reported at once.
#[derive(Default)]
pub(crate) struct ErrorCollector(Option<Error>);

impl ErrorCollector {
    pub(crate) fn add(&mut self, error: Error) {
        match &mut self.0 {
            Some(errors) => errors.combine(error),
            None => self.0 = Some(error),
        }
    }

    pub(crate) fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    pub(crate) fn finish(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}
