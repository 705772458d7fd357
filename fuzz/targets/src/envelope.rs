//! One message: what it is agrees with what serde reads, and what is broken is refused under the id that it had.
//!
//! - Whatever the bytes are, reading them does not panic.
//! - Within the limit of nesting, what is JSON is what serde takes for JSON.
//! - What a message is, its id, method and parameters are what serde finds in it.
//! - A request that is broken behind its id is refused under that id.
//!
//! Input: a byte for the limit of nesting, a byte for the place to break, the message.

use std::borrow::Cow;

use serde_json::value::RawValue;
use steadfast_proto::envelope::{Batch, Message, Params, MalformedMessage, MalformedMessageReason, ResultOrError, read};
use steadfast_proto::salvage::{MalformedMessageScanner, SalvagedFields, SalvagedMessageShape};

use crate::members::Members;

/// Ids that are spelled in more bytes are none.
const LONGEST_ID: usize = 4096;

/// Runs the target.
pub fn run(bytes: &[u8]) {
    let [depth, place, bytes @ ..] = bytes else { return };
    // The message itself is one level and its parameters are the second.
    let deepest = 2 + usize::from(*depth);
    assert_salvage_takes_any_split(bytes, usize::from(*place));
    let outcome = read(bytes, deepest);
    if let Err(refusal) = &outcome {
        assert_integer_stands_there(&refusal.salvaged, bytes);
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        assert!(matches!(refusal(&outcome).kind, MalformedMessageReason::NotUtf8(_)));
        return;
    };
    if serde_json::from_str::<&RawValue>(text).is_err() {
        // A bomb may be found to be one before it is found to be no JSON.
        assert!(matches!(refusal(&outcome).kind, MalformedMessageReason::NotJson(_) | MalformedMessageReason::TooDeep(_)), "{text}");
        return;
    }
    let too_deep = nesting(text) > deepest;
    match text.trim_start().as_bytes().first() {
        Some(b'{') => {
            let Ok(Members(members)) = serde_json::from_str(text) else { return };
            let said = Said::of(&members);
            if too_deep {
                let refusal = refusal(&outcome);
                assert_eq!(refusal.kind, MalformedMessageReason::TooDeep(deepest));
                return said.assert_salvaged(&refusal.salvaged);
            }
            said.assert_read(&outcome);
            if let Ok(Message::Request { .. }) = outcome {
                assert_broken_ones_keep_their_id(text, &said, usize::from(*place), deepest);
            }
        }
        Some(b'[') if !too_deep => {
            let Ok(Message::Batch(batch)) = outcome else { panic!("an array is a batch: {outcome:?}") };
            assert_members(&batch, text);
        }
        _ if too_deep => assert_eq!(refusal(&outcome).kind, MalformedMessageReason::TooDeep(deepest)),
        _ => assert!(matches!(refusal(&outcome).kind, MalformedMessageReason::NotAMessage(_))),
    }
}

fn refusal<'a>(outcome: &'a Result<Message<'_>, MalformedMessage>) -> &'a MalformedMessage {
    match outcome {
        Ok(message) => panic!("taken, and should have been refused: {message:?}"),
        Err(refusal) => refusal,
    }
}

/// What a message says of itself, as serde reads it.
struct Said<'a> {
    version: Vec<&'a RawValue>,
    id: Vec<&'a RawValue>,
    method: Vec<&'a RawValue>,
    params: Vec<&'a RawValue>,
    result: Vec<&'a RawValue>,
    error: Vec<&'a RawValue>,
}

/// What the id of a message is.
#[derive(Debug, PartialEq, Eq)]
enum Id {
    Absent,
    Null,
    Wrong,
    /// Its canonical text.
    Proper(String),
}

impl<'a> Said<'a> {
    fn of(members: &[(String, &'a RawValue)]) -> Self {
        let all = |name: &str| members.iter().filter(|(key, _)| key == name).map(|(_, value)| *value).collect();
        Self {
            version: all("jsonrpc"),
            id: all("id"),
            method: all("method"),
            params: all("params"),
            result: all("result"),
            error: all("error"),
        }
    }

    fn has_a_member_twice(&self) -> bool {
        [&self.version, &self.id, &self.method, &self.params, &self.result, &self.error].iter().any(|all| all.len() > 1)
    }

    fn id(&self) -> Id {
        match self.id.first().map(|id| id.get()) {
            None => Id::Absent,
            Some("null") => Id::Null,
            Some(spelled) if spelled.len() <= LONGEST_ID => canonical(spelled).map_or(Id::Wrong, Id::Proper),
            Some(_) => Id::Wrong,
        }
    }

    fn shape(&self) -> SalvagedMessageShape {
        match (self.method.is_empty(), self.result.is_empty() && self.error.is_empty()) {
            (false, true) => SalvagedMessageShape::Call,
            (true, false) => SalvagedMessageShape::Response,
            _ => SalvagedMessageShape::Unknown,
        }
    }

    fn method(&self) -> Option<String> {
        self.method.first().and_then(|method| serde_json::from_str(method.get()).ok())
    }

    /// The text of the parameters; `None` if they are no object.
    fn params(&self) -> Option<&'a str> {
        match self.params.first().map(|params| params.get()) {
            None | Some("null") => Some("{}"),
            Some(text) => text.starts_with('{').then_some(text),
        }
    }

    /// The salvaging pass reads what a strict one reads, where there is nothing to be unsure of.
    fn assert_salvaged(&self, salvaged: &SalvagedFields) {
        let proper = match self.id() {
            Id::Proper(id) if self.id.len() == 1 => Some(id),
            _ => None,
        };
        assert_eq!(salvaged.id.as_ref().map(ToString::to_string), proper, "the salvaged id");
        assert_eq!(salvaged.shape, self.shape(), "the salvaged shape");
    }

    fn assert_read(&self, outcome: &Result<Message<'_>, MalformedMessage>) {
        let id = self.id();
        let proper = if let Id::Proper(id) = &id { Some(id.clone()) } else { None };
        if self.has_a_member_twice() {
            // Which of two was meant cannot be known. An answer that names one call ends it.
            let named = proper.filter(|_| self.shape() == SalvagedMessageShape::Response && self.id.len() == 1);
            assert_eq!(refusal(outcome).salvaged.id.as_ref().map(ToString::to_string), named);
            return;
        }
        let is_there = |all: &Vec<&RawValue>| all.first().is_some_and(|value| value.get() != "null");
        let is_both = !self.method.is_empty() && [&self.result, &self.error].into_iter().any(is_there);
        let versioned = !is_both && self.version.first().is_some_and(|version| version.get() == "\"2.0\"");
        let answers = self.shape() == SalvagedMessageShape::Response;
        match (versioned, self.method(), self.params(), id) {
            (true, Some(name), Some(text), Id::Proper(expected)) => {
                let Ok(Message::Request { id, method, params }) = outcome else { panic!("a request: {outcome:?}") };
                assert_eq!((id.to_string(), &**method), (expected, &*name));
                assert_params(params, text);
            }
            (true, Some(name), Some(text), Id::Absent) => {
                let Ok(Message::Notification { method, params }) = outcome else {
                    panic!("a notification: {outcome:?}")
                };
                assert_eq!(method, &name);
                assert_params(params, text);
            }
            (true, None, _, Id::Proper(_) | Id::Absent | Id::Null) if answers => {
                let Ok(Message::Response { id, body }) = outcome else { panic!("an answer: {outcome:?}") };
                assert_eq!(id.as_ref().map(ToString::to_string), proper);
                assert_eq!(*body, self.body());
            }
            _ => {
                let refusal = refusal(outcome);
                assert!(matches!(refusal.kind, MalformedMessageReason::NotAMessage(_) | MalformedMessageReason::BadParams), "{refusal:?}");
                assert_eq!(refusal.salvaged.id.as_ref().map(ToString::to_string), proper, "the id of what is refused");
            }
        }
    }

    fn body(&self) -> ResultOrError<'a> {
        match (self.result.first(), self.error.first()) {
            (Some(result), None) => ResultOrError::Result(result.get()),
            (None, Some(error)) => ResultOrError::Error(error.get()),
            _ => ResultOrError::Malformed,
        }
    }
}

/// The canonical text of a string or an integer.
fn canonical(spelled: &str) -> Option<String> {
    if spelled.starts_with('"') {
        let text: String = serde_json::from_str(spelled).ok()?;
        return serde_json::to_string(&text).ok();
    }
    let digits = spelled.strip_prefix('-').unwrap_or(spelled);
    let integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    integer.then(|| if digits == "0" { "0".to_owned() } else { spelled.to_owned() })
}

/// Parameters are the text that serde sees, and each member is found by its name.
fn assert_params(params: &Params<'_>, text: &str) {
    assert_eq!(params.text(), text);
    let Ok(Members(members)) = serde_json::from_str(text) else { return };
    let owned = params.to_owned();
    for (name, _) in &members {
        // The last of several with one name, as serde's maps have it.
        let value = members.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.get());
        assert_eq!(params.get(name), value, "member {name:?}");
        assert_eq!(owned.get(name), value, "member {name:?}, owned");
        assert_eq!(
            owned.range_of(name).and_then(|range| owned.text().get(range)),
            value,
            "the range of member {name:?}"
        );
        let string: Option<String> = value.and_then(|value| serde_json::from_str(value).ok());
        assert_eq!(params.get_string(name).map(Cow::into_owned), string, "member {name:?} as a string");
    }
    assert_eq!(params.get("a name that nobody sends"), None);
}

fn assert_members(batch: &Batch<'_>, text: &str) {
    let expected: Vec<&RawValue> = serde_json::from_str(text).expect("serde took it before");
    let mut members = Vec::new();
    batch.each(|member| members.push(member));
    assert_eq!(members, expected.iter().map(|member| member.get()).collect::<Vec<_>>());
    assert_eq!((batch.len(), batch.is_empty()), (expected.len(), expected.is_empty()));
}

/// Breaks a request somewhere behind its id: cut off, with a byte that is not UTF-8, and with a bomb.
fn assert_broken_ones_keep_their_id(text: &str, said: &Said<'_>, place: usize, deepest: usize) {
    let Some(end) = end_of_id(text, said) else { return };
    let Id::Proper(id) = said.id() else { panic!("a request has a proper id: {text}") };
    let bytes = text.as_bytes();
    let at = end + place % (bytes.len() - end + 1);
    let (before, after) = bytes.split_at(at);
    let mut broken = vec![before.to_vec(), [before, &b"[".repeat(deepest)].concat()];
    if !before.ends_with(b"\\") {
        // Behind a backslash it would take the place of what was escaped, and that may have been a quote.
        broken.push([before, b"\xff", after].concat());
    }
    for bytes in broken {
        let Err(refusal) = read(&bytes, deepest) else { continue };
        assert_eq!(
            refusal.salvaged.id.map(|id| id.to_string()),
            Some(id.clone()),
            "{}",
            String::from_utf8_lossy(&bytes)
        );
    }
}

/// The first place where the id is certainly over: behind the comma and the quote of the next key. `None` if it is the last member.
fn end_of_id(text: &str, said: &Said<'_>) -> Option<usize> {
    let id = said.id.first()?.get();
    let end = id.as_ptr().addr() - text.as_ptr().addr() + id.len();
    let rest = text.get(end..)?.trim_ascii_start().strip_prefix(',')?.trim_ascii_start().strip_prefix('"')?;
    Some(text.len() - rest.len())
}

fn assert_salvage_takes_any_split(bytes: &[u8], place: usize) {
    let whole = SalvagedFields::from_bytes(bytes);
    let (first, second) = bytes.split_at(place.min(bytes.len()));
    let mut salvage = MalformedMessageScanner::default();
    salvage.feed(first);
    salvage.feed(second);
    assert_eq!(salvage.finish(), whole);
}

/// An integer that was salvaged from a wreck is one that stands in it, not one that was put together from pieces.
fn assert_integer_stands_there(salvaged: &SalvagedFields, bytes: &[u8]) {
    let Some(id) = salvaged.id.as_ref().map(ToString::to_string) else { return };
    let stands = bytes.windows(id.len()).any(|window| window == id.as_bytes());
    assert!(stands || id.starts_with('"'), "{id} stands nowhere in {}", String::from_utf8_lossy(bytes));
}

/// How deep JSON text is nested.
fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest) = (0, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth -= 1,
            _ => {}
        }
    }
    deepest
}
