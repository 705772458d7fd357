//! Prints the contents of results and resources, as text or as JSON. Text that comes from the server is sanitized.

use serde::Serialize;
use steadfast::{Content, Error, ResourceContents};

use super::sanitize;
use crate::client::CliCommandFailure;
use crate::output;

/// Prints a value as JSON on standard output.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), CliCommandFailure> {
    let value = serde_json::to_value(value).map_err(Error::encode)?;
    print_line(&sanitize::json(&value))
}

/// Prints a line.
pub(crate) fn print_line(text: &str) -> Result<(), CliCommandFailure> {
    output::print(&format!("{text}\n")).map_err(CliCommandFailure::output)
}

/// A content block as text; for images and audio, a placeholder.
pub(crate) fn format_content(content: &Content) -> String {
    let shown = match content {
        Content::Text(text) => return sanitize::text(&text.text).into_owned(),
        Content::Resource(embedded) => return format_resource(&embedded.resource),
        Content::Image(image) => {
            format!("[image, {}, {} characters of base64: see --json]", image.mime_type, image.data.len())
        }
        Content::Audio(audio) => {
            format!("[audio, {}, {} characters of base64: see --json]", audio.mime_type, audio.data.len())
        }
        Content::ResourceLink(link) => format!("[link to {}]", link.uri),
        other => format!("[{other:?}]"),
    };
    sanitize::line(&shown)
}

/// The contents of a resource as text; for a blob, a placeholder.
pub(crate) fn format_resource(contents: &ResourceContents) -> String {
    match contents {
        ResourceContents::Text(text) => sanitize::text(&text.text).into_owned(),
        ResourceContents::Blob(blob) => {
            sanitize::line(&format!("[{}, {} characters of base64: see --json]", blob.uri, blob.blob.len()))
        }
        other => sanitize::line(&format!("[{}: see --json]", other.uri())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_in_content_are_escaped() {
        assert_eq!(format_content(&Content::text("a\nb\u{1b}[31m")), "a\nb\\u{1b}[31m");
    }
}
