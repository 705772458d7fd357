//! The signature of a function that is a tool, a prompt or a resource.

use syn::spanned::Spanned;
use syn::{Attribute, Error, FnArg, LitStr, Receiver, Result, ReturnType, Safety, Signature, Type, parse_quote};

use crate::parameter::{self, Argument, Parameter};

/// As many as there are tuples to read arguments into.
const MOST_ARGUMENTS: usize = 16;

/// What a function is made into.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Tool,
    Prompt,
    Resource,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Tool, Self::Prompt, Self::Resource];

    /// What an attribute makes, by the last part of its path.
    pub(crate) fn of(attribute: &Attribute) -> Option<Self> {
        let name = &attribute.path().segments.last()?.ident;
        Self::ALL.into_iter().find(|kind| name == kind.noun())
    }

    /// Its name, which is also that of its attribute.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
        }
    }
}

/// What is known about a function that is made into something.
pub(crate) struct Function {
    pub(crate) kind: Kind,
    pub(crate) receiver: Option<Receiver>,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) is_async: bool,
    pub(crate) default_name: LitStr,
    pub(crate) output: ReturnType,
}

impl Function {
    /// Understands a signature, and takes the attributes off its parameters that are ours.
    pub(crate) fn understand(kind: Kind, signature: &mut Signature) -> Result<Self> {
        let mut problems = Problems::default();
        problems.note(check_qualifiers(kind, signature));
        let mut receiver = None;
        let mut parameters = Vec::new();
        for input in &mut signature.inputs {
            match input {
                FnArg::Receiver(this) => receiver = Some(this.clone()),
                FnArg::Typed(typed) => {
                    let span = typed.span();
                    if let Some(understood) = problems.note(parameter::understand(typed)) {
                        parameters.push((understood, span));
                    }
                }
            }
            parameter::strip(input);
        }
        let contexts = parameters.iter().filter(|(parameter, _)| matches!(parameter, Parameter::Context { .. }));
        if let Some((_, span)) = contexts.clone().nth(1) {
            problems.add(Error::new(*span, "a call has one context: leave this parameter out"));
        }
        let parameters: Vec<Parameter> = parameters.into_iter().map(|(parameter, _)| parameter).collect();
        let arguments: Vec<&Argument> = arguments(&parameters).collect();
        if let Some(beyond) = arguments.get(MOST_ARGUMENTS) {
            let message = format!("more than {MOST_ARGUMENTS} arguments: group some of them in a struct");
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

    /// The parameters that are read from the arguments.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &Argument> {
        arguments(&self.parameters)
    }

    /// The type that it returns, if it is written.
    pub(crate) fn returned(&self) -> Option<&Type> {
        match &self.output {
            ReturnType::Type(_, kind) => Some(kind),
            ReturnType::Default => None,
        }
    }
}

/// What lints say of functions is not all true of these: they take owned values and `&self` whether they need them or not,
/// and `async` says where they run.
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

fn arguments(parameters: &[Parameter]) -> impl Iterator<Item = &Argument> {
    parameters.iter().filter_map(|parameter| match parameter {
        Parameter::Argument(argument) => Some(&**argument),
        _ => None,
    })
}

fn check_qualifiers(kind: Kind, signature: &Signature) -> Result<()> {
    let noun = kind.noun();
    if let Safety::Unsafe(token) = &signature.safety {
        return Err(Error::new(token.span(), format!("a {noun} is called by anyone: it cannot be `unsafe`")));
    }
    if let Some(variadic) = &signature.variadic {
        return Err(Error::new(variadic.span(), format!("a {noun} has a fixed number of parameters")));
    }
    Ok(())
}

/// Several errors at once, so that all mistakes are shown.
#[derive(Default)]
pub(crate) struct Problems(Option<Error>);

impl Problems {
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
