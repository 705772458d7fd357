//! A resource template: a family of resources whose URIs have variables.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use steadfast_model as model;
use steadfast_model::{CacheHints, ReadResourceResult, UriTemplate};

use super::read;
use super::read::{ReadResultDefaults, ResourceReadRequest, StartResourceReadFn, has_scheme};
use super::reply::IntoResourceReply;
use crate::error::Error;
use crate::runtime::{FirstPollHistory, HandlerJob};
use crate::server::completion::{Completer, Completers};
use crate::server::context::Context;
use crate::server::decode::strings;
use crate::server::decode::strings::NamedStrings;
use crate::server::dispatch::encode::ServerHandlerOutput;
use crate::server::input::need::RequiredClientCapability;
use crate::server::registry::description::{contents_setters, description_setters, needs_setter};
use crate::server::registry::names;
use crate::server::tool::handler::{BlockingHandler, Handler};
use crate::server::tool::parameters::ParameterTuple;

/// Resources whose URIs match a template (RFC 6570). Cheap to clone.
///
/// The handler of a resource template takes the variables of the URI, like the arguments of a tool: numbers, bools and
/// the names of an enum are decoded from text, and an optional variable is an `Option`. The values of variables are
/// percent-decoded, and cannot escape their position by path segments like `..`: see [`steadfast_model::UriTemplate`].
///
/// ```
/// use serde::Deserialize;
/// use steadfast::{ServerResourceTemplate, Server};
///
/// #[derive(Deserialize)]
/// struct Place {
///     city: String,
///     days: Option<u8>,
/// }
///
/// let weather = ServerResourceTemplate::new("weather://{city}/forecast{?days}", "forecast")
///     .mime_type("text/plain")
///     .complete("city", ["Bergen", "Oslo"])
///     .handler(|Place { city, days }: Place| async move { format!("{} days of rain in {city}", days.unwrap_or(3)) });
///
/// let server = Server::builder("weather", "1.0.0").resource_template(weather).build();
/// ```
#[derive(Clone)]
pub struct ServerResourceTemplate {
    inner: Arc<ServerResourceTemplateInner>,
}

struct ServerResourceTemplateInner {
    definition: model::ResourceTemplate,
    /// The parsed URI template; `None` if its text is not valid.
    template: Option<UriTemplate>,
    completers: Completers,
    cooperative: bool,
    history: Arc<FirstPollHistory>,
    needs: Vec<RequiredClientCapability>,
    problem: Option<String>,
    start: Box<StartResourceReadFn>,
}

impl ServerResourceTemplate {
    /// Starts building a resource template. [`ServerResourceTemplateBuilder::handler`] finishes building the template.
    #[allow(clippy::new_ret_no_self, reason = "returns a builder: there is no template until it has a handler")]
    pub fn new(uri_template: impl Into<String>, name: impl Into<String>) -> ServerResourceTemplateBuilder {
        Self::from_definition(model::ResourceTemplate::new(uri_template, name))
    }

    /// Starts building a template with an existing definition, for example that of another server's template.
    pub fn from_definition(definition: model::ResourceTemplate) -> ServerResourceTemplateBuilder {
        let template = definition.uri_template.parse().map_err(|error: model::UriTemplateError| error.to_string());
        ServerResourceTemplateBuilder {
            definition,
            template,
            completers: Completers::default(),
            cache: None,
            cooperative: false,
            needs: Vec::new(),
        }
    }

    /// The URI template.
    pub fn uri_template(&self) -> &str {
        &self.inner.definition.uri_template
    }

    /// The name of the resource template.
    pub fn name(&self) -> &str {
        &self.inner.definition.name
    }

    /// The definition of the resource template, which clients get from `resources/templates/list`.
    pub fn definition(&self) -> &model::ResourceTemplate {
        &self.inner.definition
    }

    /// Whether the handler of the template is cooperative: a cancelled handler is not dropped at once, but may go on
    /// for a grace period.
    pub fn is_cooperative(&self) -> bool {
        self.inner.cooperative
    }

    /// The capabilities that a client must have declared to read resources of the template; requests of other clients
    /// are refused.
    pub fn needs(&self) -> &[RequiredClientCapability] {
        &self.inner.needs
    }

    /// What is wrong with the template, if anything: text that is not a valid template, for example. Resources of a
    /// template with a problem cannot be read, and [`ServerBuilder::build`](crate::server::ServerBuilder::build)
    /// rejects it.
    pub fn problem(&self) -> Option<&str> {
        self.inner.problem.as_deref()
    }

    /// Reads one resource of the template without a server, for tests. In such a read, a blocking handler runs on the
    /// current thread.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// use serde::Deserialize;
    /// use steadfast::{ResourceContents, ServerResourceTemplate};
    ///
    /// #[derive(Deserialize)]
    /// struct Square {
    ///     of: i64,
    /// }
    ///
    /// let template = ServerResourceTemplate::new("square://{of}", "square").handler(|Square { of }: Square| async move {
    ///     (of * of).to_string()
    /// });
    /// let read = template.read("square://7").await.unwrap();
    /// assert_eq!(read.contents, [ResourceContents::text("square://7", "49")]);
    /// assert!(template.read("square://x").await.is_err());
    /// # });
    /// ```
    pub async fn read(&self, uri: &str) -> Result<ReadResourceResult, Error> {
        match self.start(uri) {
            Some(start) => read::run(start(Context::detached())).await,
            None => Err(Error::resource_not_found(uri)),
        }
    }

    /// Prepares one `resources/read`; `None` if the URI does not match the template.
    pub(crate) fn start(&self, uri: &str) -> Option<impl FnOnce(Context) -> HandlerJob<ServerHandlerOutput> + use<>> {
        let values = self.inner.template.as_ref()?.match_uri(uri)?;
        let variables = values.into_iter().map(|(name, value)| match value {
            Value::String(text) => (name, text),
            // Lists are decoded from JSON.
            list => (name, list.to_string()),
        });
        let request = ResourceReadRequest { uri: uri.to_owned(), variables: variables.collect() };
        let inner = Arc::clone(&self.inner);
        Some(move |ctx| (inner.start)(request, ctx))
    }

    /// The completion functions of the template's variables, which suggest values to clients.
    /// The history of the first polls of the template's handler.
    pub(crate) fn history(&self) -> &Arc<FirstPollHistory> {
        &self.inner.history
    }

    pub(crate) fn completers(&self) -> &Completers {
        &self.inner.completers
    }

    /// Whether the resource template has a variable with this name.
    pub(crate) fn takes(&self, variable: &str) -> bool {
        self.inner.template.as_ref().is_some_and(|template| template.variables().any(|known| known == variable))
    }
}

impl fmt::Debug for ServerResourceTemplate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ResourceTemplate").field("definition", &self.inner.definition).finish_non_exhaustive()
    }
}

/// Builds a [`ServerResourceTemplate`]: see [`ServerResourceTemplate::new`].
#[derive(Debug)]
#[must_use = "call `handler` to get the resource template"]
pub struct ServerResourceTemplateBuilder {
    definition: model::ResourceTemplate,
    template: Result<UriTemplate, String>,
    completers: Completers,
    cache: Option<CacheHints>,
    cooperative: bool,
    needs: Vec<RequiredClientCapability>,
}

impl ServerResourceTemplateBuilder {
    description_setters!(description: "A description of the template's resources, for the model.");
    needs_setter!();
    contents_setters!(
        mime_type: "The media type of the template's resources, if all have the same.",
        annotations: "Annotations: whom the template's resources are for, and how important they are."
    );

    /// Adds completion of a variable while a user types it. See [`Completer`].
    pub fn complete<M: 'static>(mut self, variable: impl Into<String>, completer: impl Completer<M>) -> Self {
        self.completers.add(variable.into(), completer);
        self
    }

    /// Finishes building the resource template, with an `async` handler, which runs on the async worker threads. See
    /// [`Handler`] for the parameters of a handler, and [`IntoResourceReply`] for what a handler of resources may
    /// return.
    pub fn handler<M: 'static, H: Handler<M>>(self, handler: H) -> ServerResourceTemplate
    where
        H::Output: IntoResourceReply,
    {
        let call = move |variables, ctx| handler.call(variables, ctx);
        let start = read::start_async(self.options(), strings::decode, call);
        self.finish(start)
    }

    /// Finishes building the resource template, with a plain handler, which runs on a thread that may block. See
    /// [`BlockingHandler`].
    pub fn blocking_handler<M: 'static, H: BlockingHandler<M>>(self, handler: H) -> ServerResourceTemplate
    where
        H::Output: IntoResourceReply,
    {
        let call = move |variables, ctx| handler.call(variables, ctx);
        let start = read::start_blocking(self.options(), strings::decode, call);
        self.finish(start)
    }

    /// Finishes building the resource template, with the handler that `#[resource]` makes from an `async fn`.
    pub(crate) fn parameters_handler<P, F, Out>(
        self,
        names: &'static [&'static str],
        function: F,
    ) -> ServerResourceTemplate
    where
        P: ParameterTuple,
        F: Fn(P, Context) -> Out + Send + Sync + 'static,
        Out: Future + Send + 'static,
        Out::Output: IntoResourceReply,
    {
        let decode = move |variables: &NamedStrings| strings::decode_parameters(variables, names);
        let start = read::start_async(self.options(), decode, function);
        self.finish(start)
    }

    /// Finishes building the resource template, with the handler that `#[resource]` makes from a plain `fn`.
    pub(crate) fn blocking_parameters_handler<P, F, Out>(
        self,
        names: &'static [&'static str],
        function: F,
    ) -> ServerResourceTemplate
    where
        P: ParameterTuple,
        F: Fn(P, Context) -> Out + Send + Sync + 'static,
        Out: IntoResourceReply,
    {
        let decode = move |variables: &NamedStrings| strings::decode_parameters(variables, names);
        let start = read::start_blocking(self.options(), decode, function);
        self.finish(start)
    }

    fn options(&self) -> ReadResultDefaults {
        ReadResultDefaults { mime_type: self.definition.mime_type.clone(), cache: self.cache, problem: self.problem() }
    }

    fn finish(self, start: Box<StartResourceReadFn>) -> ServerResourceTemplate {
        let problem = self.problem();
        let Self { definition, template, completers, cooperative, needs, .. } = self;
        let inner = ServerResourceTemplateInner {
            definition,
            template: template.ok(),
            completers,
            cooperative,
            history: Arc::default(),
            needs,
            problem,
            start,
        };
        ServerResourceTemplate { inner: Arc::new(inner) }
    }

    fn problem(&self) -> Option<String> {
        if self.definition.name.is_empty() {
            return Some("the name of the resource template is empty".to_owned());
        }
        let template = match &self.template {
            Ok(template) => template,
            Err(fault) => return Some(format!("the URI template is invalid: {fault}")),
        };
        if !has_scheme(template.as_str()) && !template.as_str().starts_with('{') {
            return Some("the URI template has no scheme".to_owned());
        }
        let unknown = self.completers.names().find(|completed| !template.variables().any(|known| known == *completed));
        if let Some(unknown) = unknown {
            return Some(format!("the resource template completes `{unknown}`, which is not one of its variables"));
        }
        names::problem_of_meta(self.definition.meta.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;
    use steadfast_model::{ResourceContents, code};

    use super::*;

    #[derive(serde::Deserialize)]
    struct Note {
        folder: Vec<String>,
        number: u8,
        draft: Option<bool>,
    }

    fn notes() -> ServerResourceTemplate {
        ServerResourceTemplate::new("note:/{number}{/folder*}{?draft}", "note").mime_type("text/plain").handler(
            |note: Note| async move { format!("{} in {} {:?}", note.number, note.folder.join("+"), note.draft) },
        )
    }

    async fn text(uri: &str) -> String {
        match notes().read(uri).await.unwrap().contents.as_slice() {
            [ResourceContents::Text(contents)] => {
                assert_eq!((contents.uri.as_str(), contents.mime_type.as_deref()), (uri, Some("text/plain")));
                contents.text.clone()
            }
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn variables_are_typed() {
        assert_eq!(text("note:/7/a/b%20c?draft=true").await, "7 in a+b c Some(true)");
        assert_eq!(text("note:/7/a").await, "7 in a None");
    }

    #[tokio::test]
    async fn a_uri_that_does_not_match_is_not_found() {
        for uri in ["note:/7/..", "note:/300/a", "note:/seven/a", "other:/7/a", "note:/7"] {
            let error = notes().read(uri).await.unwrap_err().into_object();
            assert_eq!((error.code, error.data), (code::RESOURCE_NOT_FOUND, Some(json!({ "uri": uri }))), "{uri}");
        }
    }

    #[tokio::test]
    async fn a_handler_can_take_all_variables_as_strings() {
        let all = ServerResourceTemplate::new("x:{a}{?b}", "x").handler(|all: BTreeMap<String, String>| async move {
            let all: Vec<String> = all.into_iter().map(|(name, value)| format!("{name}={value};")).collect();
            all.concat()
        });
        assert_eq!(all.read("x:1?b=2").await.unwrap().contents, [ResourceContents::text("x:1?b=2", "a=1;b=2;")]);
    }

    #[test]
    fn mistakes_are_problems() {
        let problem =
            |text: &str| ServerResourceTemplate::new(text, "x").handler(|| async { "" }).problem().map(str::to_owned);
        assert_eq!(
            problem("x:{a").as_deref(),
            Some("the URI template is invalid: a brace that is not closed at character 3")
        );
        assert_eq!(problem("/x").as_deref(), Some("the URI template has no scheme"));
        assert_eq!(problem("{+any}"), None);
        let unknown = ServerResourceTemplate::new("x:{a}", "x").complete("b", ["1"]).handler(|| async { "" });
        assert_eq!(unknown.problem(), Some("the resource template completes `b`, which is not one of its variables"));
    }
}
