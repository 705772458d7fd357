//! Generates the expressions that build a `ServerTool`, a `ServerPrompt`, a `ServerResource` or a
//! `ServerResourceTemplate`.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Expr, ExprLit, Ident, Lit, LitStr, Type};

use crate::options::{ArgumentDefault, CommonMacroOptions, PromptMacroOptions, ResourceMacroOptions, ToolMacroOptions};
use crate::parameter::{HandlerArgument, HandlerParameter};
use crate::signature::{DefinitionKind, HandlerSignature};

/// How the generated handler calls the function that has `#[tool]`, `#[prompt]` or `#[resource]`.
pub(crate) struct HandlerCallSyntax {
    /// The path of the function that the generated handler calls, such as `Self::forecast` or `add`.
    pub(crate) path: TokenStream,
    /// Its first argument: `&*this`.
    pub(crate) receiver: Option<TokenStream>,
    /// The variables that the generated handler clones for each call: `this`, and state.
    pub(crate) captured: Vec<Ident>,
}

/// Generates the expression that builds the `ServerTool`.
pub(crate) fn tool(
    function: &HandlerSignature,
    options: &ToolMacroOptions,
    docs: &str,
    callee: &HandlerCallSyntax,
) -> TokenStream {
    let builder =
        builder_with_common_options(&quote! { ::steadfast::ServerTool::new }, None, function, &options.common, docs);
    let cooperative = options.cooperative.then(|| quote! { .cooperative() });
    let hints: Vec<TokenStream> = [
        options.read_only.map(|hint| quote! { .with_read_only_hint(#hint) }),
        options.destructive.map(|hint| quote! { .with_destructive_hint(#hint) }),
        options.idempotent.map(|hint| quote! { .with_idempotent_hint(#hint) }),
        options.open_world.map(|hint| quote! { .with_open_world_hint(#hint) }),
    ]
    .into_iter()
    .flatten()
    .collect();
    let annotations =
        (!hints.is_empty()).then(|| quote! { .annotations(::steadfast::__private::ToolAnnotations::new()#(#hints)*) });
    let properties = properties(function);
    let needs = needs(&options.needs);
    let task = options.task.iter();
    let task = quote! { #(.task(::steadfast::server::tasks::TaskMode::#task))* };
    let ask_first = options.ask_first.iter().map(|ask| quote_spanned! {ask.span()=> .ask_first(#ask) });
    let given = quote! { #builder #annotations #needs #cooperative #task #(#ask_first)*, #properties };
    run(function, callee, if function.is_async { "async_handler" } else { "blocking_handler_of" }, &given)
}

/// Generates the expression that builds the `ServerPrompt`.
pub(crate) fn prompt(
    function: &HandlerSignature,
    options: &PromptMacroOptions,
    docs: &str,
    callee: &HandlerCallSyntax,
) -> TokenStream {
    let builder =
        builder_with_common_options(&quote! { ::steadfast::ServerPrompt::new }, None, function, &options.common, docs);
    let cooperative = options.cooperative.then(|| quote! { .cooperative() });
    let arguments = function.arguments().map(|argument| {
        let HandlerArgument { name, kind, description, complete, .. } = argument;
        let required = if argument.default.is_none() {
            quote! { ::steadfast::__private::is_required::<#kind>() }
        } else {
            quote! { false }
        };
        let complete = complete.iter().map(|complete| quote_spanned! {complete.span()=> .complete(#name, #complete) });
        quote! { .argument(::steadfast::__private::prompt_argument(#name, #description, #required)) #(#complete)* }
    });
    let needs = needs(&options.needs);
    let given = quote! { #builder #needs #cooperative #(#arguments)* };
    run(function, callee, if function.is_async { "prompt_on_workers" } else { "prompt_on_threads" }, &given)
}

/// Generates the expression that builds the `ServerResource` or the `ServerResourceTemplate`.
pub(crate) fn resource(
    function: &HandlerSignature,
    options: &ResourceMacroOptions,
    docs: &str,
    callee: &HandlerCallSyntax,
) -> TokenStream {
    let fixed = options.uri.variables.is_empty();
    let begin = if fixed {
        quote! { ::steadfast::ServerResource::new }
    } else {
        quote! { ::steadfast::ServerResourceTemplate::new }
    };
    let builder = builder_with_common_options(&begin, Some(&options.uri.text), function, &options.common, docs);
    let mime_type = options.mime_type.iter();
    let cooperative = options.cooperative.then(|| quote! { .cooperative() });
    let completed = function.arguments().filter_map(|argument| {
        let (name, complete) = (&argument.name, argument.complete.as_ref()?);
        Some(quote_spanned! {complete.span()=> .complete(#name, #complete) })
    });
    let needs = needs(&options.needs);
    let settings = [("size", &options.size), ("annotations", &options.annotations), ("cache", &options.cache)];
    let settings = settings.into_iter().filter_map(|(name, value)| {
        let value = value.as_ref()?;
        let setter = Ident::new(name, Span::call_site());
        Some(quote_spanned! {value.span()=> .#setter(#value) })
    });
    let given = quote! { #builder #(.mime_type(#mime_type))* #(#settings)* #needs #cooperative #(#completed)* };
    let taker = match (fixed, function.is_async) {
        (true, true) => "resource_on_workers",
        (true, false) => "resource_on_threads",
        (false, true) => "template_on_workers",
        (false, false) => "template_on_threads",
    };
    run(function, callee, taker, &given)
}

/// Generates the call that completes a builder with the user's function: `run` is the name of the function that is called,
/// `given` are its first arguments.
fn run(function: &HandlerSignature, callee: &HandlerCallSyntax, run: &str, given: &TokenStream) -> TokenStream {
    let names = function.arguments().map(|argument| &argument.name);
    let variables = function.arguments().map(variable);
    let read = function.arguments().map(deserialized_type);
    let context = Ident::new("__context", Span::mixed_site());
    let passed = function.parameters.iter().map(|parameter| passed(parameter, &context));
    let HandlerCallSyntax { path, receiver, captured } = callee;
    let receiver = receiver.iter();
    let checks = checks(function);
    // If the return type does not satisfy the bounds of this call, the error has the span of the return type.
    let place = function.return_type().map_or_else(|| function.default_name.span(), Spanned::span);
    let place = Span::call_site().located_at(place);
    let run = Ident::new(run, place);
    let call = quote_spanned! {place=> #path(#(#receiver,)* #(#passed),*) };
    let body = if function.is_async {
        quote_spanned! {place=> async move { #call.await } }
    } else {
        call
    };
    quote_spanned! {place=> {
        #checks
        ::steadfast::__private::#run(
            #given,
            &[#(#names),*],
            {
                #(let #captured = ::core::clone::Clone::clone(&#captured);)*
                move |(#(#variables,)*): (#(#read,)*), #context: ::steadfast::Context| {
                    #(let #captured = ::core::clone::Clone::clone(&#captured);)*
                    #body
                }
            },
        )
    }}
}

fn needs(needs: &[Ident]) -> TokenStream {
    quote! { #(.needs(::steadfast::__private::RequiredClientCapability::#needs))* }
}

/// The code that builds a tool, prompt or resource with the options that all of them have: name, title, description and icons.
fn builder_with_common_options(
    begin: &TokenStream,
    uri: Option<&LitStr>,
    function: &HandlerSignature,
    options: &CommonMacroOptions,
    docs: &str,
) -> TokenStream {
    let uri = uri.into_iter();
    let name = options.name.as_ref().unwrap_or(&function.default_name);
    let title = options.title.iter();
    let description = options.description.as_ref().map_or_else(|| docs.to_owned(), LitStr::value);
    let description = Some(description).filter(|text| !text.is_empty()).into_iter();
    let icons = &options.icons;
    quote! {
        #begin(#(#uri,)* #name)
            #(.title(#title))*
            #(.description(#description))*
            #(.icon(::steadfast::__private::Icon::new(#icons)))*
    }
}

fn properties(function: &HandlerSignature) -> TokenStream {
    let properties = function.arguments().map(|argument| {
        let HandlerArgument { name, kind, description, .. } = argument;
        match default(argument) {
            None => quote! { .argument::<#kind>(#name, #description) },
            Some(default) => quote! {
                .argument_or::<#kind>(#name, #description, {
                    #[allow(unused_imports)]
                    use ::steadfast::__private::ArgumentDefaultJsonFallback as _;
                    let value: #kind = #default;
                    ::steadfast::__private::ArgumentDefaultJson(&value).json()
                })
            },
        }
    });
    quote! { <::steadfast::__private::ArgumentSchemaBuilder as ::core::default::Default>::default()#(#properties)* }
}

/// The type that an argument of the request is deserialized to: an `Option` if the argument has a default.
fn deserialized_type(argument: &HandlerArgument) -> TokenStream {
    let kind = &argument.kind;
    if argument.default.is_some() {
        quote! { ::core::option::Option<#kind> }
    } else {
        quote! { #kind }
    }
}

/// The variable of an argument in the generated code. The variable does not have the name of the user's parameter, since a name
/// such as `_unused` must not be used.
fn variable(argument: &HandlerArgument) -> Ident {
    format_ident!("argument_{}", argument.variable.unraw(), span = Span::mixed_site())
}

/// The expression that the generated code passes to the user's function for a parameter.
fn passed(parameter: &HandlerParameter, context: &Ident) -> TokenStream {
    match parameter {
        HandlerParameter::Context { by_reference: false } => quote! { #context },
        HandlerParameter::Context { by_reference: true } => quote! { &#context },
        HandlerParameter::State { name, .. } => quote! { #name },
        HandlerParameter::Argument(argument) => {
            let (variable, kind) = (variable(argument), &argument.kind);
            match default(argument) {
                None => quote! { #variable },
                Some(default) => quote! { #variable.unwrap_or_else(|| -> #kind { #default }) },
            }
        }
    }
}

/// The expression of an argument's default value. A string literal is converted if the type of the argument is `String`.
fn default(argument: &HandlerArgument) -> Option<TokenStream> {
    match argument.default.as_ref()? {
        ArgumentDefault::OfType(place) => Some(quote_spanned! {*place=> ::core::default::Default::default() }),
        ArgumentDefault::Value(value) => match &**value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) if is_string(&argument.kind) => {
                Some(quote_spanned! {text.span()=> ::std::string::String::from(#text) })
            }
            value => Some(quote! { #value }),
        },
    }
}

fn is_string(kind: &Type) -> bool {
    matches!(kind, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "String"))
}

/// Generates statements that fail to compile with the span of a parameter's type, if the type does not satisfy its bounds.
fn checks(function: &HandlerSignature) -> TokenStream {
    let parameters = function.arguments().map(|argument| {
        let kind = &argument.kind;
        let place = kind.span();
        let assert = match function.kind {
            DefinitionKind::Tool => quote_spanned! {place=> assert_parameter },
            DefinitionKind::Prompt => quote_spanned! {place=> assert_prompt_parameter },
            DefinitionKind::Resource => quote_spanned! {place=> assert_resource_parameter },
        };
        quote_spanned! {place=> let _ = ::steadfast::__private::#assert::<#kind>; }
    });
    quote! { #(#parameters)* }
}
