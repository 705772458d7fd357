//! Extracts the text of doc comments from the attributes of an item.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// The text of the doc comments among these attributes.
pub(crate) fn text(attributes: &[Attribute]) -> String {
    let comments: Vec<String> = attributes.iter().filter_map(comment).collect();
    let mut text = String::new();
    // Not `lines`, which has none for the empty comment between two paragraphs.
    for line in comments.iter().flat_map(|comment| comment.split('\n')) {
        text.push_str(line.strip_prefix(' ').unwrap_or(line).trim_end());
        text.push('\n');
    }
    text.trim().to_owned()
}

/// The first paragraph of a doc comment, in one line.
pub(crate) fn first_paragraph(text: &str) -> String {
    let lines: Vec<&str> = text.lines().take_while(|line| !line.trim().is_empty()).map(str::trim).collect();
    lines.join(" ")
}

fn comment(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}
