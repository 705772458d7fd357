//! Finds the id of a malformed message, and whether the message is a request or a response.
//!
//! A request that cannot be parsed (invalid UTF-8, invalid JSON, too deep or too long) should be refused with its own id, or
//! its sender waits forever. The lenient scanner of this module looks only for the members of the outermost object, whatever
//! else is broken in the message, in chunks of any size and in constant memory.

use steadfast_model::RequestId;

use crate::json;

/// What a malformed message seems to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SalvagedMessageShape {
    /// The message has a `method`, and neither a `result` nor an `error`.
    Call,
    /// The message has a `result` or an `error`, and no `method`.
    Response,
    /// The message has neither a `method` nor a `result` or `error`, or has both: its kind cannot be known.
    #[default]
    Unknown,
}

impl SalvagedMessageShape {
    /// The kind of a message, given whether it has a `method`, and whether it has a `result` or an `error`.
    pub(crate) fn of(method: bool, answer: bool) -> Self {
        match (method, answer) {
            (true, false) => Self::Call,
            (false, true) => Self::Response,
            _ => Self::Unknown,
        }
    }
}

/// What could be read of a malformed message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SalvagedFields {
    /// The id of the malformed message, if it has exactly one that is a string or an integer.
    pub id: Option<RequestId>,
    /// What the malformed message seems to be.
    pub shape: SalvagedMessageShape,
}

impl SalvagedFields {
    /// Scans the bytes of a whole malformed message.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut salvage = MalformedMessageScanner::default();
        salvage.feed(bytes);
        salvage.finish()
    }
}

/// The maximum length of a request id, in bytes. Longer request ids are not salvaged from malformed messages, and are refused
/// in well-formed ones.
pub(crate) const LONGEST_ID: usize = 4096;

/// The maximum length of an object key that the scanner of malformed messages looks for, with each of its letters escaped.
const LONGEST_KEY: usize = 36;

/// Scans a malformed message, in chunks.
#[derive(Debug, Clone, Default)]
pub struct MalformedMessageScanner {
    depth: u64,
    in_string: bool,
    escaped: bool,
    position: ScanPosition,
    /// The object key, or the value of an id, that the scanner is reading.
    text: Vec<u8>,
    ids: u32,
    id: Option<RequestId>,
    /// The byte that ended the value of an id, if an id has just ended.
    after_id: Option<u8>,
    method: bool,
    answer: bool,
}

/// The position of the scanner in the outermost object of a malformed message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ScanPosition {
    #[default]
    BeforeKey,
    Key,
    AfterKey,
    Id,
    Value,
}

impl MalformedMessageScanner {
    /// Scans the next bytes of the malformed message.
    pub fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if self.in_string {
                self.string_byte(byte);
            } else {
                self.plain_byte(byte);
            }
        }
    }

    /// The number of buffered bytes of the malformed message: only the key or id that is being read, so at most about
    /// `LONGEST_ID`.
    pub fn held(&self) -> usize {
        self.text.len()
    }

    /// Ends the scan and returns the fields that were found.
    pub fn finish(self) -> SalvagedFields {
        let shape = SalvagedMessageShape::of(self.method, self.answer);
        SalvagedFields { id: self.id.filter(|_| self.ids == 1), shape }
    }

    fn string_byte(&mut self, byte: u8) {
        let ends = byte == b'"' && !self.escaped;
        self.escaped = byte == b'\\' && !self.escaped;
        if !ends {
            return self.keep(byte);
        }
        self.in_string = false;
        match self.position {
            ScanPosition::Key => self.position = ScanPosition::AfterKey,
            ScanPosition::Id => self.keep(byte),
            _ => {}
        }
    }

    fn plain_byte(&mut self, byte: u8) {
        if let Some(end) = self.after_id.filter(|_| !byte.is_ascii_whitespace()) {
            self.after_id = None;
            // No key follows, so the comma or the brace may be a damaged byte of the id: `2,17948`, `2}17948`.
            self.ids += u32::from(end != b',' || byte != b'"');
        }
        match byte {
            b'"' => {
                self.in_string = true;
                if self.depth == 1 && self.position == ScanPosition::BeforeKey {
                    self.position = ScanPosition::Key;
                    self.text.clear();
                } else {
                    self.keep(byte);
                }
            }
            b'{' | b'[' => {
                self.depth += 1;
                // An array or object is not an id.
                self.keep(byte);
            }
            b'}' | b']' => {
                if self.depth == 1 {
                    self.after_id = (self.position == ScanPosition::Id).then_some(byte);
                    self.end_value();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 && self.position == ScanPosition::AfterKey => self.begin_value(),
            b',' if self.depth == 1 => {
                self.after_id = (self.position == ScanPosition::Id).then_some(byte);
                self.end_value();
            }
            b' ' | b'\t' | b'\r' | b'\n' => self.keep_space(),
            _ => self.keep(byte),
        }
    }

    fn begin_value(&mut self) {
        self.position = ScanPosition::Value;
        let key = std::str::from_utf8(&self.text).ok().and_then(json::unescape);
        match key.as_deref() {
            Some("id") => {
                self.position = ScanPosition::Id;
                self.ids += 1;
            }
            Some("method") => self.method = true,
            Some("result" | "error") => self.answer = true,
            _ => {}
        }
        self.text.clear();
    }

    fn end_value(&mut self) {
        let id = self.text.trim_ascii_end();
        if self.position == ScanPosition::Id && id.len() <= LONGEST_ID {
            self.id = std::str::from_utf8(id).ok().and_then(RequestId::parse);
        }
        self.text = Vec::new();
        self.position = ScanPosition::BeforeKey;
    }

    /// Keeps one space inside the id of a malformed message, so that `1 2` is not read as twelve.
    fn keep_space(&mut self) {
        if self.position == ScanPosition::Id && self.text.last().is_some_and(|last| *last != b' ') {
            self.keep(b' ');
        }
    }

    fn keep(&mut self, byte: u8) {
        let most = match self.position {
            ScanPosition::Key => LONGEST_KEY,
            ScanPosition::Id => LONGEST_ID,
            _ => return,
        };
        // Two bytes more than the maximum, a space and the byte after it, so that a longer id is not cut to a valid one.
        if self.text.len() < most + 2 {
            self.text.push(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn salvage(text: &[u8]) -> (Option<RequestId>, SalvagedMessageShape) {
        let whole = SalvagedFields::from_bytes(text);
        let mut bytewise = MalformedMessageScanner::default();
        for byte in text {
            bytewise.feed(&[*byte]);
        }
        assert_eq!(bytewise.finish(), whole, "the split must not matter");
        (whole.id, whole.shape)
    }

    #[test]
    fn the_id_is_found_before_and_after_the_damage() {
        assert_eq!(salvage(br#"{"id":7,"method":"m","params":{"#), (Some(7.into()), SalvagedMessageShape::Call));
        assert_eq!(
            salvage(b"{\"params\":{\"t\":\"\xff\xfe\"},\"method\":\"m\",\"id\":\"a\"}"),
            (Some("a".into()), SalvagedMessageShape::Call)
        );
        assert_eq!(salvage(br#"{"id" : -3 ,"result":{{{"#), (Some((-3).into()), SalvagedMessageShape::Response));
    }

    #[test]
    fn an_id_in_a_nested_value_is_not_salvaged() {
        assert_eq!(salvage(br#"{"params":{"id":1},"method":"m""#), (None, SalvagedMessageShape::Call));
        assert_eq!(salvage(br#"{"a":"\"id\":1,","method":"m""#), (None, SalvagedMessageShape::Call));
        assert_eq!(salvage(br#"["id",7]"#), (None, SalvagedMessageShape::Unknown));
    }

    #[test]
    fn a_truncated_id_is_not_salvaged() {
        assert_eq!(salvage(br#"{"method":"m","id":12"#).0, None);
        assert_eq!(salvage(br#"{"method":"m","id":"ab"#).0, None);
        assert_eq!(salvage(br#"{"method":"m","id":12}"#).0, Some(12.into()));
    }

    #[test]
    fn two_ids_or_an_invalid_id_are_not_salvaged() {
        assert_eq!(salvage(br#"{"id":1,"id":2,"#).0, None);
        assert_eq!(salvage(br#"{"id":1.5,"#).0, None);
        assert_eq!(salvage(br#"{"id":{"a":1},"#).0, None);
        assert_eq!(salvage(br#"{"identity":1,"#).0, None);
        assert_eq!(salvage(b"{\"id\":\"\xff\",").0, None);
    }

    #[test]
    fn an_id_is_not_joined_from_parts() {
        assert_eq!(salvage(br#"{"id":1 2,"method":"m""#).0, None);
        assert_eq!(salvage(br#"{"id": - 3 ,"method":"m""#).0, None);
        let longest = format!(r#""{}""#, "a".repeat(LONGEST_ID - 2));
        assert!(salvage(format!(r#"{{"id":  {longest}  ,"#).as_bytes()).0.is_some());
        assert_eq!(salvage(format!(r#"{{"id":{longest} 1,"#).as_bytes()).0, None);
        assert_eq!(salvage(format!(r#"{{"id":"a{},"#, &longest[1..]).as_bytes()).0, None);
    }

    #[test]
    fn an_id_cut_by_a_comma_is_not_salvaged() {
        assert_eq!(salvage(br#"{"id":2,17948,"method":"m","#), (None, SalvagedMessageShape::Call));
        assert_eq!(salvage(br#"{"id":2,},"method":"m","#).0, None);
        assert_eq!(salvage(b"{\"id\":2,\xff\"method\":\"m\",").0, None);
        assert_eq!(salvage(br#"{"id":2 , "method":"m","#), (Some(2.into()), SalvagedMessageShape::Call));
        assert_eq!(salvage(br#"{"method":"m","id":2,"#), (Some(2.into()), SalvagedMessageShape::Call));
    }

    #[test]
    fn keys_written_as_escapes_are_read() {
        assert_eq!(
            salvage(br#"{"\u0069\u0064":7,"m\u0065thod":"m","params":{"#),
            (Some(7.into()), SalvagedMessageShape::Call)
        );
        assert_eq!(salvage(br#"{"id":7,"\u0069d":8,"method":"m","params":{"#).0, None);
    }

    #[test]
    fn the_buffer_for_an_endless_message_is_bounded() {
        for endless in [&b"["[..], b"{\"a\":", b"1", b"\"", b" ", b"a \\"] {
            for beginning in [&b"{\"id\":"[..], b"{\"", b"{\"id\":\""] {
                let mut salvage = MalformedMessageScanner::default();
                salvage.feed(beginning);
                (0..10_000).for_each(|_| salvage.feed(endless));
                assert!(salvage.held() <= LONGEST_ID + 2, "{}", salvage.held());
            }
        }
    }

    #[test]
    fn nesting_costs_nothing() {
        let mut text = br#"{"id":5,"method":"m","params":"#.to_vec();
        text.extend(std::iter::repeat_n(b'[', 1_000_000));
        assert_eq!(salvage(&text), (Some(5.into()), SalvagedMessageShape::Call));
    }
}
