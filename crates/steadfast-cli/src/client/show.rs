//! Contents and lists, for people and for scripts. What a server wrote is harmless when it is shown.

use serde::Serialize;
use steadfast::{Content, Error, ResourceContents};

use super::{Failure, harmless};
use crate::output;

/// Prints all of a value, for scripts.
pub(super) fn as_json(value: &impl Serialize) -> Result<(), Failure> {
    let value = serde_json::to_value(value).map_err(Error::encode)?;
    print(&harmless::json(&value))
}

/// Prints a text and the end of its line.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    output::print(&format!("{text}\n")).map_err(Failure::unwritten)
}

/// One piece of content.
pub(super) fn content(content: &Content) -> String {
    let shown = match content {
        Content::Text(text) => return harmless::text(&text.text).into_owned(),
        Content::Resource(embedded) => return resource(&embedded.resource),
        Content::Image(image) => {
            format!("[image, {}, {} characters of base64: see --json]", image.mime_type, image.data.len())
        }
        Content::Audio(audio) => {
            format!("[audio, {}, {} characters of base64: see --json]", audio.mime_type, audio.data.len())
        }
        Content::ResourceLink(link) => format!("[link to {}]", link.uri),
        other => format!("[{other:?}]"),
    };
    harmless::line(&shown)
}

/// The contents of a resource.
pub(super) fn resource(contents: &ResourceContents) -> String {
    match contents {
        ResourceContents::Text(text) => harmless::text(&text.text).into_owned(),
        ResourceContents::Blob(blob) => {
            harmless::line(&format!("[{}, {} characters of base64: see --json]", blob.uri, blob.blob.len()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_cannot_command_a_terminal() {
        assert_eq!(content(&Content::text("a\nb\u{1b}[31m")), "a\nb\\u{1b}[31m");
    }
}
