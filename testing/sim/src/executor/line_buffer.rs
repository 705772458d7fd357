//! Bytes of a stream, put together to lines.

/// The beginning of a line whose end has not come yet.
#[derive(Default)]
pub(crate) struct LineBuffer(Vec<u8>);

impl LineBuffer {
    /// Takes the next bytes of the stream. Returns the lines that end in them, without their newlines.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', bytes) {
            self.0.extend_from_slice(&bytes[start..end]);
            lines.push(std::mem::take(&mut self.0));
            start = end + 1;
        }
        self.0.extend_from_slice(&bytes[start..]);
        lines
    }

    /// What has come of a line that has not ended.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_are_the_same_however_the_bytes_are_cut() {
        let text = b"one\n\ntwo\nthr";
        for at in 0..text.len() {
            let (mut buffer, (before, after)) = (LineBuffer::default(), text.split_at(at));
            let mut lines = buffer.push(before);
            lines.extend(buffer.push(after));
            assert_eq!(lines, [&b"one"[..], b"", b"two"]);
            assert_eq!(buffer.rest(), b"thr");
        }
    }
}
