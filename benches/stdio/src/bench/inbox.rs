//! The reading half of the load generator: whole lines out of large reads.
//!
//! A line is looked at once. The first answer is parsed and checked in full; after that an answer has to have the same
//! length apart from its id, which an error or another result would not. That keeps the generator from taking the time
//! that is being measured.

use crate::workload::Tool;
use memchr::memmem::Finder;
use serde_json::Value;
use std::io::{self, Read};

/// Splits what a server writes into lines and checks them.
pub(crate) struct Inbox {
    buffer: Vec<u8>,
    /// Where the unread line begins, where the search for its end goes on, and where the bytes end.
    start: usize,
    searched: usize,
    filled: usize,
    finder: Finder<'static>,
    shape: Option<usize>,
}

/// What one read brought.
#[derive(Default)]
pub(crate) struct Arrived {
    pub(crate) answers: u64,
    /// The sum of their ids: with consecutive ids it tells whether each was answered once.
    pub(crate) id_sum: u64,
}

impl Inbox {
    const CAPACITY: usize = 1 << 20;
    /// What a read may bring: all that a pipe holds.
    const READ: usize = 1 << 16;

    pub(crate) fn new() -> Self {
        Self {
            buffer: vec![0; Self::CAPACITY],
            start: 0,
            searched: 0,
            filled: 0,
            finder: Finder::new("\"id\":"),
            shape: None,
        }
    }

    /// Reads one line, blocking until it is whole: for the opening.
    pub(crate) fn line(&mut self, from: &mut impl Read) -> io::Result<Vec<u8>> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.buffer[self.searched..self.filled]) {
                let end = self.searched + end;
                let line = self.buffer[self.start..end].to_vec();
                self.start = end + 1;
                self.searched = self.start;
                return Ok(line);
            }
            self.searched = self.filled;
            self.fill(from)?;
        }
    }

    /// Does one read and takes every answer that is whole.
    pub(crate) fn answers(&mut self, from: &mut impl Read, tool: Tool) -> io::Result<Arrived> {
        self.fill(from)?;
        let mut arrived = Arrived::default();
        while let Some(end) = memchr::memchr(b'\n', &self.buffer[self.searched..self.filled]) {
            let end = self.searched + end;
            let id = self.check(self.start, end, tool)?;
            arrived.answers += 1;
            arrived.id_sum = arrived.id_sum.wrapping_add(id);
            self.start = end + 1;
            self.searched = self.start;
        }
        self.searched = self.filled;
        Ok(arrived)
    }

    fn fill(&mut self, from: &mut impl Read) -> io::Result<()> {
        if self.start == self.filled {
            (self.start, self.searched, self.filled) = (0, 0, 0);
        } else if self.buffer.len() - self.filled < Self::READ {
            self.buffer.copy_within(self.start..self.filled, 0);
            self.filled -= self.start;
            self.searched -= self.start;
            self.start = 0;
            if self.buffer.len() - self.filled < Self::READ {
                self.buffer.resize(2 * self.buffer.len(), 0);
            }
        }
        let read = from.read(&mut self.buffer[self.filled..])?;
        if read == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed its output"));
        }
        self.filled += read;
        Ok(())
    }

    /// The id of the answer at these places, if it is the right one.
    fn check(&mut self, start: usize, end: usize, tool: Tool) -> io::Result<u64> {
        let line = &self.buffer[start..end];
        let (id, digits) = id_of(&self.finder, line).ok_or_else(|| wrong("has no id", line))?;
        let shape = line.len() - digits;
        match self.shape {
            Some(expected) if expected == shape => Ok(id),
            Some(_) => Err(wrong("is not like the ones before it", line)),
            None => {
                is_right(line, tool)?;
                self.shape = Some(shape);
                Ok(id)
            }
        }
    }
}

fn id_of(finder: &Finder<'_>, line: &[u8]) -> Option<(u64, usize)> {
    let rest = line.get(finder.find(line)? + finder.needle().len()..)?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut id: u64 = 0;
    for byte in &rest[..digits] {
        id = id.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
    }
    (digits > 0).then_some((id, digits))
}

fn is_right(line: &[u8], tool: Tool) -> io::Result<()> {
    let answer: Value = serde_json::from_slice(line).map_err(|_| wrong("is not JSON", line))?;
    let result = answer.get("result").ok_or_else(|| wrong("has no result", line))?;
    if result.get("isError") == Some(&Value::Bool(true)) {
        return Err(wrong("is a tool's failure", line));
    }
    let text = result.pointer("/content/0/text").and_then(Value::as_str).unwrap_or_default();
    if tool.is_answered_by(text) { Ok(()) } else { Err(wrong("has the wrong text", line)) }
}

fn wrong(why: &str, line: &[u8]) -> io::Error {
    let shown: String = String::from_utf8_lossy(line).chars().take(300).collect();
    io::Error::new(io::ErrorKind::InvalidData, format!("an answer {why}: {shown}"))
}

#[cfg(test)]
mod tests {
    use super::Inbox;
    use crate::workload::Tool;
    use std::io::{self, Read};

    /// Hands out its bytes a few at a time.
    struct Trickle<'a>(&'a [u8], usize);

    impl Read for Trickle<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let size = self.1.min(buffer.len());
            self.0.read(&mut buffer[..size])
        }
    }

    fn answer(id: u64, text: &str) -> String {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}}}\n"
        )
    }

    fn take(bytes: &str, step: usize) -> io::Result<(u64, u64)> {
        let mut from = Trickle(bytes.as_bytes(), step);
        let mut inbox = Inbox::new();
        let (mut answers, mut id_sum) = (0, 0);
        while !from.0.is_empty() {
            let arrived = inbox.answers(&mut from, Tool::Add)?;
            answers += arrived.answers;
            id_sum += arrived.id_sum;
        }
        Ok((answers, id_sum))
    }

    #[test]
    fn answers_are_counted_however_they_are_split() {
        let bytes: String = (8..=11).map(|id| answer(id, "42")).collect();
        for step in [1, 7, bytes.len()] {
            assert_eq!(take(&bytes, step).ok(), Some((4, 38)), "reads of {step} bytes");
        }
    }

    #[test]
    fn a_wrong_first_answer_is_refused() {
        assert!(take(&answer(1, "43"), 64).is_err());
    }

    #[test]
    fn a_later_answer_of_another_shape_is_refused() {
        assert!(take(&(answer(1, "42") + &answer(2, "4242")), 64).is_err());
    }
}
