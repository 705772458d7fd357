//! Cursors of paginated lists: opaque text for clients.
//!
//! A cursor has the serial number of the last item of the previous page, which finds the next page whatever was added
//! or removed since, and a hash of the item's key, which detects the cursor of another list.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The cursor of a paginated list: a position after one of the items of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CatalogCursor {
    kind: u8,
    pub(crate) serial: u64,
    key_hash: u32,
}

/// The length of a decoded cursor, in bytes: the kind, the serial number and the hash.
const LENGTH: usize = 1 + 8 + 4;

impl CatalogCursor {
    /// Creates a cursor for the page after the item with that serial number and key.
    pub(crate) fn after(kind: u8, serial: u64, key: &str) -> Self {
        Self { kind, serial, key_hash: hash_of(key) }
    }

    /// Encodes the cursor as opaque text for clients.
    pub(crate) fn encode(self) -> String {
        let mut bytes = vec![self.kind];
        bytes.extend_from_slice(&self.serial.to_be_bytes());
        bytes.extend_from_slice(&self.key_hash.to_be_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Decodes a cursor from a client; `None` if it is not a cursor of this kind of list.
    pub(crate) fn decode(kind: u8, text: &str) -> Option<Self> {
        let mut bytes = [0; LENGTH];
        let length = URL_SAFE_NO_PAD.decode_slice(text, &mut bytes).ok()?;
        let (found, rest) = bytes.split_first()?;
        let (serial, key_hash) = rest.split_first_chunk()?;
        let cursor = Self {
            kind: *found,
            serial: u64::from_be_bytes(*serial),
            key_hash: u32::from_be_bytes(key_hash.first_chunk().copied()?),
        };
        (length == LENGTH && cursor.kind == kind).then_some(cursor)
    }

    /// Whether the cursor was made for a position after an item with this key. A cursor that was not is the cursor of
    /// another list.
    pub(crate) fn follows(self, key: &str) -> bool {
        self.key_hash == hash_of(key)
    }
}

/// Hashes the key of an item with FNV-1a, which is the same in every process, so that servers with the same list accept
/// each other's cursors.
fn hash_of(key: &str) -> u32 {
    key.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_decoded_as_it_was_encoded() {
        for serial in [0, 1, 255, 256, u64::MAX] {
            let cursor = CatalogCursor::after(b't', serial, "key");
            assert_eq!(CatalogCursor::decode(b't', &cursor.encode()), Some(cursor));
            assert_eq!(CatalogCursor::decode(b'r', &cursor.encode()), None);
            assert!(cursor.follows("key") && !cursor.follows("other"));
        }
    }

    #[test]
    fn what_is_shorter_or_longer_is_none() {
        let text = CatalogCursor::after(b't', 7, "key").encode();
        assert_eq!(CatalogCursor::decode(b't', text.get(1..).unwrap()), None);
        assert_eq!(CatalogCursor::decode(b't', &format!("{text}AAAA")), None);
        assert_eq!(CatalogCursor::decode(b't', ""), None);
    }
}
