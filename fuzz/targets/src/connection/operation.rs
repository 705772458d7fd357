//! A history of a connection as bytes that a person can read and write.
//!
//! A script is a line of letters: the first says which side the connection is, the second which limits it has, and every
//! further letter is one thing that happens, with operands behind it. An operand is one character, of which the low four
//! bits count, so that `0` to `9` are themselves and `a` to `o` are 1 to 15. White space between things is nothing.
//!
//! `s0 i3 q12 x1 a0 w` is a server with tight limits: the client opens with the fourth revision, makes request 1 of the
//! third kind and cancels it; its handler answers all the same; everything is written.

use arbitrary::{Arbitrary, Result, Unstructured};

use super::speech::Utterance;

/// A history.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) side: Side,
    pub(super) limits: u8,
    pub(super) operations: Vec<Operation>,
}

/// Which side the connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Server,
    Client,
}

/// One thing that happens to a connection.
#[derive(Debug)]
pub(super) enum Operation {
    /// The peer says something.
    Hear(Utterance),
    /// The peer says something that breaks on its way.
    HearBroken(Utterance, Breakage),
    /// The peer says something longer than the limit, under an id or none.
    HearTooLong(u8),
    /// A handler answers, fails, or answers a request that it has no business with any more.
    Respond { which: u8, fails: bool },
    /// An execution ends.
    End { which: u8 },
    /// A handler reports progress.
    Progress { which: u8, value: u8 },
    /// A handler logs.
    Log { which: u8, level: u8 },
    /// Somebody calls the peer, perhaps from a handler.
    Call { method: u8, parent: u8, patience: u8 },
    /// Somebody gives up a call.
    CancelCall { which: u8 },
    /// A client opens with a revision.
    Initialize { revision: u8 },
    /// A client finds that the server speaks the newest revision.
    OpenStateless,
    /// Something changed that the peer should hear of.
    Notify { method: u8 },
    /// The writer takes so many messages, and tells of the calls among them or not.
    Write { messages: u8, tells: bool },
    /// The writer has written what it took.
    Flushed,
    /// Writing fails.
    WriteFailed,
    /// Time passes.
    Wait { steps: u8 },
    /// Time passes until something is due.
    WaitForDeadline,
    /// The peer's stream ends.
    EndOfInput,
    /// The peer is gone, and what it sent is not read yet.
    PeerGone,
    /// We shut down.
    ShutDown { now: bool },
}

/// How a message breaks.
#[derive(Debug, Clone, Copy)]
pub(super) enum Breakage {
    /// It is cut, so many sixteenths of its length from its beginning.
    Cut(u8),
    /// A byte that is not UTF-8 stands there.
    NotUtf8(u8),
    /// A bomb stands there.
    Bomb(u8),
    /// It has no end but another message.
    Twice,
}

impl<'a> Arbitrary<'a> for Script {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
        let side = if bytes.arbitrary::<u8>()? == b'c' { Side::Client } else { Side::Server };
        let limits = operand(bytes)?;
        let mut operations = Vec::new();
        while !bytes.is_empty() {
            if let Some(operation) = Operation::read(bytes)? {
                operations.push(operation);
            }
        }
        Ok(Self { side, limits, operations })
    }
}

impl Operation {
    fn read(bytes: &mut Unstructured<'_>) -> Result<Option<Self>> {
        let letter = bytes.arbitrary::<u8>()?;
        let operation = match letter {
            b'k' => {
                let breakage = Breakage::read(bytes)?;
                let letter = bytes.arbitrary()?;
                return Ok(Utterance::read(letter, bytes)?.map(|utterance| Self::HearBroken(utterance, breakage)));
            }
            b'l' => Self::HearTooLong(operand(bytes)?),
            b'a' => Self::Respond { which: operand(bytes)?, fails: false },
            b'e' => Self::Respond { which: operand(bytes)?, fails: true },
            b'd' => Self::End { which: operand(bytes)? },
            b'P' => Self::Progress { which: operand(bytes)?, value: operand(bytes)? },
            b'L' => Self::Log { which: operand(bytes)?, level: operand(bytes)? },
            b'c' => Self::Call { method: operand(bytes)?, parent: operand(bytes)?, patience: operand(bytes)? },
            b'C' => Self::CancelCall { which: operand(bytes)? },
            b'h' => Self::Initialize { revision: operand(bytes)? },
            b'm' => Self::OpenStateless,
            b'y' => Self::Notify { method: operand(bytes)? },
            b'w' => Self::Write { messages: u8::MAX, tells: true },
            b'o' => Self::Write { messages: operand(bytes)?, tells: true },
            b'O' => Self::Write { messages: operand(bytes)?, tells: false },
            b'f' => Self::Flushed,
            b'F' => Self::WriteFailed,
            b't' => Self::Wait { steps: operand(bytes)? },
            b'T' => Self::WaitForDeadline,
            b'E' => Self::EndOfInput,
            b'G' => Self::PeerGone,
            b'S' => Self::ShutDown { now: false },
            b'Z' => Self::ShutDown { now: true },
            _ => return Ok(Utterance::read(letter, bytes)?.map(Self::Hear)),
        };
        Ok(Some(operation))
    }
}

impl Breakage {
    fn read(bytes: &mut Unstructured<'_>) -> Result<Self> {
        let (kind, place) = (operand(bytes)?, operand(bytes)?);
        Ok(match kind % 4 {
            0 => Self::Cut(place),
            1 => Self::NotUtf8(place),
            2 => Self::Bomb(place),
            _ => Self::Twice,
        })
    }

    /// Breaks a message.
    pub(super) fn apply(self, message: Vec<u8>) -> Vec<u8> {
        let split = |place: u8| {
            let at = (message.len() * usize::from(place)).div_ceil(16);
            message.split_at(at.min(message.len()))
        };
        match self {
            Self::Cut(place) => split(place).0.to_vec(),
            Self::NotUtf8(place) => [split(place).0, b"\xff", split(place).1].concat(),
            Self::Bomb(place) => [split(place).0, &b"[".repeat(600), split(place).1].concat(),
            Self::Twice => message.repeat(2),
        }
    }
}

/// The next operand, 0 to 15.
pub(super) fn operand(bytes: &mut Unstructured<'_>) -> Result<u8> {
    Ok(bytes.arbitrary::<u8>()? & 0x0f)
}
