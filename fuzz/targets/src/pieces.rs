//! A stream of bytes, cut in pieces.

/// Cuts a stream in pieces of 0 to 11 bytes, in an order that a byte decides.
pub(crate) struct Pieces<'a> {
    pub(crate) rest: &'a [u8],
    pub(crate) state: u8,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        // A full cycle of all 256 states: it never stays at pieces of no bytes.
        self.state = self.state.wrapping_mul(5).wrapping_add(1);
        let length = usize::from(self.state % 12).min(self.rest.len());
        let (piece, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(piece)
    }
}
