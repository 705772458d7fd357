//! Encodes the result of every handler of a server as a response, in the form of the client's revision.

use steadfast_model::wire::{self, RequestResult};
use steadfast_model::{
    CacheHints, CallToolResult, CompleteResult, Content, GetPromptResult, ReadResourceResult, ResourceContents,
};
use steadfast_proto::encode::EncodedResponse;

use crate::error::Error;
use crate::runtime::{HandlerExecution, HandlerInputs, HandlerOutputEncoder};
use crate::server::completion::CompletionReply;
use crate::server::resource::reply::ResourceReply;
use crate::server::tool::error::ToolError;
use crate::server::{PromptReply, Server, ToolReply};

/// What a handler of a server returned.
pub(crate) enum ServerHandlerOutput {
    Tool(ToolReply),
    Prompt(PromptReply),
    Resource(ResourceReply),
    Completion(CompletionReply),
    /// The response itself.
    Response(EncodedResponse),
}

impl HandlerOutputEncoder for Server {
    type Output = ServerHandlerOutput;

    fn encode(self, output: ServerHandlerOutput, execution: &HandlerExecution) -> EncodedResponse {
        match output {
            ServerHandlerOutput::Tool(reply) => encode(reply, execution, &self),
            ServerHandlerOutput::Prompt(reply) => encode(reply, execution, &self),
            ServerHandlerOutput::Resource(reply) => {
                // A result that depends on the user's answers is for this client alone, and must not be cached.
                let resumed = execution.input_rounds().is_some_and(HandlerInputs::is_resumed);
                let reply = reply.map(|result| if resumed { result.with_cache(CacheHints::default()) } else { result });
                encode(reply, execution, &self)
            }
            ServerHandlerOutput::Completion(reply) => encode(reply.map(CompleteResult::new), execution, &self),
            ServerHandlerOutput::Response(response) => response,
        }
    }
}

/// The result of a handler of a tool, prompt, resource or completion.
trait HandlerResult: RequestResult + Sized {
    /// The approximate length of the encoded result, in bytes.
    fn size_hint(&self) -> usize;

    /// Converts a handler's failure: to a JSON-RPC error, or for a tool to a result with `isError`.
    fn from_failure(failure: ToolError) -> Result<Self, Error> {
        Err(failure.into_error())
    }
}

impl HandlerResult for CallToolResult {
    fn size_hint(&self) -> usize {
        self.content.iter().map(content_size).sum()
    }

    fn from_failure(failure: ToolError) -> Result<Self, Error> {
        failure.into_result()
    }
}

impl HandlerResult for GetPromptResult {
    fn size_hint(&self) -> usize {
        self.messages.iter().map(|message| 32 + content_size(&message.content)).sum()
    }
}

impl HandlerResult for ReadResourceResult {
    fn size_hint(&self) -> usize {
        let size = |contents: &ResourceContents| match contents {
            ResourceContents::Text(text) => text.text.len(),
            ResourceContents::Blob(blob) => blob.blob.len(),
            _ => 0,
        };
        self.contents.iter().map(|contents| 64 + contents.uri().len() + size(contents)).sum()
    }
}

impl HandlerResult for CompleteResult {
    fn size_hint(&self) -> usize {
        self.completion.values.iter().map(|value| value.len() + 4).sum()
    }
}

/// Encodes the response with the result of a handler, or with the error of a handler that failed.
fn encode<R: HandlerResult>(
    reply: Result<R, ToolError>,
    execution: &HandlerExecution,
    server: &Server,
) -> EncodedResponse {
    let revision = execution.peer.revision;
    match reply.or_else(R::from_failure) {
        Ok(result) => {
            let buffer = execution.mailbox.buffer(result.size_hint());
            let common_members = server.common_members();
            EncodedResponse::result_in(buffer, &execution.id, |out| {
                wire::write_result(revision, &result, common_members, out)
            })
        }
        Err(error) => EncodedResponse::error(&execution.id, &wire::error_for(revision, error.object())),
    }
}

fn content_size(content: &Content) -> usize {
    64 + match content {
        Content::Text(text) => text.text.len(),
        Content::Image(image) => image.data.len(),
        Content::Audio(audio) => audio.data.len(),
        _ => 256,
    }
}
