//! Parses one JSON-RPC message in one pass over its bytes: request, notification, response or batch.
//!
//! The pass over the bytes checks UTF-8, the JSON grammar and the nesting of the whole message, and records where its members
//! are. The parser decodes only ids and method names: `params` stays text until a handler decodes it. A message that cannot be
//! read becomes a [`MalformedMessage`] with the error to answer with and, if it could be read, the id of the message.

mod params;

use std::borrow::Cow;
use std::ops::Range;

use steadfast_model::{ErrorObject, RequestId};

pub use params::{OwnedParams, Params};

use crate::json::{self, JsonError, JsonScanner};
use crate::salvage::{LONGEST_ID, SalvagedFields, SalvagedMessageShape};

/// The bytes of one JSON-RPC message, and where its members are.
///
/// The bytes of a message are parsed once, by [`Envelope::read`]; [`Envelope::message`] may be called any number of times.
///
/// ```
/// use steadfast_proto::envelope::{Envelope, Message};
/// let envelope = Envelope::read(br#"{"jsonrpc":"2.0","id":7,"result":{}}"#.to_vec(), 64);
/// assert!(matches!(envelope.message(), Ok(Message::Response { id: Some(_), .. })));
/// ```
#[derive(Debug, Clone)]
pub struct Envelope {
    text: String,
    layout: Result<MessageJsonKind, MalformedMessage>,
}

impl Envelope {
    /// Parses the bytes of one message, nested at most `deepest` levels.
    pub fn read(bytes: Vec<u8>, deepest: usize) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self { layout: scan(&text, deepest), text },
            Err(error) => {
                let kind = MalformedMessageReason::NotUtf8(error.utf8_error().valid_up_to());
                Self { text: String::new(), layout: Err(salvaging(error.as_bytes(), kind)) }
            }
        }
    }

    /// The message.
    ///
    /// # Errors
    ///
    /// Returns an error if the bytes are not a JSON-RPC message.
    pub fn message(&self) -> Result<Message<'_>, MalformedMessage> {
        self.layout.clone()?.classify(&self.text)
    }

    /// The number of bytes of the message; zero if they are not UTF-8.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether the message has no text: it has no bytes, or they are not UTF-8.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}

/// One JSON-RPC message, borrowed from its bytes.
#[derive(Debug, Clone)]
pub enum Message<'a> {
    /// A request.
    Request {
        /// Its id.
        id: RequestId,
        /// The method's name.
        method: Cow<'a, str>,
        /// The parameters of the request, which are a JSON object.
        params: Params<'a>,
    },
    /// A notification.
    Notification {
        /// The method's name.
        method: Cow<'a, str>,
        /// The parameters of the notification, which are a JSON object.
        params: Params<'a>,
    },
    /// A response of the peer to a request of this side.
    Response {
        /// The id of the request that the response answers. The id is `None` for an error response without an id.
        id: Option<RequestId>,
        /// The result or the error of the response.
        body: ResultOrError<'a>,
    },
    /// A batch, which is a JSON array of JSON-RPC messages.
    Batch(Batch<'a>),
}

/// The result or error of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultOrError<'a> {
    /// The JSON text of the member `result` of a response.
    Result(&'a str),
    /// The JSON text of the member `error` of a response.
    Error(&'a str),
    /// The response has neither a result nor an error, or both.
    Malformed,
}

/// A batch: an array whose grammar has been checked, and whose messages have not been read.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    text: &'a str,
    length: usize,
}

impl<'a> Batch<'a> {
    /// The number of messages in the batch.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether the batch has no messages.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Calls `member` with the text of each message of the batch, in order.
    pub fn each(&self, mut member: impl FnMut(&'a str)) {
        let mut walker = JsonScanner::new(self.text, json::DEEPEST);
        // There can be no fault: the grammar has been checked.
        let _ = walker.elements(|walker| {
            let range = walker.value(1)?;
            if let Some(text) = self.text.get(range) {
                member(text);
            }
            Ok(())
        });
    }
}

/// Why a message of the peer was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MalformedMessageReason {
    /// The bytes of the message are not UTF-8, from this offset on.
    NotUtf8(usize),
    /// The text of the message is not JSON, from this offset on.
    NotJson(usize),
    /// The message is nested deeper than this limit.
    TooDeep(usize),
    /// The message is longer than this limit.
    TooLong(usize),
    /// The message is JSON, but not a JSON-RPC message, for this reason.
    NotAMessage(&'static str),
    /// The message is a request or notification whose parameters are not an object.
    BadParams,
}

/// A malformed message of the peer, which was refused, with the fields that could be read of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedMessage {
    /// Why.
    pub kind: MalformedMessageReason,
    /// The fields that could be read of the malformed message.
    pub salvaged: SalvagedFields,
}

impl MalformedMessage {
    /// The JSON-RPC error to answer the malformed message with.
    pub fn error(&self) -> ErrorObject {
        match &self.kind {
            MalformedMessageReason::NotUtf8(at) => {
                ErrorObject::parse_error(format!("the message is not UTF-8, from byte {at}"))
            }
            MalformedMessageReason::NotJson(at) => {
                ErrorObject::parse_error(format!("the message is not JSON, from byte {at}"))
            }
            MalformedMessageReason::TooDeep(limit) => {
                ErrorObject::invalid_request(format!("the message is nested deeper than the limit of {limit} levels"))
            }
            MalformedMessageReason::TooLong(limit) => {
                ErrorObject::invalid_request(format!("the message is longer than the limit of {limit} bytes"))
            }
            MalformedMessageReason::NotAMessage(why) => ErrorObject::invalid_request(*why),
            MalformedMessageReason::BadParams => {
                ErrorObject::invalid_params("the params of a message must be a JSON object")
            }
        }
    }
}

/// Reads one message.
///
/// ```
/// use steadfast_proto::envelope::{Message, read};
/// let message = read(br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"add"}}"#, 64).unwrap();
/// let Message::Request { id, method, params } = message else { panic!() };
/// assert_eq!((id.to_string().as_str(), &*method), ("7", "tools/call"));
/// assert_eq!(params.get("name"), Some("\"add\""));
/// ```
pub fn read(bytes: &[u8], deepest: usize) -> Result<Message<'_>, MalformedMessage> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return Err(salvaging(bytes, MalformedMessageReason::NotUtf8(error.valid_up_to()))),
    };
    read_text(text, deepest)
}

/// Reads one message from text, such as a message of a batch.
pub fn read_text(text: &str, deepest: usize) -> Result<Message<'_>, MalformedMessage> {
    scan(text, deepest)?.classify(text)
}

/// What the pass over the text of a message finds: an object, an array or another JSON value.
#[derive(Debug, Clone)]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly every message is an object, and a box would need an allocation for each message"
)]
enum MessageJsonKind {
    /// The message is a JSON object with these members.
    Object(MessageMembers),
    /// The message is a JSON array with this number of elements.
    Array(usize),
    /// Another JSON value.
    Scalar,
}

/// Checks the grammar and the nesting of a message, and finds its members, in one pass over the text.
fn scan(text: &str, deepest: usize) -> Result<MessageJsonKind, MalformedMessage> {
    let fault = |fault| {
        let kind = match fault {
            JsonError::Syntax(at) => MalformedMessageReason::NotJson(at),
            JsonError::TooDeep => MalformedMessageReason::TooDeep(deepest),
        };
        salvaging(text.as_bytes(), kind)
    };
    let mut walker = JsonScanner::new(text, deepest);
    match walker.peek() {
        Some(b'{') => MessageMembers::walk(&mut walker, text).map(MessageJsonKind::Object).map_err(fault),
        Some(b'[') => {
            let mut length = 0;
            let whole = walker.elements(|walker| {
                length += 1;
                walker.value(1).map(drop)
            });
            whole.and_then(|()| walker.end()).map_err(fault)?;
            Ok(MessageJsonKind::Array(length))
        }
        _ => {
            walker.value(0).and_then(|_| walker.end()).map_err(fault)?;
            Ok(MessageJsonKind::Scalar)
        }
    }
}

impl MessageJsonKind {
    /// Classifies the scanned message as a request, notification, response or batch. The `text` must be the text that was
    /// scanned.
    fn classify(self, text: &str) -> Result<Message<'_>, MalformedMessage> {
        match self {
            Self::Object(members) => members.classify(text),
            Self::Array(length) => Ok(Message::Batch(Batch { text, length })),
            Self::Scalar => {
                let kind = MalformedMessageReason::NotAMessage("a JSON-RPC message must be a JSON object");
                Err(MalformedMessage { kind, salvaged: SalvagedFields::default() })
            }
        }
    }
}

fn salvaging(bytes: &[u8], kind: MalformedMessageReason) -> MalformedMessage {
    MalformedMessage { kind, salvaged: SalvagedFields::from_bytes(bytes) }
}

/// The members of a message's object, as ranges of its text.
#[derive(Debug, Clone, Default)]
struct MessageMembers {
    version: Option<Range<usize>>,
    id: Option<Range<usize>>,
    method: Option<Range<usize>>,
    params: Option<(Range<usize>, Option<params::MemberIndex>)>,
    result: Option<Range<usize>>,
    error: Option<Range<usize>>,
    /// Whether a JSON-RPC member of the message, such as `method`, occurs twice.
    twice: bool,
    /// Whether the member `id` of the message occurs twice.
    id_twice: bool,
}

impl MessageMembers {
    fn walk(walker: &mut JsonScanner<'_>, text: &str) -> Result<Self, JsonError> {
        let mut members = Self::default();
        walker.members(|walker, key| {
            let key = text.get(key).unwrap_or_default();
            let unescaped = json::unescape(key);
            let slot = match unescaped.as_deref() {
                Some("jsonrpc") => &mut members.version,
                Some("id") => &mut members.id,
                Some("method") => &mut members.method,
                Some("result") => &mut members.result,
                Some("error") => &mut members.error,
                Some("params") => {
                    let params = params::walk(walker, text)?;
                    members.twice |= members.params.replace(params).is_some();
                    return Ok(());
                }
                _ => return walker.value(1).map(drop),
            };
            let value = walker.value(1)?;
            let again = slot.replace(value).is_some();
            members.twice |= again;
            members.id_twice |= again && unescaped.as_deref() == Some("id");
            Ok(())
        })?;
        walker.end()?;
        Ok(members)
    }

    fn classify(self, text: &str) -> Result<Message<'_>, MalformedMessage> {
        let slice = |range: &Option<Range<usize>>| range.clone().and_then(|range| text.get(range));
        let id = match slice(&self.id) {
            None => IdMember::Absent,
            Some("null") => IdMember::Null,
            Some(json) if json.len() <= LONGEST_ID => RequestId::parse(json).map_or(IdMember::Wrong, IdMember::Some),
            Some(_) => IdMember::Wrong,
        };
        let method = slice(&self.method);
        let answers = self.result.is_some() || self.error.is_some();
        let shape = SalvagedMessageShape::of(method.is_some(), answers);
        let refuse = |kind, id: &IdMember| {
            let id = if let IdMember::Some(id) = id { Some(id.clone()) } else { None };
            Err(MalformedMessage { kind, salvaged: SalvagedFields { id, shape } })
        };
        if self.twice {
            // Which of the two is meant cannot be known. A response with one id still ends its call.
            let id = if shape == SalvagedMessageShape::Response && !self.id_twice { id } else { IdMember::Absent };
            return refuse(MalformedMessageReason::NotAMessage("a member of the JSON-RPC message occurs twice"), &id);
        }
        if slice(&self.version) != Some("\"2.0\"") {
            return refuse(MalformedMessageReason::NotAMessage("the jsonrpc member must be \"2.0\""), &id);
        }
        let Some(method) = method else {
            return match (id, answers) {
                (IdMember::Some(id), true) => Ok(Message::Response { id: Some(id), body: self.body(text) }),
                (IdMember::Absent | IdMember::Null, true) => Ok(Message::Response { id: None, body: self.body(text) }),
                (id, true) => refuse(
                    MalformedMessageReason::NotAMessage("the id of a response must be a string or an integer"),
                    &id,
                ),
                (id, false) => refuse(
                    MalformedMessageReason::NotAMessage("a JSON-RPC message must have a method, a result or an error"),
                    &id,
                ),
            };
        };
        if [&self.result, &self.error].into_iter().any(|member| slice(member).is_some_and(|text| text != "null")) {
            return refuse(
                MalformedMessageReason::NotAMessage("a JSON-RPC message must not be both a request and a response"),
                &id,
            );
        }
        let name = method.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).and_then(json::unescape);
        let Some(name) = name else {
            return refuse(MalformedMessageReason::NotAMessage("the method of a message must be a string"), &id);
        };
        if matches!(id, IdMember::Null | IdMember::Wrong) {
            let why = "the id of a request must be a string of at most 4096 bytes or an integer";
            return refuse(MalformedMessageReason::NotAMessage(why), &id);
        }
        let params = match self.params {
            None => Params::absent(),
            Some((range, Some(index))) => Params::new(text.get(range).unwrap_or_default(), index),
            Some((range, None)) if text.get(range.clone()) == Some("null") => Params::absent(),
            Some(_) => return refuse(MalformedMessageReason::BadParams, &id),
        };
        match id {
            IdMember::Some(id) => Ok(Message::Request { id, method: name, params }),
            _ => Ok(Message::Notification { method: name, params }),
        }
    }

    fn body<'a>(&self, text: &'a str) -> ResultOrError<'a> {
        let slice = |range: &Option<Range<usize>>| range.clone().and_then(|range| text.get(range));
        match (slice(&self.result), slice(&self.error)) {
            (Some(result), None) => ResultOrError::Result(result),
            (None, Some(error)) => ResultOrError::Error(error),
            _ => ResultOrError::Malformed,
        }
    }
}

enum IdMember {
    Absent,
    Null,
    Wrong,
    Some(RequestId),
}

#[cfg(test)]
mod tests;
