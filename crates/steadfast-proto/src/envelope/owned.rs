//! A message that owns its bytes, for a transport that parses it in one task and handles it in another.

use super::{MalformedMessage, MalformedMessageKind, Message, MessageLayout, salvaging, scan};

/// The bytes of one message, and where its members are.
///
/// The bytes are parsed once, by [`Envelope::read`]; [`Envelope::message`] may be called any number of times.
///
/// ```
/// use steadfast_proto::envelope::{Envelope, Message};
/// let envelope = Envelope::read(br#"{"jsonrpc":"2.0","id":7,"result":{}}"#.to_vec(), 64);
/// assert!(matches!(envelope.message(), Ok(Message::Response { id: Some(_), .. })));
/// ```
#[derive(Debug, Clone)]
pub struct Envelope {
    text: String,
    layout: Result<MessageLayout, MalformedMessage>,
}

impl Envelope {
    /// Parses the bytes of one message, nested at most `deepest` levels.
    pub fn read(bytes: Vec<u8>, deepest: usize) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self { layout: scan(&text, deepest), text },
            Err(error) => {
                let kind = MalformedMessageKind::NotUtf8(error.utf8_error().valid_up_to());
                Self { text: String::new(), layout: Err(salvaging(error.as_bytes(), kind)) }
            }
        }
    }

    /// The message.
    ///
    /// # Errors
    ///
    /// If the bytes are not a JSON-RPC message.
    pub fn message(&self) -> Result<Message<'_>, MalformedMessage> {
        self.layout.clone()?.classify(&self.text)
    }

    /// How many bytes the message has; zero if they are not UTF-8.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether there are no bytes, or none that are UTF-8.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}
