//! `#[tool]`, `#[prompt]` and `#[resource]` on a function.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::{Attribute, Error, GenericParam, Generics, Ident, ItemFn, Result};

use crate::definition::ItemMacroOptions;
use crate::docs;
use crate::emit::HandlerCallSyntax;
use crate::parameter::{self, HandlerParameter};
use crate::signature::{DefinitionKind, HandlerSignature, allowed_lints};

pub(crate) fn expand(kind: DefinitionKind, options: TokenStream, item: TokenStream) -> TokenStream {
    let Ok(mut function) = syn::parse2::<ItemFn>(item.clone()) else {
        let message = format!("`#[{}]` goes on a function, or on a method in a `#[server]` block", kind.noun());
        return Error::new_spanned(&item, message).into_compile_error();
    };
    match try_expand(kind, options, &mut function) {
        Ok(tokens) => tokens,
        Err(error) => {
            // The function stays, so that its callers still compile.
            function.sig.inputs.iter_mut().for_each(parameter::strip);
            let error = error.into_compile_error();
            quote! { #error #[allow(unused)] #function }
        }
    }
}

fn try_expand(kind: DefinitionKind, options: TokenStream, function: &mut ItemFn) -> Result<TokenStream> {
    if let Some(receiver) = function.sig.receiver() {
        let noun = kind.noun();
        let message = format!("a method is a {noun} only in a block with `#[server]`: put `#[server]` on the `impl`");
        return Err(Error::new_spanned(receiver, message));
    }
    let docs = docs::text(&function.attrs);
    let definition = ItemMacroOptions::parse(kind, options)?;
    let mut function_info = HandlerSignature::parse(kind, &mut function.sig)?;

    let name = &function.sig.ident;
    for parameter in &mut function_info.parameters {
        // A state parameter with the name of the function would shadow it.
        if let HandlerParameter::State { name: state, .. } = parameter
            && state == name
        {
            *state = format_ident!("{}_state", name.unraw(), span = Span::mixed_site());
        }
    }
    let turbofish = turbofish(&function.sig.generics);
    let states: Vec<_> = function_info.parameters.iter().filter_map(state).collect();
    let captured = states.iter().map(|(name, _)| (*name).clone()).collect();
    let callee = HandlerCallSyntax { path: quote! { #name #turbofish }, receiver: None, captured };
    definition.check(&function_info)?;
    let expression = definition.emit(&function_info, &docs, &callee);
    let kind = definition.kind();

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
            #expression
        }
    })
}

fn state(parameter: &HandlerParameter) -> Option<(&Ident, &syn::Type)> {
    match parameter {
        HandlerParameter::State { name, kind } => Some((name, kind)),
        _ => None,
    }
}

/// Whether an attribute of the user's function is put on the generated function. All other attributes stay on the function that
/// the user wrote.
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
