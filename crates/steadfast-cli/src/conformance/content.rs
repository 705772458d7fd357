//! Tools that return each kind of content, and one that fails.

use steadfast::prelude::*;
use steadfast::server::{Audio, Image};
use steadfast::{ResourceContents, tool};

use super::media::{PNG, WAV};

/// The text tool comes first: the conformance suite calls the first tool of the list without arguments, and that call has to
/// succeed.
pub(super) fn tools() -> [ServerTool; 6] {
    [
        test_simple_text(),
        test_image_content(),
        test_audio_content(),
        test_embedded_resource(),
        test_multiple_content_types(),
        test_error_handling(),
    ]
}

/// Returns a text.
#[tool(read_only)]
async fn test_simple_text() -> &'static str {
    "This is a simple text response for testing."
}

/// Returns an image.
#[tool(read_only)]
async fn test_image_content() -> Image {
    Image::png(PNG)
}

/// Returns audio.
#[tool(read_only)]
async fn test_audio_content() -> Audio {
    Audio::wav(WAV)
}

/// Returns an embedded resource.
#[tool(read_only)]
async fn test_embedded_resource() -> Content {
    let text = "This is an embedded resource content.";
    Content::resource(ResourceContents::text("test://embedded-resource", text).with_mime_type("text/plain"))
}

/// Returns a text, an image and an embedded resource.
#[tool(read_only)]
async fn test_multiple_content_types() -> [Content; 3] {
    let data = ResourceContents::text("test://mixed-content-resource", r#"{"test":"data","value":123}"#);
    [
        Content::text("Multiple content types test:"),
        Image::png(PNG).into(),
        Content::resource(data.with_mime_type("application/json")),
    ]
}

/// Returns a result with isError.
#[tool(read_only)]
async fn test_error_handling() -> steadfast::ToolResult<String> {
    Err(ToolError::new("This tool intentionally returns an error for testing"))
}
