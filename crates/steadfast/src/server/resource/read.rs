//! How a resource is read: the variables of its URI become what the handler takes, and what it returns becomes the
//! contents of that URI.

use std::sync::Arc;

use steadfast_model::{Cache, ReadResourceResult, ResourceContents, code};

use super::reply::{IntoResource, ResourceReply};
use crate::error::Error;
use crate::runtime::Job;
use crate::server::context::Context;
use crate::server::decode::strings::Strings;
use crate::server::tool::error::Failure;

/// A resource that is to be read.
pub(crate) struct ReadRequest {
    /// As the client wrote it.
    pub(crate) uri: String,
    /// What the handler is given.
    pub(crate) variables: Strings,
}

/// Makes one reading ready to run. Nothing of the handler runs before that.
pub(crate) type StartRead = dyn Fn(ReadRequest, Context) -> Job<ResourceReply> + Send + Sync;

/// How variables become what a handler takes.
pub(crate) trait Read<A>: Fn(&Strings) -> Result<A, Error> + Send + Sync + 'static {}

impl<A, F: Fn(&Strings) -> Result<A, Error> + Send + Sync + 'static> Read<A> for F {}

/// What is added to what a handler returns.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReadOptions {
    pub(crate) mime_type: Option<String>,
    pub(crate) cache: Option<Cache>,
    /// What is wrong with the resource itself.
    pub(crate) problem: Option<String>,
}

impl ReadOptions {
    /// Reads what the handler takes. A URI whose variables are not what they should be names nothing.
    fn read<A>(&self, read: &impl Read<A>, asked: &ReadRequest) -> Result<A, Failure> {
        if let Some(problem) = &self.problem {
            return Err(Error::internal(format!("the resource cannot be read: {problem}")).into());
        }
        let not_found = |error: Error| {
            let mut object = Error::resource_not_found(&asked.uri).into_object();
            object.message = format!("{}: {}", object.message, error.object().message).into();
            Failure::from(Error::from(object))
        };
        read(&asked.variables).map_err(not_found)
    }

    fn complete(&self, uri: &str, reply: ResourceReply) -> ResourceReply {
        let mut result = reply.map_err(|failure| name_missing(uri, failure))?;
        for contents in &mut result.contents {
            self.place(uri, contents);
        }
        if result.cache().is_none() {
            // What the server says of its lists does not hold for what it has read.
            result = result.with_cache(self.cache.unwrap_or_default());
        }
        Ok(result)
    }

    /// Contents that do not say where they are, are those of the resource that was asked for.
    fn place(&self, uri: &str, contents: &mut ResourceContents) {
        let (place, mime_type) = match contents {
            ResourceContents::Text(text) => (&mut text.uri, &mut text.mime_type),
            ResourceContents::Blob(blob) => (&mut blob.uri, &mut blob.mime_type),
        };
        if place.is_empty() {
            uri.clone_into(place);
            if mime_type.is_none() {
                mime_type.clone_from(&self.mime_type);
            }
        }
    }
}

/// A handler that says that there is nothing need not say where.
fn name_missing(uri: &str, failure: Failure) -> Failure {
    match failure {
        Failure::Protocol(error) if error.object().code == code::RESOURCE_NOT_FOUND => {
            let named = error.object().data.as_ref().and_then(|data| data["uri"].as_str());
            if named.is_some_and(|named| !named.is_empty()) {
                error.into()
            } else {
                Error::resource_not_found(uri).into()
            }
        }
        failure => failure,
    }
}

/// Reading with an `async` handler.
pub(crate) fn on_workers<A, F, Answer>(frame: ReadOptions, read: impl Read<A>, call: F) -> Box<StartRead>
where
    A: Send + 'static,
    F: Fn(A, Context) -> Answer + Send + Sync + 'static,
    Answer: Future + Send + 'static,
    Answer::Output: IntoResource,
{
    let shared = Arc::new((frame, read, call));
    Box::new(move |asked, ctx| {
        let shared = Arc::clone(&shared);
        Job::Future(Box::pin(async move {
            let (frame, read, call) = &*shared;
            let value = frame.read(read, &asked)?;
            let reply = call(value, ctx).await.into_resource();
            frame.complete(&asked.uri, reply)
        }))
    })
}

/// Reading with a plain handler.
pub(crate) fn on_threads<A, F, Answer>(frame: ReadOptions, read: impl Read<A>, call: F) -> Box<StartRead>
where
    A: Send + 'static,
    F: Fn(A, Context) -> Answer + Send + Sync + 'static,
    Answer: IntoResource,
{
    let shared = Arc::new((frame, read, call));
    Box::new(move |asked, ctx| {
        let shared = Arc::clone(&shared);
        Job::Blocking(Box::new(move || {
            let (frame, read, call) = &*shared;
            let value = frame.read(read, &asked)?;
            let reply = call(value, ctx).into_resource();
            frame.complete(&asked.uri, reply)
        }))
    })
}

/// Runs one reading here, for tests without a server.
pub(crate) async fn run(job: Job<ResourceReply>) -> Result<ReadResourceResult, Error> {
    let reply = match job {
        Job::Future(future) => future.await,
        Job::Blocking(function) => function(),
    };
    reply.map_err(Failure::into_error)
}

/// Whether text is a URI as far as its scheme.
pub(crate) fn has_scheme(uri: &str) -> bool {
    let Some((scheme, _)) = uri.split_once(':') else { return false };
    let mut characters = scheme.chars();
    characters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && characters.all(|character| character.is_ascii_alphanumeric() || matches!(character, '+' | '-' | '.'))
}
