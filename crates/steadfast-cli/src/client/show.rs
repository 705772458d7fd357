//! Contents and lists, for people and for scripts. What a server wrote is harmless when it is shown.

use std::fmt::Write as _;

use serde::Serialize;
use steadfast::{Content, Error, ResourceContents};

use super::harmless;

/// Prints all of a value, for scripts.
pub(super) fn as_json(value: &impl Serialize) -> Result<(), Error> {
    println!("{}", harmless::json(&serde_json::to_value(value).map_err(Error::encode)?));
    Ok(())
}

/// A table with aligned columns. Its cells are lines.
pub(super) fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(headings.get(column).map(|heading| heading.chars().count())).max().unwrap_or(0)
    };
    let mut text = String::new();
    let mut line = |cells: &[&str]| {
        for (column, cell) in cells.iter().enumerate() {
            let padding = if column + 1 == cells.len() { 0 } else { width(column) + 2 - cell.chars().count() };
            // Writing to a string does not fail.
            let _ = write!(text, "{cell}{:padding$}", "");
        }
        text.push('\n');
    };
    line(headings);
    for row in rows {
        line(&row.iter().map(String::as_str).collect::<Vec<_>>());
    }
    text
}

/// One piece of content.
pub(super) fn content(content: &Content) -> String {
    let shown = match content {
        Content::Text(text) => return harmless::text(&text.text).into_owned(),
        Content::Resource(embedded) => return resource(&embedded.resource),
        Content::Image(image) => format!("[image, {}, {} bytes in base64]", image.mime_type, image.data.len()),
        Content::Audio(audio) => format!("[audio, {}, {} bytes in base64]", audio.mime_type, audio.data.len()),
        Content::ResourceLink(link) => format!("[link to {}]", link.uri),
        other => format!("[{other:?}]"),
    };
    harmless::line(&shown)
}

/// The contents of a resource.
pub(super) fn resource(contents: &ResourceContents) -> String {
    match contents {
        ResourceContents::Text(text) => harmless::text(&text.text).into_owned(),
        ResourceContents::Blob(blob) => harmless::line(&format!("[{}, {} bytes in base64]", blob.uri, blob.blob.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [vec!["a".to_owned(), "one".to_owned()], vec!["long".to_owned(), "x".to_owned()]];
        assert_eq!(table(&["NAME", "ABOUT"], &rows), "NAME  ABOUT\na     one\nlong  x\n");
    }

    #[test]
    fn content_cannot_command_a_terminal() {
        assert_eq!(content(&Content::text("a\nb\u{1b}[31m")), "a\nb\\u{1b}[31m");
    }
}
