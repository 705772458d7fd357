//! Fast encoding of long text as JSON strings.
//!
//! Tools return files, pages and images in base64. serde_json checks each byte for characters to escape, which takes most of
//! the time of a large result. Most long text has nothing to escape; this module checks many bytes at a time for characters to
//! escape, and copies the text unchanged if there are none.

use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

/// The length in bytes below which text is encoded as JSON faster without first checking whether it needs escapes.
const LONG: usize = 128;

/// The struct name that makes serde_json copy a value as JSON text, as its `RawValue` uses it.
const RAW: &str = "$serde_json::private::RawValue";

/// Text that is serialized as a JSON string, and copied unchanged if it is long and needs no escapes. `Text` may be
/// written with serde_json only, as everything in `wire` is.
pub(super) struct Text<'a>(pub(super) &'a str);

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.len() < LONG || needs_escapes(self.0) {
            return serializer.serialize_str(self.0);
        }
        let mut raw = serializer.serialize_struct(RAW, 1)?;
        raw.serialize_field(RAW, "\"")?;
        raw.serialize_field(RAW, self.0)?;
        raw.serialize_field(RAW, "\"")?;
        raw.end()
    }
}

/// Whether a string contains a character that JSON has to escape.
fn needs_escapes(text: &str) -> bool {
    // The smallest byte, and the smallest distances to `"` and `\\`: reductions that the compiler does in vectors.
    let in_block = |block: &[u8]| {
        let (least, quote, backslash) =
            block.iter().fold((u8::MAX, u8::MAX, u8::MAX), |(least, quote, backslash), &byte| {
                (least.min(byte), quote.min(byte ^ b'"'), backslash.min(byte ^ b'\\'))
            });
        least < 0x20 || quote == 0 || backslash == 0
    };
    text.as_bytes().chunks(1024).any(in_block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_equals_that_of_serde_json() {
        let plain = "wörter, 文字 and \u{7f} — ".repeat(100);
        let mut texts = vec![String::new(), "short".to_owned(), plain.clone()];
        for odd in ["\"", "\\", "\n", "\u{0}", "\u{1f}"] {
            texts.extend([format!("{odd}{plain}"), format!("{plain}{odd}"), format!("{plain}{odd}{plain}")]);
        }
        for text in texts {
            assert_eq!(serde_json::to_string(&Text(&text)).unwrap(), serde_json::to_string(&text).unwrap());
            let nested = serde_json::to_string(&[(1, Text(&text))]).unwrap();
            assert_eq!(nested, serde_json::to_string(&[(1, &text)]).unwrap());
        }
    }
}
