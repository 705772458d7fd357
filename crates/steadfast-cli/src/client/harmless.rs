//! Text of a server's, made harmless: a terminal obeys what it is shown, and a server is not to move its cursor, rename its
//! window or hide what it says. Among words of ours, it is not to write lines that look like ours.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Text for a terminal. Lines and tabs stay; whatever else a terminal would obey is written out.
pub(super) fn text(text: &str) -> Cow<'_, str> {
    let plain = |character: char| matches!(character, '\n' | '\t') || !is_obeyed(character);
    if text.chars().all(plain) {
        return Cow::Borrowed(text);
    }
    let text = text.replace("\r\n", "\n");
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if plain(character) { shown.push(character) } else { shown.extend(character.escape_default()) }
    }
    Cow::Owned(shown)
}

/// Text among words of ours: every line of it but the first is marked as a part of it.
pub(super) fn quoted(words: &str) -> String {
    text(words).trim_end().replace('\n', "\n  | ")
}

/// The same in one line: the first, if there are several.
pub(super) fn line(shown: &str) -> String {
    text(shown).lines().next().unwrap_or_default().replace('\t', " ")
}

/// The first paragraph in one line, for where there is little room.
pub(super) fn paragraph(words: &str) -> String {
    let shown = text(words);
    let lines = shown.trim().lines().map(str::trim).take_while(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ").replace('\t', " ")
}

/// JSON means the same with its unusual characters written as escapes, which JSON itself asks for only below the space.
pub(super) fn json(value: &serde_json::Value) -> String {
    let written = format!("{value:#}");
    let plain = |character: char| character == '\n' || !is_obeyed(character);
    let mut shown = String::with_capacity(written.len());
    for character in written.chars() {
        if plain(character) {
            shown.push(character);
        } else {
            // Each of them is of the first plane, so it is one unit. Writing to a string does not fail.
            let _ = write!(shown, "\\u{:04x}", u32::from(character));
        }
    }
    shown
}

/// Controls, of both sets, and the marks that turn text around.
fn is_obeyed(character: char) -> bool {
    let turns =
        matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || turns || matches!(character, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_without_controls_is_as_it_was() {
        assert_eq!(text("a\tb\nÄ 日本 🦀"), "a\tb\nÄ 日本 🦀");
    }

    #[test]
    fn what_a_terminal_would_obey_is_written_out() {
        assert_eq!(text("\u{1b}[2J\u{7}"), "\\u{1b}[2J\\u{7}");
        assert_eq!(text("\u{9b}31m"), "\\u{9b}31m");
        assert_eq!(text("safe\rfalse"), "safe\\rfalse");
        assert_eq!(text("a\r\nb\u{7f}"), "a\nb\\u{7f}");
        assert_eq!(text("\u{202e}txt.exe"), "\\u{202e}txt.exe");
    }

    #[test]
    fn what_is_quoted_cannot_pass_for_ours() {
        assert_eq!(quoted("hello\nsteadfast: all is well\n"), "hello\n  | steadfast: all is well");
        assert_eq!(quoted("one\r\ntwo"), "one\n  | two");
    }

    #[test]
    fn a_line_is_one() {
        assert_eq!(line("one\ntwo"), "one");
        assert_eq!(line("\tone\u{1b}c"), " one\\u{1b}c");
        assert_eq!(line(""), "");
    }

    #[test]
    fn a_paragraph_is_one_line_too() {
        assert_eq!(paragraph("\none\n  two\u{7}\n\nthree"), "one two\\u{7}");
    }

    #[test]
    fn json_means_the_same() {
        let value = serde_json::json!({ "text": "\u{1b}[2J \u{9b}31m \u{202e}x \u{7f} é" });
        let written = json(&value);
        assert!(!written.chars().any(|character| character != '\n' && is_obeyed(character)), "{written}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&written).unwrap(), value);
    }
}
