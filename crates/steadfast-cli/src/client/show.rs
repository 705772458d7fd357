//! Contents and lists, for people.

use std::fmt::Write as _;

use steadfast::{Content, ResourceContents};

/// A table with aligned columns; the last one is cut to a line.
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
        line(&row.iter().map(|cell| cell.lines().next().unwrap_or_default()).collect::<Vec<_>>());
    }
    text
}

/// One piece of content.
pub(super) fn content(content: &Content) -> String {
    match content {
        Content::Text(text) => text.text.clone(),
        Content::Image(image) => format!("[image, {}, {} bytes in base64]", image.mime_type, image.data.len()),
        Content::Audio(audio) => format!("[audio, {}, {} bytes in base64]", audio.mime_type, audio.data.len()),
        Content::Resource(embedded) => resource(&embedded.resource),
        Content::ResourceLink(link) => format!("[link to {}]", link.uri),
        other => format!("[{other:?}]"),
    }
}

/// The contents of a resource.
pub(super) fn resource(contents: &ResourceContents) -> String {
    match contents {
        ResourceContents::Text(text) => text.text.clone(),
        ResourceContents::Blob(blob) => format!("[{}, {} bytes in base64]", blob.uri, blob.blob.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_cells_are_one_line() {
        let rows = [vec!["a".to_owned(), "one\ntwo".to_owned()], vec!["long".to_owned(), "x".to_owned()]];
        assert_eq!(table(&["NAME", "ABOUT"], &rows), "NAME  ABOUT\na     one\nlong  x\n");
    }
}
