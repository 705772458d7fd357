//! The attribute macros `#[server]`, `#[tool]`, `#[prompt]` and `#[resource]` of
//! [steadfast](https://docs.rs/steadfast).
//!
//! Use the macros of this crate through the crate `steadfast`, which re-exports them: the generated code refers to
//! `steadfast`. A mistake in the use of a macro is a compile error at its location that says what to write instead.
//! All code that the macros generate can also be written by hand, with `Server::builder` and `ServerTool::new`.
#![forbid(unsafe_code)]

mod definition;
mod docs;
mod emit;
mod function;
mod options;
mod parameter;
mod server;
mod signature;
mod uri;

use proc_macro::TokenStream;

use signature::DefinitionKind;

/// Turns an `impl` block into a server: each method with `#[tool]` is a tool, each with `#[prompt]` a prompt, and each with
/// `#[resource]` a resource.
///
/// ```
/// use steadfast::{Context, ServerTool, server};
///
/// struct Weather {
///     station: String,
/// }
///
/// /// Weather for people who are outside.
/// #[server]
/// impl Weather {
///     /// Forecast for a city.
///     #[tool(read_only)]
///     async fn forecast(
///         &self,
///         /// City name
///         city: String,
///         #[arg(default = 3)] days: u8,
///     ) -> steadfast::ToolResult<String> {
///         Ok(format!("{}: sun in {city} for {days} days", self.station))
///     }
/// }
///
/// use steadfast::IntoServer;
/// let server = Weather { station: "roof".into() }.into_server();
/// assert_eq!(server.info().name, "Weather");
/// assert_eq!(server.instructions(), Some("Weather for people who are outside."));
/// assert!(server.tool("forecast").is_some());
/// ```
///
/// The doc comment of the `impl` block is the server's instructions, and its first paragraph is the server's description.
///
/// # Options
///
/// - `name = ".."`: the name of the server; the type's name by default.
/// - `version = ".."`: the version of the server; the version of the package by default.
/// - `title = ".."`, `description = ".."`, `instructions = ".."`, `website = ".."`, `icon = ".."`
/// - `expect_prompts`, `expect_resources`: declares the capability although the block has no prompts or resources, for those
///   that are added at run time.
/// - `part = x` makes the block a part of a server, in the same file or another of the crate, and `parts(x, y)` on
///   the main block includes these parts:
///
/// ```
/// use steadfast::{IntoServer, server};
/// struct Shop;
///
/// #[server(name = "shop", parts(admin))]
/// impl Shop {
///     /// Price of a thing.
///     #[tool]
///     async fn price(&self, thing: String) -> u32 {
///         7
///     }
/// }
///
/// #[server(part = admin)]
/// impl Shop {
///     /// Closes the shop.
///     #[tool(destructive)]
///     async fn close(&self) {}
/// }
///
/// assert_eq!(Shop.into_server().tools().len(), 2);
/// ```
#[proc_macro_attribute]
pub fn server(options: TokenStream, item: TokenStream) -> TokenStream {
    server::expand(options.into(), item.into()).into()
}

/// Turns a function into a tool: `async fn add(a: i64, b: i64) -> i64` becomes `fn add() -> ServerTool`. On a method of an
/// `impl` block with `#[server]`, makes the method one of the server's tools.
///
/// ```
/// use std::sync::Arc;
/// use steadfast::{Server, tool};
///
/// /// Adds two numbers.
/// #[tool]
/// async fn add(a: i64, b: i64) -> i64 {
///     a + b
/// }
///
/// /// Looks a word up.
/// #[tool(title = "Dictionary", read_only)]
/// async fn look_up(#[state] words: Arc<Vec<String>>, /** The word */ word: String) -> bool {
///     words.contains(&word)
/// }
///
/// let words = Arc::new(vec!["steadfast".to_owned()]);
/// let server = Server::builder("mixed", "1.0.0").tool(add()).tool(look_up(words)).build();
/// ```
///
/// An `async fn` runs on the async runtime and must not block. A plain `fn` runs on a thread that it may block.
///
/// # Parameters
///
/// Each parameter of the function is an argument of the tool with the same name, and the doc comment of the parameter
/// is the argument's description. Clients may omit an argument whose parameter is an `Option`. A parameter of the
/// type `Context` is the request's context. A parameter with `#[state]` (of functions, not of methods) is passed when
/// the tool is built, and cloned for each call.
///
/// - `#[arg(default)]`, `#[arg(default = 3)]`: the value if the argument is omitted.
/// - `#[arg(rename = "type")]`: the name that clients use.
/// - `#[arg(description = "..")]`: instead of a doc comment.
///
/// # Options
///
/// - `name = ".."`: the function's name by default; `title = ".."`; `description = ".."`: the doc comment by default.
/// - `read_only`, `destructive`, `idempotent`, `open_world`: hints, also as `destructive = false`.
/// - `needs = sampling`, `needs(elicitation, roots)`: client capabilities that the tool requires; calls of other clients are
///   rejected before the tool runs. The client capabilities are `elicitation`, `elicitation_url`, `sampling`, `sampling_tools`
///   and `roots`.
/// - `cancel = cooperative`: a cancellation does not drop the handler; the handler has to observe `ctx.cancelled()` and return.
/// - `task = optional`, `task = required`: calls run as MCP tasks for clients that support tasks; with `required`, calls of
///   other clients are rejected.
/// - `ask_first = some_async_fn`: an `async fn(Context) -> Result<(), ToolError>` that requests input from the client before a
///   call becomes an MCP task.
/// - `icon = "https://.."`: may be repeated.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    function::expand(DefinitionKind::Tool, options.into(), item.into()).into()
}

/// Turns a function into a prompt: `async fn review(code: String) -> String` becomes `fn review() -> ServerPrompt`. On a method
/// of an `impl` block with `#[server]`, makes the method one of the server's prompts.
///
/// ```
/// use steadfast::{IntoServer, PromptMessage, prompt, server};
///
/// struct Guide;
///
/// #[server]
/// impl Guide {
///     /// Plans a trip.
///     #[prompt(title = "Plan a trip")]
///     async fn trip(
///         &self,
///         /// Where to
///         #[arg(complete = ["Bergen", "Bern", "Oslo"])]
///         city: String,
///         days: Option<u8>,
///     ) -> Vec<PromptMessage> {
///         let days = days.unwrap_or(3);
///         vec![PromptMessage::user(format!("Plan {days} days in {city}.")), PromptMessage::assistant("With pleasure.")]
///     }
/// }
///
/// /// Explains a thing.
/// #[prompt]
/// fn explain(thing: String) -> String {
///     format!("Explain {thing} to me.")
/// }
///
/// let server = Guide.into_server();
/// server.add_prompt(explain());
/// let arguments = &server.prompt("trip").unwrap().definition().arguments.clone();
/// assert_eq!((arguments[0].name.as_str(), arguments[0].required), ("city", Some(true)));
/// assert_eq!(arguments[1].required, Some(false));
/// ```
///
/// The return type of the function implements `IntoPromptReply`: text, content, messages, or a `Result` of these. An `async fn`
/// runs on the async runtime and must not block. A plain `fn` runs on a thread that it may block.
///
/// # Parameters
///
/// As for [`macro@tool`]. On the wire the arguments of a prompt are strings: numbers, bools and the names of an enum are parsed
/// from them. An argument with a type of your own needs `Deserialize`.
///
/// - `#[arg(complete = ["one", "two"])]`, `#[arg(complete = some_async_fn)]`: completes the argument while a user types.
///
/// # Options
///
/// - `name = ".."`: the function's name by default; `title = ".."`; `description = ".."`: the doc comment by default.
/// - `needs = sampling`, `cancel = cooperative`, `icon = "https://.."`: as for [`macro@tool`].
#[proc_macro_attribute]
pub fn prompt(options: TokenStream, item: TokenStream) -> TokenStream {
    function::expand(DefinitionKind::Prompt, options.into(), item.into()).into()
}

/// Turns a function, or a method of an `impl` block with `#[server]`, into a resource. The URI of the resource comes first; a
/// URI with variables (RFC 6570) makes a resource template, and each variable is a parameter of the function.
///
/// ```
/// use steadfast::{IntoServer, resource, server};
///
/// struct Weather;
///
/// #[server]
/// impl Weather {
///     /// The weather in a city now.
///     #[resource("weather://{city}/now{?unit}", mime_type = "text/plain")]
///     async fn now(&self, city: String, unit: Option<String>) -> String {
///         format!("20 {} in {city}", unit.unwrap_or("C".into()))
///     }
///
///     /// All cities.
///     #[resource("weather://cities", title = "Cities")]
///     async fn cities(&self) -> &'static str {
///         "Bergen, Oslo"
///     }
/// }
///
/// /// A file of the notes folder.
/// #[resource("notes:///{name}", name = "note")]
/// fn note(name: String) -> std::io::Result<Vec<u8>> {
///     std::fs::read(format!("notes/{name}"))
/// }
///
/// let server = Weather.into_server();
/// server.add_resource_template(note());
/// assert!(server.resource("weather://cities").is_some());
/// assert_eq!(server.resource_templates().len(), 2);
/// ```
///
/// A function becomes `fn note() -> ServerResourceTemplate`, or `-> ServerResource` if the URI is fixed. The return type of the
/// function implements `IntoResourceReply`: text, bytes, JSON, contents, an `Option` (`None`: there is no such resource), or a
/// `Result` of these.
///
/// # Parameters
///
/// The parameters are the variables of the URI, in any order; variables that may be absent are an `Option`, or have
/// `#[arg(default = ..)]`. Numbers, bools and the names of an enum are parsed from the text in the URI; a URI that cannot be
/// parsed in this way is an unknown resource. `Context`, `#[state]` and `#[arg(complete = ..)]` are as for [`macro@prompt`].
///
/// # Options
///
/// - `name = ".."`: the function's name by default; `title = ".."`; `description = ".."`: the doc comment by default.
/// - `mime_type = ".."`; `size = 1024`, in bytes, of a fixed URI; `annotations = Annotations::new().with_priority(1.0)`;
///   `cache = CacheHints::new(60_000, CacheScope::Public)`: any expression of that type.
/// - `needs = roots`, `cancel = cooperative`, `icon = "https://.."`: as for [`macro@tool`].
#[proc_macro_attribute]
pub fn resource(options: TokenStream, item: TokenStream) -> TokenStream {
    function::expand(DefinitionKind::Resource, options.into(), item.into()).into()
}

/// Compiles the examples of the README as doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeDoctests;
