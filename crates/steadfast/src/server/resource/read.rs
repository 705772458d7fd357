//! Reading a resource: the variables of its URI are decoded into the value that the handler takes, and the handler's
//! return value becomes the contents of that URI.

use std::sync::Arc;

use steadfast_model::{CacheHints, ReadResourceResult, ResourceContents, code};

use super::reply::{IntoResourceReply, ResourceReply};
use crate::error::Error;
use crate::runtime::HandlerJob;
use crate::server::context::Context;
use crate::server::decode::strings::NamedStrings;
use crate::server::dispatch::encode::ServerHandlerOutput;
use crate::server::tool::error::ToolError;

/// A request to read a resource.
pub(crate) struct ResourceReadRequest {
    /// The URI of the resource, as the client wrote it.
    pub(crate) uri: String,
    /// The variables of the URI, for the handler.
    pub(crate) variables: NamedStrings,
}

/// Prepares one `resources/read`. No code of the handler runs before the job runs.
pub(crate) type StartResourceReadFn =
    dyn Fn(ResourceReadRequest, Context) -> HandlerJob<ServerHandlerOutput> + Send + Sync;

/// Decodes the variables of a URI into the value that the handler of a resource takes.
pub(crate) trait DecodeVariables<A>: Fn(&NamedStrings) -> Result<A, Error> + Send + Sync + 'static {}

impl<A, F: Fn(&NamedStrings) -> Result<A, Error> + Send + Sync + 'static> DecodeVariables<A> for F {}

/// What is added to the result of a resource's handler if the result does not have it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReadResultDefaults {
    pub(crate) mime_type: Option<String>,
    pub(crate) cache: Option<CacheHints>,
    /// What is wrong with the resource itself, if anything.
    pub(crate) problem: Option<String>,
}

impl ReadResultDefaults {
    /// Decodes the variables of the URI into the value that the handler takes. A URI whose variables cannot be decoded
    /// counts as a resource that does not exist.
    fn decode<A>(&self, decode: &impl DecodeVariables<A>, request: &ResourceReadRequest) -> Result<A, ToolError> {
        if let Some(problem) = &self.problem {
            return Err(Error::internal(format!("the resource cannot be read: {problem}")).into());
        }
        let not_found = |error: Error| {
            let mut object = Error::resource_not_found(&request.uri).into_object();
            object.message = format!("{}: {}", object.message, error.object().message).into();
            ToolError::from(Error::from(object))
        };
        decode(&request.variables).map_err(not_found)
    }

    fn complete(&self, uri: &str, reply: ResourceReply) -> ResourceReply {
        let mut result = reply.map_err(|failure| add_missing_uri(uri, failure))?;
        for contents in &mut result.contents {
            self.add_uri(uri, contents);
        }
        if result.cache().is_none() {
            // The cache settings of the server are for its lists, not for the contents of resources.
            result = result.with_cache(self.cache.unwrap_or_default());
        }
        Ok(result)
    }

    /// Contents without a URI get the URI and the media type of the resource that was requested.
    fn add_uri(&self, uri: &str, contents: &mut ResourceContents) {
        let (contents_uri, mime_type) = match contents {
            ResourceContents::Text(text) => (&mut text.uri, &mut text.mime_type),
            ResourceContents::Blob(blob) => (&mut blob.uri, &mut blob.mime_type),
            _ => return,
        };
        if contents_uri.is_empty() {
            uri.clone_into(contents_uri);
            if mime_type.is_none() {
                mime_type.clone_from(&self.mime_type);
            }
        }
    }
}

/// Adds the URI to a handler's resource-not-found error, if the error has no URI.
fn add_missing_uri(uri: &str, failure: ToolError) -> ToolError {
    let Some(error) = failure.protocol_error().filter(|error| error.object().code == code::RESOURCE_NOT_FOUND) else {
        return failure;
    };
    let uri_in_data = error.object().data.as_ref().and_then(|data| data["uri"].as_str());
    if uri_in_data.is_some_and(|uri| !uri.is_empty()) { failure } else { Error::resource_not_found(uri).into() }
}

/// Prepares reading a resource with an `async` handler.
pub(crate) fn start_async<A, F, Out>(
    options: ReadResultDefaults,
    decode: impl DecodeVariables<A>,
    call: F,
) -> Box<StartResourceReadFn>
where
    A: Send + 'static,
    F: Fn(A, Context) -> Out + Send + Sync + 'static,
    Out: Future + Send + 'static,
    Out::Output: IntoResourceReply,
{
    let shared = Arc::new((options, decode, call));
    Box::new(move |request, ctx| {
        let shared = Arc::clone(&shared);
        HandlerJob::Future(Box::pin(async move {
            let (options, decode, call) = &*shared;
            let reply = match options.decode(decode, &request) {
                Ok(value) => options.complete(&request.uri, call(value, ctx).await.into_resource_reply()),
                Err(error) => Err(error),
            };
            ServerHandlerOutput::Resource(reply)
        }))
    })
}

/// Prepares reading a resource with a handler that is a plain function, which may block.
pub(crate) fn start_blocking<A, F, Out>(
    options: ReadResultDefaults,
    decode: impl DecodeVariables<A>,
    call: F,
) -> Box<StartResourceReadFn>
where
    A: Send + 'static,
    F: Fn(A, Context) -> Out + Send + Sync + 'static,
    Out: IntoResourceReply,
{
    let shared = Arc::new((options, decode, call));
    Box::new(move |request, ctx| {
        let shared = Arc::clone(&shared);
        HandlerJob::Blocking(Box::new(move || {
            let (options, decode, call) = &*shared;
            let reply = match options.decode(decode, &request) {
                Ok(value) => options.complete(&request.uri, call(value, ctx).into_resource_reply()),
                Err(error) => Err(error),
            };
            ServerHandlerOutput::Resource(reply)
        }))
    })
}

/// Runs the handler of a resource on the current thread, for tests without a server.
pub(crate) async fn run(job: HandlerJob<ServerHandlerOutput>) -> Result<ReadResourceResult, Error> {
    match job.run().await {
        ServerHandlerOutput::Resource(reply) => reply.map_err(ToolError::into_error),
        _ => Err(Error::internal("the handler returned something else than the contents of a resource")),
    }
}

/// Whether text starts with a valid URI scheme.
pub(crate) fn has_scheme(uri: &str) -> bool {
    let Some((scheme, _)) = uri.split_once(':') else { return false };
    let mut characters = scheme.chars();
    characters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && characters.all(|character| character.is_ascii_alphanumeric() || matches!(character, '+' | '-' | '.'))
}
