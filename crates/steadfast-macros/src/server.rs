//! Expands the attribute macro `#[server]` on an `impl` block.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Ident, ImplItem, ImplItemFn, ItemImpl, LitStr, Meta, Receiver, ReceiverKind, Result, Type,
    TypeReference,
};

use crate::definition::ItemMacroOptions;
use crate::docs;
use crate::emit::HandlerCallSyntax;
use crate::options::ServerMacroOptions;
use crate::parameter::{self, HandlerParameter};
use crate::signature::{DefinitionKind, ErrorCollector, HandlerSignature, allowed_lints};

pub(crate) fn expand(options: TokenStream, item: TokenStream) -> TokenStream {
    let Ok(mut block) = syn::parse2::<ItemImpl>(item.clone()) else {
        let message = "`#[server]` goes on an `impl` block, whose methods with `#[tool]`, `#[prompt]` and `#[resource]` \
                       are what it serves";
        return Error::new_spanned(&item, message).into_compile_error();
    };
    let generated = try_expand(options, &mut block).unwrap_or_else(Error::into_compile_error);
    quote! { #block #generated }
}

/// The code that `#[server]` adds after the `impl` block. The attributes that only steadfast understands, such as
/// `#[tool]` and `#[arg]`, are removed from the `impl` block, even after an error.
fn try_expand(options: TokenStream, block: &mut ItemImpl) -> Result<TokenStream> {
    let mut problems = ErrorCollector::default();
    let options = problems.note(ServerMacroOptions::parse(options));
    if let Some((implemented, _)) = &block.trait_ {
        let message = "`#[server]` goes on an `impl` block of the type itself, not of a trait";
        problems.add(Error::new_spanned(implemented, message));
    }
    let mut items: Vec<ServerItemMethod> = Vec::new();
    for item in &mut block.items {
        let ImplItem::Fn(method) = item else { continue };
        let Some((kind, attribute)) = take_attribute(&mut method.attrs) else { continue };
        if let Some((_, second)) = take_attribute(&mut method.attrs) {
            let message = "a method can have only one of `#[tool]`, `#[prompt]` and `#[resource]`: \
                           write another method that calls this one";
            problems.add(Error::new_spanned(second, message));
        }
        let item = problems.note(server_item(kind, &attribute, method));
        method.sig.inputs.iter_mut().for_each(parameter::strip);
        method.attrs.push(allowed_lints());
        let Some(item) = item else { continue };
        let same = |other: &&ServerItemMethod| other.kind == kind && other.key.value() == item.key.value();
        if let Some(twin) = items.iter().filter(same).find(|other| !other.conditional) {
            let (noun, key) = (kind.noun(), twin.key.value());
            let message = match kind {
                DefinitionKind::Tool | DefinitionKind::Prompt => {
                    format!("there is a {noun} named `{key}` already: give this one another `name`")
                }
                DefinitionKind::Resource => {
                    format!("there is a resource at `{key}` already: give this one another URI")
                }
            };
            problems.add(Error::new(item.key.span(), message));
        }
        items.push(item);
    }
    problems.finish()?;
    let options = options.unwrap_or_default();
    let part = part_function(options.part.as_ref());
    let list = list_function(block, &part, items.iter().map(|item| &item.add));
    if options.part.is_some() {
        return Ok(list);
    }
    let server = server_type(block, &options, &part);
    Ok(quote! { #list #server })
}

/// A method that is a tool, a prompt or a resource.
struct ServerItemMethod {
    kind: DefinitionKind,
    /// What identifies the tool, prompt or resource among others of its kind: its name, or its URI.
    key: LitStr,
    /// Whether the method of the tool, prompt or resource has a `#[cfg]` attribute.
    conditional: bool,
    /// The generated statement that adds the tool, prompt or resource to the server.
    add: TokenStream,
}

fn take_attribute(attributes: &mut Vec<Attribute>) -> Option<(DefinitionKind, Attribute)> {
    let found = attributes
        .iter()
        .enumerate()
        .find_map(|(position, attribute)| Some((position, DefinitionKind::of(attribute)?)));
    let (position, kind) = found?;
    Some((kind, attributes.remove(position)))
}

fn server_item(kind: DefinitionKind, attribute: &Attribute, method: &mut ImplItemFn) -> Result<ServerItemMethod> {
    let noun = kind.noun();
    let options = match &attribute.meta {
        Meta::Path(_) => TokenStream::new(),
        Meta::List(list) => list.tokens.clone(),
        Meta::NameValue(pair) => {
            return Err(Error::new_spanned(pair, format!("write `#[{noun}]` or `#[{noun}(..)]`")));
        }
    };
    let definition = ItemMacroOptions::parse(kind, options)?;
    if let Some(parameter) = method.sig.generics.params.first() {
        let message = format!(
            "a {noun} is called with JSON, which has no type parameters: name the types, or put the parameter on the \
             `impl` block"
        );
        return Err(Error::new_spanned(parameter, message));
    }
    let function = HandlerSignature::parse(kind, &mut method.sig)?;
    definition.check(&function)?;
    if let Some(HandlerParameter::State { name, .. }) =
        function.parameters.iter().find(|parameter| matches!(parameter, HandlerParameter::State { .. }))
    {
        let message =
            format!("a method has its state in `self`: keep this in a field, or write a function with `#[{noun}]`");
        return Err(Error::new(name.span(), message));
    }
    let this = Ident::new("__this", Span::mixed_site());
    let receiver = receiver(&function, method, &this)?;
    let name = &method.sig.ident;
    let callee = HandlerCallSyntax { path: quote! { Self::#name }, receiver: Some(receiver), captured: vec![this] };
    let expression = definition.emit(&function, &docs::text(&method.attrs), &callee);
    let adder = definition.adder();
    let conditions: Vec<&Attribute> = method.attrs.iter().filter(|a| a.path().is_ident("cfg")).collect();
    Ok(ServerItemMethod {
        kind,
        conditional: !conditions.is_empty(),
        add: quote! { #(#conditions)* let __server = __server.#adder(#expression); },
        key: definition.key(&function),
    })
}

/// The expression that the generated code passes for `self`: all handlers share one value in an `Arc`.
fn receiver(function: &HandlerSignature, method: &ImplItemFn, this: &Ident) -> Result<TokenStream> {
    let Some(receiver) = &function.receiver else {
        let noun = function.kind.noun();
        let message = format!(
            "add `&self`: a {noun} of a server is called on the server. One that does not need it can be a function \
             with `#[{noun}]`"
        );
        return Err(Error::new(method.sig.ident.span(), message));
    };
    let shared = format!("calls run concurrently and share the server, so a {} takes `&self`", function.kind.noun());
    match shape(receiver) {
        SelfParameterKind::Reference => Ok(quote! { &*#this }),
        SelfParameterKind::ArcReference => Ok(quote! { &#this }),
        SelfParameterKind::Arc => Ok(quote! { #this }),
        SelfParameterKind::Exclusive => {
            let message = format!("{shared}: put mutable state into a `Mutex` or an atomic");
            Err(Error::new_spanned(receiver, message))
        }
        SelfParameterKind::Other => Err(Error::new_spanned(receiver, format!("{shared} (or `self: Arc<Self>`)"))),
    }
}

enum SelfParameterKind {
    /// `&self`
    Reference,
    /// `self: &Arc<Self>`
    ArcReference,
    /// `self: Arc<Self>`
    Arc,
    /// `&mut self`
    Exclusive,
    Other,
}

fn shape(receiver: &Receiver) -> SelfParameterKind {
    let kind = match &receiver.kind {
        ReceiverKind::Reference(_, _, Some(_)) => return SelfParameterKind::Exclusive,
        ReceiverKind::Reference(..) => return SelfParameterKind::Reference,
        ReceiverKind::Typed(_, kind) => kind,
        _ => return SelfParameterKind::Other,
    };
    match &**kind {
        Type::Reference(TypeReference { mutability: Some(_), .. }) => SelfParameterKind::Exclusive,
        Type::Reference(TypeReference { elem, .. }) if is_arc(elem) => SelfParameterKind::ArcReference,
        Type::Reference(_) => SelfParameterKind::Reference,
        kind if is_arc(kind) => SelfParameterKind::Arc,
        _ => SelfParameterKind::Other,
    }
}

fn is_arc(kind: &Type) -> bool {
    matches!(kind, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Arc"))
}

fn part_function(part: Option<&Ident>) -> Ident {
    match part {
        Some(part) => format_ident!("__part_{}", part, span = part.span()),
        None => Ident::new("__steadfast_server", Span::call_site()),
    }
}

/// Generates the function that adds the tools, prompts and resources of this `impl` block to a server.
fn list_function<'a>(block: &ItemImpl, name: &Ident, added: impl Iterator<Item = &'a TokenStream>) -> TokenStream {
    let (generics, _, bounds) = block.generics.split_for_impl();
    let kind = &block.self_ty;
    let conditions = conditions(block);
    let this = Ident::new("__this", Span::mixed_site());
    quote! {
        #(#conditions)*
        #[doc(hidden)]
        impl #generics #kind #bounds {
            #[allow(clippy::all, clippy::pedantic, private_interfaces, unused_variables)]
            // A part may be in another file than the main block.
            pub(crate) fn #name(
                #this: ::steadfast::__private::Arc<Self>,
                __server: ::steadfast::__private::ServerBuilder,
            ) -> ::steadfast::__private::ServerBuilder {
                #(#added)*
                __server
            }
        }
    }
}

/// Generates the implementation of `ServerType` for the type whose `impl` block has `#[server]`.
fn server_type(block: &ItemImpl, options: &ServerMacroOptions, main: &Ident) -> TokenStream {
    let (generics, _, bounds) = block.generics.split_for_impl();
    let kind = &block.self_ty;
    let conditions = conditions(block);
    let docs = docs::text(&block.attrs);
    let name = options.name.clone().unwrap_or_else(|| LitStr::new(&type_name(kind), kind.span()));
    let version =
        options.version.as_ref().map_or_else(|| quote! { env!("CARGO_PKG_VERSION") }, |text| quote! { #text });
    let title = options.title.iter();
    let text = options.description.as_ref().map_or_else(|| docs::first_paragraph(&docs), LitStr::value);
    let description = Some(text).filter(|text| !text.is_empty()).into_iter();
    let instructed = options.instructions.as_ref().map_or(docs, LitStr::value);
    let instructions = Some(instructed).filter(|text| !text.is_empty()).into_iter();
    let website = options.website.iter();
    let icons = &options.icons;
    let expected = [("expect_prompts", options.expect_prompts), ("expect_resources", options.expect_resources)];
    let expected = expected.into_iter().filter(|(_, wanted)| *wanted == Some(true));
    let expected = expected.map(|(method, _)| Ident::new(method, kind.span()));
    let parts = options.parts.iter().map(|part| {
        let function = part_function(Some(part));
        quote_spanned! {part.span()=>
            let __server = Self::#function(::steadfast::__private::Arc::clone(&__this), __server);
        }
    });
    let implemented = quote_spanned! {kind.span()=> ::steadfast::__private::ServerType };
    quote! {
        #(#conditions)*
        impl #generics #implemented for #kind #bounds {
            fn server(__this: ::steadfast::__private::Arc<Self>) -> ::steadfast::Server {
                let __server = ::steadfast::Server::builder(#name, #version)
                    #(.title(#title))*
                    #(.description(#description))*
                    #(.instructions(#instructions))*
                    #(.website(#website))*
                    #(.icon(::steadfast::__private::Icon::new(#icons)))*
                    #(.#expected())*;
                let __server = Self::#main(::steadfast::__private::Arc::clone(&__this), __server);
                #(#parts)*
                __server.build()
            }
        }
    }
}

fn conditions(block: &ItemImpl) -> Vec<&Attribute> {
    block.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg")).collect()
}

fn type_name(kind: &Type) -> String {
    match kind {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default(),
        _ => "server".to_owned(),
    }
}
