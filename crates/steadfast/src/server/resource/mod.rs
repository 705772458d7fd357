//! A resource of a server: its definition, which clients list, and its contents.

pub(crate) mod read;
pub(crate) mod registry;
pub(crate) mod reply;
pub(crate) mod template;

use std::fmt;
use std::sync::Arc;

use steadfast_model as model;
use steadfast_model::{CacheHints, Content, ReadResourceResult};

use super::context::Context;
use super::decode::strings;
use super::decode::strings::NamedStrings;
use super::input::need::RequiredClientCapability;
use super::registry::description::{contents_setters, description_setters, needs_setter};
use super::registry::names;
use super::tool::handler::{BlockingHandler, Handler};
use super::tool::parameters::ParameterTuple;
use crate::error::Error;
use crate::runtime::{FirstPollHistory, HandlerJob};
use crate::server::dispatch::encode::ServerHandlerOutput;
use read::{ReadResultDefaults, ResourceReadRequest, StartResourceReadFn, has_scheme};
use reply::{IntoResourceReply, blob};

/// A resource of a server. Cheap to clone.
///
/// ```
/// use steadfast::{ServerResource, Server};
///
/// let readme = ServerResource::new("file:///README.md", "readme").mime_type("text/markdown").text("# Hello");
/// let load = ServerResource::new("system://load", "load")
///     .description("The load of the machine now.")
///     .handler(|| async { std::fs::read_to_string("/proc/loadavg") });
///
/// let server = Server::builder("files", "1.0.0").resource(readme).resource(load).build();
/// ```
#[derive(Clone)]
pub struct ServerResource {
    inner: Arc<ServerResourceInner>,
}

struct ServerResourceInner {
    definition: model::Resource,
    cooperative: bool,
    history: Arc<FirstPollHistory>,
    needs: Vec<RequiredClientCapability>,
    problem: Option<String>,
    start: Box<StartResourceReadFn>,
}

impl ServerResource {
    /// Starts building a resource at that URI. A resource is finished by its contents or a handler.
    #[allow(
        clippy::new_ret_no_self,
        reason = "returns a builder: there is no resource until it has contents or a handler"
    )]
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> ServerResourceBuilder {
        Self::from_definition(model::Resource::new(uri, name))
    }

    /// Starts building a resource with an existing definition, for example that of another server's resource.
    pub fn from_definition(definition: model::Resource) -> ServerResourceBuilder {
        ServerResourceBuilder { definition, cache: None, cooperative: false, needs: Vec::new() }
    }

    /// The URI of the resource.
    pub fn uri(&self) -> &str {
        &self.inner.definition.uri
    }

    /// The name of the resource.
    pub fn name(&self) -> &str {
        &self.inner.definition.name
    }

    /// The definition of the resource, which clients get with `resources/list`.
    pub fn definition(&self) -> &model::Resource {
        &self.inner.definition
    }

    /// A link to the resource, for the results of tools and for messages.
    pub fn link(&self) -> Content {
        Content::resource_link(self.inner.definition.clone())
    }

    /// Whether the resource's handler is cooperative: a cancelled handler is not dropped at once, but may go on for a
    /// grace period.
    pub fn is_cooperative(&self) -> bool {
        self.inner.cooperative
    }

    /// The capabilities that a client must have declared to read the resource; requests of other clients are refused.
    pub fn needs(&self) -> &[RequiredClientCapability] {
        &self.inner.needs
    }

    /// What is wrong with the resource, if anything: a URI without a scheme, for example. Reading a resource with a
    /// problem ends with an error, and [`ServerBuilder::build`](super::ServerBuilder::build) rejects it.
    pub fn problem(&self) -> Option<&str> {
        self.inner.problem.as_deref()
    }

    /// Reads the resource without a server, for tests. In such a read, a blocking handler runs on the current thread.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// use steadfast::{ServerResource, ResourceContents};
    ///
    /// let resource = ServerResource::new("note://1", "note").handler(|| async { "milk" });
    /// let read = resource.read().await.unwrap();
    /// assert_eq!(read.contents, [ResourceContents::text("note://1", "milk")]);
    /// # });
    /// ```
    pub async fn read(&self) -> Result<ReadResourceResult, Error> {
        read::run(self.start(Context::detached())).await
    }

    /// Prepares one `resources/read`.
    /// The history of the first polls of the resource's handler.
    pub(crate) fn history(&self) -> &Arc<FirstPollHistory> {
        &self.inner.history
    }

    pub(crate) fn start(&self, ctx: Context) -> HandlerJob<ServerHandlerOutput> {
        let uri = self.uri().to_owned();
        let variables = NamedStrings::from([("uri".to_owned(), uri.clone())]);
        (self.inner.start)(ResourceReadRequest { uri, variables }, ctx)
    }
}

impl fmt::Debug for ServerResource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Resource").field("definition", &self.inner.definition).finish_non_exhaustive()
    }
}

/// Builds a [`ServerResource`]: see [`ServerResource::new`].
#[derive(Debug)]
#[must_use = "call `text`, `blob` or `handler` to get the resource"]
pub struct ServerResourceBuilder {
    definition: model::Resource,
    cache: Option<CacheHints>,
    cooperative: bool,
    needs: Vec<RequiredClientCapability>,
}

impl ServerResourceBuilder {
    description_setters!(description: "A description of the resource, for the model.");
    needs_setter!();
    contents_setters!(
        mime_type: "The media type of the resource, such as `text/markdown`.",
        annotations: "Annotations: whom the resource is for, how important it is, and when it last changed."
    );

    /// The size of the resource in bytes. [`ServerResourceBuilder::text`] and [`ServerResourceBuilder::blob`] set the
    /// size by default.
    pub fn size(mut self, bytes: u64) -> Self {
        self.definition.size = Some(bytes);
        self
    }

    /// Finishes building the resource, with constant text as its contents.
    pub fn text(mut self, text: impl Into<String>) -> ServerResource {
        let text: Arc<str> = text.into().into();
        self.definition.size.get_or_insert(u64::try_from(text.len()).unwrap_or(u64::MAX));
        self.handler(move || std::future::ready(Arc::clone(&text)))
    }

    /// Finishes building the resource, with constant bytes as its contents.
    ///
    /// ```
    /// use steadfast::ServerResource;
    /// let resource = ServerResource::new("image://dot", "dot").mime_type("image/gif").blob(b"GIF89a");
    /// assert_eq!(resource.definition().size, Some(6));
    /// ```
    pub fn blob(mut self, bytes: impl AsRef<[u8]>) -> ServerResource {
        let bytes = bytes.as_ref();
        self.definition.size.get_or_insert(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let contents = blob(bytes);
        self.handler(move || std::future::ready(contents.clone()))
    }

    /// Finishes building the resource, with an `async` handler, which runs on the async worker threads. What a
    /// resource's handler may take and return is described at [`Handler`] and [`IntoResourceReply`].
    ///
    /// The handler may take a [`Context`], and a type with a member `uri`.
    pub fn handler<M: 'static, H: Handler<M>>(self, handler: H) -> ServerResource
    where
        H::Output: IntoResourceReply,
    {
        let start = read::start_async(self.options(), strings::decode, move |uri, ctx| handler.call(uri, ctx));
        self.finish(start)
    }

    /// Finishes building the resource, with a plain handler, which runs on a thread that may block. See
    /// [`BlockingHandler`].
    ///
    /// ```
    /// use steadfast::ServerResource;
    /// ServerResource::new("system://hosts", "hosts").blocking_handler(|| std::fs::read_to_string("/etc/hosts"));
    /// ```
    pub fn blocking_handler<M: 'static, H: BlockingHandler<M>>(self, handler: H) -> ServerResource
    where
        H::Output: IntoResourceReply,
    {
        let start = read::start_blocking(self.options(), strings::decode, move |uri, ctx| handler.call(uri, ctx));
        self.finish(start)
    }

    /// Finishes building the resource, with the handler that `#[resource]` makes from an `async fn`.
    pub(crate) fn parameters_handler<P, F, Out>(self, names: &'static [&'static str], function: F) -> ServerResource
    where
        P: ParameterTuple,
        F: Fn(P, Context) -> Out + Send + Sync + 'static,
        Out: Future + Send + 'static,
        Out::Output: IntoResourceReply,
    {
        let decode = move |uri: &NamedStrings| strings::decode_parameters(uri, names);
        let start = read::start_async(self.options(), decode, function);
        self.finish(start)
    }

    /// Finishes building the resource, with the handler that `#[resource]` makes from a plain `fn`.
    pub(crate) fn blocking_parameters_handler<P, F, Out>(
        self,
        names: &'static [&'static str],
        function: F,
    ) -> ServerResource
    where
        P: ParameterTuple,
        F: Fn(P, Context) -> Out + Send + Sync + 'static,
        Out: IntoResourceReply,
    {
        let decode = move |uri: &NamedStrings| strings::decode_parameters(uri, names);
        let start = read::start_blocking(self.options(), decode, function);
        self.finish(start)
    }

    fn options(&self) -> ReadResultDefaults {
        ReadResultDefaults { mime_type: self.definition.mime_type.clone(), cache: self.cache, problem: self.problem() }
    }

    fn finish(self, start: Box<StartResourceReadFn>) -> ServerResource {
        let problem = self.problem();
        let Self { definition, cooperative, needs, .. } = self;
        let history = Arc::default();
        ServerResource {
            inner: Arc::new(ServerResourceInner { definition, cooperative, history, needs, problem, start }),
        }
    }

    fn problem(&self) -> Option<String> {
        if self.definition.name.is_empty() {
            return Some("the name of the resource is empty".to_owned());
        }
        if !has_scheme(&self.definition.uri) {
            return Some("the URI of the resource has no scheme".to_owned());
        }
        names::problem_of_meta(self.definition.meta.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use steadfast_model::{CacheScope, ResourceContents, code};

    use super::*;

    #[tokio::test]
    async fn text_and_bytes_are_read_as_they_are() {
        let text = ServerResource::new("a:1", "a").mime_type("text/plain").text("hello");
        assert_eq!(text.definition().size, Some(5));
        let expected = ResourceContents::text("a:1", "hello").with_mime_type("text/plain");
        assert_eq!(text.read().await.unwrap().contents, [expected]);
        let bytes = ServerResource::new("a:2", "a").size(9).blob([0, 1, 2]);
        assert_eq!(bytes.definition().size, Some(9));
        assert_eq!(bytes.read().await.unwrap().contents, [ResourceContents::blob("a:2", "AAEC")]);
    }

    #[tokio::test]
    async fn a_handler_may_take_the_uri_and_may_block() {
        #[derive(serde::Deserialize)]
        struct ReadRequest {
            uri: String,
        }
        let resource =
            ServerResource::new("a:1", "a").blocking_handler(|request: ReadRequest, _ctx: Context| request.uri);
        assert_eq!(resource.read().await.unwrap().contents, [ResourceContents::text("a:1", "a:1")]);
    }

    #[tokio::test]
    async fn contents_may_have_other_uris() {
        let resource = ServerResource::new("dir:/", "dir").mime_type("inode/directory").handler(|| async {
            [ResourceContents::text("dir:/a", "a"), ResourceContents::text("", "").with_mime_type("text/plain")]
        });
        let contents = serde_json::to_value(resource.read().await.unwrap().contents).unwrap();
        let expected = json!([
            {"uri": "dir:/a", "text": "a"}, {"uri": "dir:/", "mimeType": "text/plain", "text": ""},
        ]);
        assert_eq!(contents, expected);
    }

    #[tokio::test]
    async fn cache_settings_come_from_the_handler_then_from_the_resource() {
        let minute = CacheHints::new(60_000, CacheScope::Public);
        let silent = ServerResource::new("a:1", "a").handler(|| async { "" });
        assert_eq!(silent.read().await.unwrap().cache(), Some(CacheHints::default()));
        let cached = ServerResource::new("a:1", "a").cache(minute).handler(|| async { "" });
        assert_eq!(cached.read().await.unwrap().cache(), Some(minute));
        let now = || async { ReadResourceResult::default().with_cache(CacheHints::default()) };
        let overridden = ServerResource::new("a:1", "a").cache(minute).handler(now);
        assert_eq!(overridden.read().await.unwrap().cache(), Some(CacheHints::default()));
    }

    #[tokio::test]
    async fn a_resource_that_does_not_exist_is_named_in_the_error() {
        let gone = ServerResource::new("a:1", "a").handler(|| async { None::<String> });
        let error = gone.read().await.unwrap_err().into_object();
        assert_eq!((error.code, error.data), (code::RESOURCE_NOT_FOUND, Some(json!({"uri": "a:1"}))));
    }

    #[tokio::test]
    async fn mistakes_are_problems() {
        let relative = ServerResource::new("/etc/hosts", "hosts").text("");
        assert_eq!(relative.problem(), Some("the URI of the resource has no scheme"));
        assert_eq!(relative.read().await.unwrap_err().object().code, code::INTERNAL_ERROR);
        assert_eq!(ServerResource::new("a:", "").text("").problem(), Some("the name of the resource is empty"));
        assert_eq!(ServerResource::new("a:", "a").text("").problem(), None);
    }
}
