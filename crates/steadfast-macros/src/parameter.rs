//! One parameter of a function that is a tool, prompt or resource: an argument of the request, the context, or state.

use quote::quote;
use syn::{Attribute, Error, Expr, FnArg, GenericArgument, Ident, LitStr, Pat, PatType, PathArguments, Result, Type};

use crate::docs;
use crate::options::{ArgumentDefault, ArgumentOptions};

/// Where the value of a function's parameter comes from.
pub(crate) enum HandlerParameter {
    /// A parameter of the function whose value is an argument of the client's request.
    Argument(Box<HandlerArgument>),
    /// The `Context` of the request: by value, or by reference.
    Context { by_reference: bool },
    /// State that was passed when the tool, prompt or resource was built.
    State { name: Ident, kind: Box<Type> },
}

/// A parameter of the function that is an argument of the request.
pub(crate) struct HandlerArgument {
    pub(crate) variable: Ident,
    pub(crate) name: LitStr,
    pub(crate) kind: Type,
    pub(crate) description: String,
    pub(crate) default: Option<ArgumentDefault>,
    /// The value of the argument's `complete` option: the possible values, or the function that completes it.
    pub(crate) complete: Option<Expr>,
}

/// Parses a parameter, and removes the attributes of these macros from it (`#[arg]`, `#[state]` and doc comments).
pub(crate) fn parse(parameter: &mut PatType) -> Result<HandlerParameter> {
    let attributes = std::mem::take(&mut parameter.attrs);
    let (ours, others): (Vec<_>, Vec<_>) = attributes.into_iter().partition(is_ours);
    parameter.attrs = others;

    let marked_as_state = ours.iter().find(|attribute| attribute.path().is_ident("state"));
    let common: Vec<_> = ours.iter().filter(|attribute| attribute.path().is_ident("arg")).collect();
    match (marked_as_state, common.first()) {
        (Some(_), Some(argument)) => Err(Error::new_spanned(argument, "state is not an argument: remove `#[arg]`")),
        (Some(_), None) => state(parameter),
        (None, None) if is_context(&parameter.ty) => {
            Ok(HandlerParameter::Context { by_reference: matches!(&*parameter.ty, Type::Reference(_)) })
        }
        (None, _) => argument(parameter, &ours),
    }
}

fn is_ours(attribute: &Attribute) -> bool {
    ["arg", "state", "doc"].iter().any(|name| attribute.path().is_ident(name))
}

fn is_context(kind: &Type) -> bool {
    match kind {
        Type::Path(path) => path
            .path
            .segments
            .last()
            .is_some_and(|last| last.ident == "Context" && matches!(last.arguments, PathArguments::None)),
        Type::Reference(reference) => reference.mutability.is_none() && is_context(&reference.elem),
        _ => false,
    }
}

fn state(parameter: &PatType) -> Result<HandlerParameter> {
    let name = variable(parameter)?;
    if let Type::Reference(reference) = &*parameter.ty {
        let inner = &reference.elem;
        let message = format!("state is cloned for each call: write `Arc<{}>`", source_text(inner));
        return Err(Error::new_spanned(&parameter.ty, message));
    }
    Ok(HandlerParameter::State { name, kind: parameter.ty.clone() })
}

fn argument(parameter: &PatType, attributes: &[Attribute]) -> Result<HandlerParameter> {
    let variable = variable(parameter)?;
    check_type(&parameter.ty)?;
    let mut options = ArgumentOptions::default();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("arg")) {
        options.take_from(attribute)?;
    }
    if let (Some(default), Some(inner)) = (&options.default, inside_option(&parameter.ty)) {
        let message = match default {
            ArgumentDefault::OfType(_) => "an `Option` may be omitted anyway: remove `#[arg(default)]`".to_owned(),
            ArgumentDefault::Value(_) => {
                format!("an argument with a default always has a value: write `{}`", source_text(inner))
            }
        };
        return Err(Error::new_spanned(&parameter.ty, message));
    }
    let unraw = variable.to_string();
    let unraw = unraw.strip_prefix("r#").unwrap_or(&unraw);
    // The underscore of `_city` silences a warning, and is not part of the name for clients.
    let plain = unraw.trim_start_matches('_');
    let name = options.rename.unwrap_or_else(|| LitStr::new(plain, variable.span()));
    let description = options.description.map_or_else(|| docs::text(attributes), |text| text.value());
    let kind = (*parameter.ty).clone();
    let ArgumentOptions { default, complete, .. } = options;
    Ok(HandlerParameter::Argument(Box::new(HandlerArgument { variable, name, kind, description, default, complete })))
}

fn variable(parameter: &PatType) -> Result<Ident> {
    match &*parameter.pat {
        Pat::Ident(pattern) if pattern.by_ref.is_none() && pattern.subpat.is_none() => Ok(pattern.ident.clone()),
        pattern => {
            let message =
                "give the parameter a plain name, which is the argument's name, and destructure it in the body";
            Err(Error::new_spanned(pattern, message))
        }
    }
}

/// Checks that the type of an argument is owned and named: neither a reference nor `impl ..`.
fn check_type(kind: &Type) -> Result<()> {
    match kind {
        Type::Reference(reference) => {
            let owned = match &*reference.elem {
                Type::Path(path) if path.path.is_ident("str") => "String".to_owned(),
                Type::Slice(slice) => format!("Vec<{}>", source_text(&slice.elem)),
                inner => source_text(inner),
            };
            Err(Error::new_spanned(kind, format!("an argument is an owned value: write `{owned}`")))
        }
        Type::ImplTrait(_) => Err(Error::new_spanned(kind, "an argument has one type: name it, instead of `impl ..`")),
        _ => Ok(()),
    }
}

/// The type as source text, without spaces between its tokens.
fn source_text(kind: &Type) -> String {
    let spaced = quote!(#kind).to_string();
    let close = [(" < ", "<"), (" >", ">"), (" :: ", "::"), (" ,", ","), ("& ", "&"), ("< ", "<")];
    close.iter().fold(spaced, |text, (from, to)| text.replace(from, to))
}

/// `T` of `Option<T>`.
fn inside_option(kind: &Type) -> Option<&Type> {
    let Type::Path(path) = kind else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "Option")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(inner) => Some(inner),
        _ => None,
    }
}

/// Removes the attributes of these macros from a parameter that could not be parsed, so that the compiler does not complain
/// about the attributes too.
pub(crate) fn strip(parameter: &mut FnArg) {
    if let FnArg::Typed(parameter) = parameter {
        parameter.attrs.retain(|attribute| !is_ours(attribute));
    }
}
