//! Where a page of a list begins, as text that only we read.
//!
//! A cursor holds the serial of the last item that was given out, which says where to go on whatever has been added or
//! removed since, and a mark of its key, which tells the cursor of another list from one of this list.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// A place in a list: behind one of its items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    kind: u8,
    pub(crate) serial: u64,
    mark: u32,
}

/// The bytes of a cursor: the kind, the serial and the mark.
const LENGTH: usize = 1 + 8 + 4;

impl Cursor {
    /// Behind the item of that serial and key.
    pub(crate) fn after(kind: u8, serial: u64, key: &str) -> Self {
        Self { kind, serial, mark: mark_of(key) }
    }

    /// What a client is given.
    pub(crate) fn text(self) -> String {
        let mut bytes = vec![self.kind];
        bytes.extend_from_slice(&self.serial.to_be_bytes());
        bytes.extend_from_slice(&self.mark.to_be_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// What a client gave back, if it is a cursor of this kind.
    pub(crate) fn read(kind: u8, text: &str) -> Option<Self> {
        let mut bytes = [0; LENGTH];
        let length = URL_SAFE_NO_PAD.decode_slice(text, &mut bytes).ok()?;
        let (found, rest) = bytes.split_first()?;
        let (serial, mark) = rest.split_first_chunk()?;
        let cursor = Self {
            kind: *found,
            serial: u64::from_be_bytes(*serial),
            mark: u32::from_be_bytes(mark.first_chunk().copied()?),
        };
        (length == LENGTH && cursor.kind == kind).then_some(cursor)
    }

    /// Whether the item that it stands behind has this key.
    pub(crate) fn names(self, key: &str) -> bool {
        self.mark == mark_of(key)
    }
}

/// FNV-1a: the same in every process, so that servers with the same list take each other's cursors.
fn mark_of(key: &str) -> u32 {
    key.bytes().fold(0x811c_9dc5, |mark, byte| (mark ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        for serial in [0, 1, 255, 256, u64::MAX] {
            let cursor = Cursor::after(b't', serial, "key");
            assert_eq!(Cursor::read(b't', &cursor.text()), Some(cursor));
            assert_eq!(Cursor::read(b'r', &cursor.text()), None);
            assert!(cursor.names("key") && !cursor.names("other"));
        }
    }

    #[test]
    fn what_is_shorter_or_longer_is_none() {
        let text = Cursor::after(b't', 7, "key").text();
        assert_eq!(Cursor::read(b't', text.get(1..).unwrap()), None);
        assert_eq!(Cursor::read(b't', &format!("{text}AAAA")), None);
        assert_eq!(Cursor::read(b't', ""), None);
    }
}
