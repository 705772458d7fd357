//! `#[tool]` and `#[prompt]` on a function.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Error, GenericParam, Generics, Ident, ItemFn, LitStr, Result};

use crate::docs;
use crate::emit::{self, Callee};
use crate::options::{PromptOptions, ToolOptions};
use crate::parameter::{self, Parameter};
use crate::signature::{Function, Kind, allowed_lints};

pub(crate) fn expand(kind: Kind, options: TokenStream, item: TokenStream) -> TokenStream {
    let Ok(mut function) = syn::parse2::<ItemFn>(item.clone()) else {
        let message = format!("`#[{}]` goes on a function, or on a method in a `#[server]` block", kind.noun());
        return Error::new_spanned(&item, message).into_compile_error();
    };
    match try_expand(kind, options, &mut function) {
        Ok(tokens) => tokens,
        Err(error) => {
            // The function stays, so that what calls it does not fail as well.
            function.sig.inputs.iter_mut().for_each(parameter::strip);
            let error = error.into_compile_error();
            quote! { #error #[allow(unused)] #function }
        }
    }
}

fn try_expand(kind: Kind, options: TokenStream, function: &mut ItemFn) -> Result<TokenStream> {
    if let Some(receiver) = function.sig.receiver() {
        let noun = kind.noun();
        let message = format!("a method is a {noun} only in a block with `#[server]`: put `#[server]` on the `impl`");
        return Err(Error::new_spanned(receiver, message));
    }
    let docs = docs::text(&function.attrs);
    let made = Made::parse(kind, options)?;
    let understood = Function::understand(kind, &mut function.sig)?;

    let name = &function.sig.ident;
    let turbofish = turbofish(&function.sig.generics);
    let states: Vec<_> = understood.parameters.iter().filter_map(state).collect();
    let captured = states.iter().map(|(name, _)| (*name).clone()).collect();
    let callee = Callee { path: quote! { #name #turbofish }, receiver: None, captured };
    let made = made.emit(&understood, &docs, &callee);
    let kind = kind.made();

    let (outside, inside): (Vec<&Attribute>, Vec<&Attribute>) = function.attrs.iter().partition(|a| is_outside(a));
    let allowed = allowed_lints();
    let visibility = &function.vis;
    let generics = &function.sig.generics;
    let bounds = &generics.where_clause;
    let state_names = states.iter().map(|(name, _)| name);
    let state_types = states.iter().map(|(_, kind)| kind);
    let signature = &function.sig;
    let block = &function.block;
    Ok(quote! {
        #(#outside)*
        #visibility fn #name #generics (#(#state_names: #state_types),*) -> ::steadfast::#kind #bounds {
            #(#inside)*
            #allowed
            #signature #block
            #made
        }
    })
}

/// The options of what a function is made into.
pub(crate) enum Made {
    Tool(ToolOptions),
    Prompt(PromptOptions),
}

impl Made {
    pub(crate) fn parse(kind: Kind, options: TokenStream) -> Result<Self> {
        match kind {
            Kind::Tool => ToolOptions::parse(options).map(Self::Tool),
            Kind::Prompt => PromptOptions::parse(options).map(Self::Prompt),
        }
    }

    /// The expression that makes it.
    pub(crate) fn emit(&self, function: &Function, docs: &str, callee: &Callee) -> TokenStream {
        match self {
            Self::Tool(options) => emit::tool(function, options, docs, callee),
            Self::Prompt(options) => emit::prompt(function, options, docs, callee),
        }
    }

    /// The name that it is given, if it is not that of the function.
    pub(crate) fn name(self) -> Option<LitStr> {
        match self {
            Self::Tool(options) => options.described.name,
            Self::Prompt(options) => options.described.name,
        }
    }
}

fn state(parameter: &Parameter) -> Option<(&Ident, &syn::Type)> {
    match parameter {
        Parameter::State { name, kind } => Some((name, kind)),
        _ => None,
    }
}

/// Attributes of the function that makes the tool or prompt; all others belong to the function that it runs.
fn is_outside(attribute: &Attribute) -> bool {
    ["doc", "cfg", "deprecated", "must_use"].iter().any(|name| attribute.path().is_ident(name))
}

fn turbofish(generics: &Generics) -> TokenStream {
    let names: Vec<&Ident> = generics
        .params
        .iter()
        .filter_map(|parameter| match parameter {
            GenericParam::Type(parameter) => Some(&parameter.ident),
            GenericParam::Const(parameter) => Some(&parameter.ident),
            GenericParam::Lifetime(_) => None,
        })
        .collect();
    if names.is_empty() {
        TokenStream::new()
    } else {
        quote! { ::<#(#names),*> }
    }
}
