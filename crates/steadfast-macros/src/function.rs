//! `#[tool]` on a function.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Error, GenericParam, Generics, Ident, ItemFn, Result};

use crate::docs;
use crate::emit::{self, Callee};
use crate::options::ToolOptions;
use crate::parameter::{self, Parameter};
use crate::signature::{ToolFunction, allowed_lints};

pub(crate) fn expand(options: TokenStream, item: TokenStream) -> TokenStream {
    let Ok(mut function) = syn::parse2::<ItemFn>(item.clone()) else {
        let message = "`#[tool]` goes on a function, or on a method in a `#[server]` block";
        return Error::new_spanned(&item, message).into_compile_error();
    };
    match try_expand(options, &mut function) {
        Ok(tokens) => tokens,
        Err(error) => {
            // The function stays, so that what calls it does not fail as well.
            function.sig.inputs.iter_mut().for_each(parameter::strip);
            let error = error.into_compile_error();
            quote! { #error #[allow(unused)] #function }
        }
    }
}

fn try_expand(options: TokenStream, function: &mut ItemFn) -> Result<TokenStream> {
    if let Some(receiver) = function.sig.receiver() {
        let message = "a method is a tool only in a block with `#[server]`: put `#[server]` on the `impl`";
        return Err(Error::new_spanned(receiver, message));
    }
    let options = ToolOptions::parse(options)?;
    let docs = docs::text(&function.attrs);
    let understood = ToolFunction::understand(&mut function.sig)?;

    let name = &function.sig.ident;
    let turbofish = turbofish(&function.sig.generics);
    let states: Vec<_> = understood.parameters.iter().filter_map(state).collect();
    let captured = states.iter().map(|(name, _)| (*name).clone()).collect();
    let callee = Callee { path: quote! { #name #turbofish }, receiver: None, captured };
    let tool = emit::tool(&understood, &options, &docs, &callee);

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
        #visibility fn #name #generics (#(#state_names: #state_types),*) -> ::steadfast::Tool #bounds {
            #(#inside)*
            #allowed
            #signature #block
            #tool
        }
    })
}

fn state(parameter: &Parameter) -> Option<(&Ident, &syn::Type)> {
    match parameter {
        Parameter::State { name, kind } => Some((name, kind)),
        _ => None,
    }
}

/// Attributes of the function that makes the tool; all others belong to the function that it runs.
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
