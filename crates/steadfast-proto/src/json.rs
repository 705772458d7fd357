//! A parser that validates JSON text without building values.
//!
//! The JSON parser finds where values begin and end, checks the grammar, and never recurses: nesting costs one bit per level,
//! up to a limit that the caller sets. The JSON parser does not decode values: callers decode the text of a value with serde.

use std::borrow::Cow;
use std::ops::Range;

/// The largest nesting limit that the JSON parser supports: it has one bit per level in a fixed array.
pub(crate) const DEEPEST: usize = 1024;

/// Why a text is not accepted as JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonError {
    /// The text is not JSON; the value is the offset of the first byte that does not fit.
    Syntax(usize),
    /// The JSON text is nested deeper than the limit.
    TooDeep,
}

/// A cursor over JSON text, which checks the grammar and does not decode values.
pub(crate) struct JsonScanner<'a> {
    text: &'a str,
    at: usize,
    deepest: usize,
}

impl<'a> JsonScanner<'a> {
    pub(crate) fn new(text: &'a str, deepest: usize) -> Self {
        Self { text, at: 0, deepest: deepest.min(DEEPEST) }
    }

    /// The position of the scanner in the JSON text; after [`JsonScanner::peek`], the position at which the next value begins.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// The next byte of the JSON text that is not white space, without consuming it.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = self.byte()?;
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    /// Skips white space in the JSON text and consumes the byte `wanted`; a different byte is a syntax error.
    pub(crate) fn take(&mut self, wanted: u8) -> Result<(), JsonError> {
        if self.peek() == Some(wanted) {
            self.at += 1;
            return Ok(());
        }
        Err(JsonError::Syntax(self.at))
    }

    /// Checks that nothing but white space is left of the JSON text.
    pub(crate) fn end(&mut self) -> Result<(), JsonError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(JsonError::Syntax(self.at)),
        }
    }

    /// Walks through the members of a JSON object, and calls `member(self, key)` with the scanner before each value. The
    /// callback `member` consumes the value.
    pub(crate) fn members(
        &mut self,
        mut member: impl FnMut(&mut Self, Range<usize>) -> Result<(), JsonError>,
    ) -> Result<(), JsonError> {
        self.take(b'{')?;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            let key = self.string()?;
            self.take(b':')?;
            member(self, key)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(JsonError::Syntax(self.at)),
            }
        }
    }

    /// Walks through the elements of a JSON array; the callback consumes each value.
    pub(crate) fn elements(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<(), JsonError>,
    ) -> Result<(), JsonError> {
        self.take(b'[')?;
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            element(self)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(JsonError::Syntax(self.at)),
            }
        }
    }

    /// Consumes one JSON value of any kind that is nested `depth` levels deep, and returns its range in the text.
    pub(crate) fn value(&mut self, depth: usize) -> Result<Range<usize>, JsonError> {
        let limit = self.deepest.saturating_sub(depth);
        let first = self.peek();
        let start = self.at;
        match first {
            Some(b'{' | b'[') => self.container(limit)?,
            _ => self.scalar()?,
        }
        Ok(start..self.at)
    }

    /// Consumes a JSON string with its quotes, and returns the range of the text between the quotes.
    pub(crate) fn string(&mut self) -> Result<Range<usize>, JsonError> {
        self.take(b'"')?;
        let start = self.at;
        let bytes = self.text.as_bytes();
        loop {
            self.at += plain(bytes.get(self.at..).unwrap_or_default());
            match bytes.get(self.at) {
                Some(b'"') => {
                    let end = self.at;
                    self.at += 1;
                    return Ok(start..end);
                }
                Some(b'\\') => self.escape()?,
                _ => return Err(JsonError::Syntax(self.at)),
            }
        }
    }

    fn escape(&mut self) -> Result<(), JsonError> {
        let bytes = self.text.as_bytes();
        match bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => {
                let digits = bytes.get(self.at + 2..self.at + 6).unwrap_or_default();
                if digits.len() != 4 || !digits.iter().all(u8::is_ascii_hexdigit) {
                    return Err(JsonError::Syntax(self.at));
                }
                self.at += 6;
            }
            _ => return Err(JsonError::Syntax(self.at)),
        }
        Ok(())
    }

    fn container(&mut self, limit: usize) -> Result<(), JsonError> {
        let mut open = Nesting::default();
        loop {
            // Before a value.
            match self.peek() {
                Some(b'{') => {
                    self.at += 1;
                    open.push(true, limit)?;
                    if self.peek() != Some(b'}') {
                        self.string()?;
                        self.take(b':')?;
                        continue;
                    }
                }
                Some(b'[') => {
                    self.at += 1;
                    open.push(false, limit)?;
                    if self.peek() != Some(b']') {
                        continue;
                    }
                }
                _ => self.scalar()?,
            }
            // After a value, or at the end of an empty container.
            loop {
                let Some(object) = open.top() else { return Ok(()) };
                match (self.peek(), object) {
                    (Some(b','), true) => {
                        self.at += 1;
                        self.string()?;
                        self.take(b':')?;
                        break;
                    }
                    (Some(b','), false) => {
                        self.at += 1;
                        break;
                    }
                    (Some(b'}'), true) | (Some(b']'), false) => {
                        self.at += 1;
                        open.pop();
                    }
                    _ => return Err(JsonError::Syntax(self.at)),
                }
            }
        }
    }

    fn scalar(&mut self) -> Result<(), JsonError> {
        match self.peek() {
            Some(b'"') => self.string().map(drop),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            _ => Err(JsonError::Syntax(self.at)),
        }
    }

    fn word(&mut self, word: &str) -> Result<(), JsonError> {
        let found = self.text.as_bytes().get(self.at..self.at + word.len());
        if found != Some(word.as_bytes()) {
            return Err(JsonError::Syntax(self.at));
        }
        self.at += word.len();
        Ok(())
    }

    fn number(&mut self) -> Result<(), JsonError> {
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        match self.byte() {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.byte(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        while matches!(self.byte(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(JsonError::Syntax(start)) } else { Ok(()) }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

/// The number of bytes of a JSON string before the first quote, backslash or control character.
fn plain(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 0xff;
    const TOPS: u64 = ONES << 7;
    // The top bit of each byte that is less than `bound`, and maybe of some above the lowest one of these.
    let below = |word: u64, bound: u64| word.wrapping_sub(ONES * bound) & !word & TOPS;
    let (words, _) = bytes.as_chunks::<8>();
    let mut passed = 0;
    for &word in words {
        // The first byte is the lowest.
        let word = u64::from_le_bytes(word);
        let quote = below(word ^ (ONES * u64::from(b'"')), 1);
        let backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
        let special = quote | backslash | below(word, 0x20);
        if special != 0 {
            return passed + special.trailing_zeros() as usize / 8;
        }
        passed += 8;
    }
    let rest = bytes.get(passed..).unwrap_or_default();
    let special = rest.iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < 0x20);
    passed + special.unwrap_or(rest.len())
}

/// The JSON objects and arrays that are open, innermost last: one bit each, which is set for an object.
struct Nesting {
    bits: [u64; DEEPEST / 64],
    depth: usize,
}

impl Default for Nesting {
    fn default() -> Self {
        Self { bits: [0; DEEPEST / 64], depth: 0 }
    }
}

impl Nesting {
    fn push(&mut self, object: bool, limit: usize) -> Result<(), JsonError> {
        if self.depth >= limit {
            return Err(JsonError::TooDeep);
        }
        let bit = 1_u64 << (self.depth % 64);
        if let Some(word) = self.bits.get_mut(self.depth / 64) {
            if object { *word |= bit } else { *word &= !bit }
        }
        self.depth += 1;
        Ok(())
    }

    fn pop(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    fn top(&self) -> Option<bool> {
        let level = self.depth.checked_sub(1)?;
        self.bits.get(level / 64).map(|word| word & (1 << (level % 64)) != 0)
    }
}

/// Decodes the JSON text between the quotes of a string. The decoded string is borrowed unless it has escapes; it is `None` if
/// an escape is not a character (a lone surrogate).
pub(crate) fn unescape(between_quotes: &str) -> Option<Cow<'_, str>> {
    if !between_quotes.contains('\\') {
        return Some(Cow::Borrowed(between_quotes));
    }
    serde_json::from_str::<String>(&format!("\"{between_quotes}\"")).ok().map(Cow::Owned)
}

/// Calls `member(key, value)` for each member of an object whose grammar was checked before. If the text is not an object,
/// `member` is not called.
pub(crate) fn each_member<'a>(object: &'a str, mut member: impl FnMut(Cow<'a, str>, &'a str)) {
    let mut walker = JsonScanner::new(object, DEEPEST);
    // There can be no fault, because the text was checked before; if there were, the members so far are reported.
    let _ = walker.members(|walker, key| {
        let value = walker.value(1)?;
        if let (Some(key), Some(value)) = (object.get(key).and_then(unescape), object.get(value)) {
            member(key, value);
        }
        Ok(())
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn walk(text: &str, deepest: usize) -> Result<(), JsonError> {
        let mut walker = JsonScanner::new(text, deepest);
        walker.value(0)?;
        walker.end()
    }

    #[test]
    fn valid_json_is_accepted() {
        for text in [
            "{}",
            "[]",
            " { } ",
            "[ ]",
            "{\"a\":1}",
            "[1,2,{\"b\":[]}]",
            "\"x\\u00e9\\n\"",
            "-0.5e+3",
            "0",
            "true",
            "null",
            "{\"a\":{\"b\":{}},\"c\":[[],{}]}",
        ] {
            assert_eq!(walk(text, 64), Ok(()), "{text}");
            assert!(serde_json::from_str::<serde_json::Value>(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn invalid_json_is_refused() {
        for text in [
            "",
            "{",
            "}",
            "[",
            "[1,]",
            "{\"a\"}",
            "{\"a\":}",
            "{,}",
            "[1 2]",
            "01",
            "1.",
            ".5",
            "1e",
            "+1",
            "tru",
            "nul",
            "\"a",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\u{1}\"",
            "{}{}",
            "[}",
            "{]",
            "'a'",
            "{a:1}",
            "[1}",
            "NaN",
        ] {
            assert!(matches!(walk(text, 64), Err(JsonError::Syntax(_))), "{text}");
        }
    }

    #[test]
    fn nesting_is_bounded_without_recursion() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(walk(&nested(64), 64), Ok(()));
        assert_eq!(walk(&nested(65), 64), Err(JsonError::TooDeep));
        assert_eq!(walk(&nested(1_000_000), 512), Err(JsonError::TooDeep));
        assert_eq!(walk(&"[{\"a\":".repeat(100_000), 512), Err(JsonError::TooDeep));
    }

    proptest! {
        #[test]
        fn plain_bytes_end_at_the_first_special_one(
            bytes in proptest::collection::vec(prop_oneof![8 => b'#'..=b'[', 8 => b']'..=0xff, 1 => any::<u8>()], 0..40)
        ) {
            let one_by_one = bytes.iter().take_while(|&&byte| byte != b'"' && byte != b'\\' && byte >= 0x20).count();
            prop_assert_eq!(plain(&bytes), one_by_one);
        }

        #[test]
        fn agrees_with_serde_on_any_text(text in "[\\[\\]{}:,\"\\\\ a0-9.eEtrufalsn+-]{0,24}") {
            let ours = walk(&text, 64).is_ok();
            let theirs = serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
            prop_assert_eq!(ours, theirs, "{}", text);
        }
    }
}
