//! Sanitizes text of a server for a terminal. Escape sequences could move the cursor, rename the window or hide text, and lines
//! of a server could look like messages of this command.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Escapes the control characters of a text, except line breaks and tabs.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    let plain = |character: char| matches!(character, '\n' | '\t') || !is_control(character);
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

/// Sanitizes a text of the server within a message of this command: every line but the first is marked as quoted.
pub(crate) fn quoted(shown: &str) -> String {
    text(shown).trim_end().replace('\n', "\n  | ")
}

/// The first line of the text, sanitized.
pub(crate) fn line(shown: &str) -> String {
    text(shown).lines().next().unwrap_or_default().replace('\t', " ")
}

/// The first paragraph of the text, sanitized and joined to one line.
pub(crate) fn paragraph(long: &str) -> String {
    let shown = text(long);
    let lines = shown.trim().lines().map(str::trim).take_while(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ").replace('\t', " ")
}

/// Formats a JSON value with all control characters as `\u` escapes, which does not change its meaning. JSON itself
/// requires escapes only for control characters below U+0020.
pub(crate) fn json(value: &serde_json::Value) -> String {
    let written = format!("{value:#}");
    let plain = |character: char| character == '\n' || !is_control(character);
    let mut shown = String::with_capacity(written.len());
    for character in written.chars() {
        if plain(character) {
            shown.push(character);
        } else {
            // Each is in the basic plane, so one UTF-16 unit. Writing to a string does not fail.
            let _ = write!(shown, "\\u{:04x}", u32::from(character));
        }
    }
    shown
}

/// Whether the character is a control character (C0 or C1), a line separator, or a mark that changes the direction of text.
fn is_control(character: char) -> bool {
    let is_direction_mark =
        matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || is_direction_mark || matches!(character, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_without_control_characters_is_unchanged() {
        assert_eq!(text("a\tb\nÄ 日本 🦀"), "a\tb\nÄ 日本 🦀");
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(text("\u{1b}[2J\u{7}"), "\\u{1b}[2J\\u{7}");
        assert_eq!(text("\u{9b}31m"), "\\u{9b}31m");
        assert_eq!(text("safe\rfalse"), "safe\\rfalse");
        assert_eq!(text("a\r\nb\u{7f}"), "a\nb\\u{7f}");
        assert_eq!(text("\u{202e}txt.exe"), "\\u{202e}txt.exe");
    }

    #[test]
    fn quoted_lines_are_marked() {
        assert_eq!(quoted("hello\nsteadfast: all is well\n"), "hello\n  | steadfast: all is well");
        assert_eq!(quoted("one\r\ntwo"), "one\n  | two");
    }

    #[test]
    fn a_line_is_the_first_line() {
        assert_eq!(line("one\ntwo"), "one");
        assert_eq!(line("\tone\u{1b}c"), " one\\u{1b}c");
        assert_eq!(line(""), "");
    }

    #[test]
    fn a_paragraph_is_joined_to_one_line() {
        assert_eq!(paragraph("\none\n  two\u{7}\n\nthree"), "one two\\u{7}");
    }

    #[test]
    fn sanitized_json_has_the_same_value() {
        let value = serde_json::json!({ "text": "\u{1b}[2J \u{9b}31m \u{202e}x \u{7f} é" });
        let written = json(&value);
        assert!(!written.chars().any(|character| character != '\n' && is_control(character)), "{written}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&written).unwrap(), value);
    }
}
