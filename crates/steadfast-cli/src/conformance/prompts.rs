//! Prompts with and without arguments, with each kind of content.

use serde::Deserialize;
use steadfast::prelude::*;
use steadfast::server::Image;
use steadfast::{PromptMessage, ResourceContents, ServerPrompt};

use super::media::PNG;

pub(super) fn prompts() -> [ServerPrompt; 4] {
    [simple(), with_arguments(), with_embedded_resource(), with_image()]
}

fn simple() -> ServerPrompt {
    ServerPrompt::new("test_simple_prompt")
        .description("A text.")
        .handler(|| async { "This is a simple prompt for testing." })
}

#[derive(Deserialize)]
struct TestPromptArguments {
    arg1: String,
    arg2: String,
}

fn with_arguments() -> ServerPrompt {
    ServerPrompt::new("test_prompt_with_arguments")
        .description("A text with two arguments in it.")
        .required_argument("arg1", "The first")
        .required_argument("arg2", "The second")
        .complete("arg1", ["test", "testing", "testament"])
        .handler(|TestPromptArguments { arg1, arg2 }: TestPromptArguments| async move {
            format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")
        })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourcePromptArguments {
    resource_uri: String,
}

fn with_embedded_resource() -> ServerPrompt {
    ServerPrompt::new("test_prompt_with_embedded_resource")
        .description("An embedded resource, and a request to process it.")
        .required_argument("resourceUri", "The resource's address")
        .handler(|ResourcePromptArguments { resource_uri }: ResourcePromptArguments| async move {
            let resource = ResourceContents::text(resource_uri, "Embedded resource content for testing.");
            [
                PromptMessage::user(Content::resource(resource.with_mime_type("text/plain"))),
                PromptMessage::user("Please process the embedded resource above."),
            ]
        })
}

fn with_image() -> ServerPrompt {
    ServerPrompt::new("test_prompt_with_image").description("An image, and a request to analyze it.").handler(
        || async { [PromptMessage::user(Image::png(PNG)), PromptMessage::user("Please analyze the image above.")] },
    )
}
