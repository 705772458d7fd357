//! What a message on the wire says, as the checkers read it.
//!
//! This is a reading of its own, by way of [`Json`]: it shares nothing with the envelope of the core, so that a
//! mistake there is not repeated here. It never guesses: what it cannot place is [`Part::Unreadable`].

use std::fmt;
use std::sync::Arc;

use crate::observation::json::Json;

/// An id as canonical JSON text: `7` and `"7"` are different.
pub(crate) type Id = Arc<str>;

/// One frame, with what it says.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Message {
    pub(crate) bytes: Arc<[u8]>,
    /// The message, or the members of a batch.
    pub(crate) parts: Vec<Part>,
    pub(crate) batch: bool,
    /// It was longer than the limit; its bytes are gone.
    pub(crate) too_long: bool,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    Request {
        id: Id,
        method: Arc<str>,
        token: Option<Id>,
    },
    Answer(Answer),
    Cancel {
        id: Option<Id>,
    },
    Progress {
        token: Option<Id>,
        value: u64,
    },
    Log {
        marker: Option<u64>,
    },
    Notification {
        method: Arc<str>,
    },
    /// It has to be refused, or ignored if it seems to have been an answer or a notification.
    Unreadable {
        answer: bool,
        /// It is certainly a request: it has a method, and neither a result nor an error.
        request: bool,
        /// Its id, where it is certain.
        id: Option<Id>,
    },
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Answer {
    pub(crate) id: Option<Id>,
    /// Which execution gave it: our handlers write their number into it. Answers without one are the connection's own.
    pub(crate) marker: Option<u64>,
    /// Set for an error.
    pub(crate) code: Option<i64>,
    /// The id that an error without id names in its data.
    pub(crate) about: Option<Id>,
    /// The limit that a refusal names.
    pub(crate) limit: Option<u64>,
    /// The text of its result, if it has one.
    pub(crate) result: Option<Arc<str>>,
}

impl Message {
    /// Reads a frame.
    pub(crate) fn read(bytes: &[u8]) -> Arc<Self> {
        let json = Json::read(bytes);
        let (parts, batch) = (Part::all_of(json.as_ref(), bytes), matches!(json, Some(Json::Array(_))));
        Arc::new(Self { bytes: bytes.into(), parts, batch, too_long: false })
    }

    /// A frame that was longer than the limit.
    pub(crate) fn too_long(answer: bool, id: Option<Id>) -> Arc<Self> {
        let parts = vec![Part::Unreadable { answer, request: false, id }];
        Arc::new(Self { bytes: Arc::from([]), parts, batch: false, too_long: true })
    }

    /// Whether nothing in it can be read.
    pub(crate) fn is_unreadable(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Unreadable { .. }))
    }
}

impl Part {
    /// The messages of a frame, which is this JSON value.
    pub(crate) fn all_of(json: Option<&Json<'_>>, bytes: &[u8]) -> Vec<Self> {
        match json {
            Some(Json::Array(members)) => members.iter().map(Self::of).collect(),
            Some(json) => vec![Self::of(json)],
            None => vec![Self::unreadable(bytes)],
        }
    }

    fn unreadable(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        Self::Unreadable { answer: text.contains("\"result\"") || text.contains("\"error\""), request: false, id: None }
    }

    fn of(message: &Json<'_>) -> Self {
        if !message.is_object() {
            return Self::Unreadable { answer: false, request: false, id: None };
        }
        let answers = message.get("result").is_some() || message.get("error").is_some();
        let named = message.get("id").and_then(id_text);
        let named_method = message.get("method").is_some();
        let refused =
            Self::Unreadable { answer: answers && !named_method, request: named_method && !answers, id: named };
        if message.get("jsonrpc").and_then(Json::as_str) != Some("2.0") {
            return refused;
        }
        let id = message.get("id");
        let Some(method) = message.get("method") else {
            let id_is_wrong = id.is_some_and(|id| !id.is_null() && id_text(id).is_none());
            return if answers && !id_is_wrong { Self::Answer(Answer::of(message)) } else { refused };
        };
        let is_there = |key: &str| message.get(key).is_some_and(|value| !value.is_null());
        if is_there("result") || is_there("error") {
            return refused;
        }
        let params = message.get("params").filter(|params| !params.is_null());
        if id.is_none() && method.as_str().is_some() && params.is_some_and(|params| !params.is_object()) {
            // A notification is never answered, not even one that cannot be taken.
            return Self::Unreadable { answer: true, request: false, id: None };
        }
        let Some(method) = method.as_str().filter(|_| params.is_none_or(Json::is_object)) else { return refused };
        let params = params.unwrap_or(&Json::Null);
        match (id, id.and_then(id_text)) {
            (_, Some(id)) => {
                let token = id_text(&params["_meta"]["progressToken"]);
                Self::Request { id, method: method.into(), token }
            }
            (Some(_), None) => refused,
            (None, _) => Self::notification(method, params),
        }
    }

    fn notification(method: &str, params: &Json<'_>) -> Self {
        match method {
            "notifications/cancelled" => Self::Cancel { id: id_text(&params["requestId"]) },
            "notifications/progress" => Self::Progress {
                token: id_text(&params["progressToken"]),
                value: params["progress"].as_f64().unwrap_or(f64::NAN).to_bits(),
            },
            "notifications/message" => Self::Log { marker: params["data"]["marker"].as_u64() },
            _ => Self::Notification { method: method.into() },
        }
    }
}

impl Answer {
    fn of(message: &Json<'_>) -> Self {
        let error = &message["error"];
        let both = message.get("result").is_some() && message.get("error").is_some();
        Self {
            id: id_text(&message["id"]),
            marker: message["result"]["marker"].as_u64().or_else(|| error["data"]["marker"].as_u64()),
            code: error["code"].as_i64(),
            about: id_text(&error["data"]["id"]),
            limit: error["data"]["limit"].as_u64(),
            result: message.get("result").filter(|_| !both).map(|result| result.to_string().into()),
        }
    }
}

/// An id as canonical text, if it is one.
pub(crate) fn id_text(value: &Json<'_>) -> Option<Id> {
    match value {
        Json::String(_) => Some(value.to_string().into()),
        Json::Number(number) if number.is_i64() || number.is_u64() => Some(value.to_string().into()),
        _ => None,
    }
}

impl fmt::Display for Message {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.too_long {
            return formatter.write_str("(a line over the limit)");
        }
        let text = String::from_utf8_lossy(&self.bytes);
        let shown: String = text.chars().take(200).collect();
        formatter.write_str(&shown)?;
        if shown.len() < text.len() { write!(formatter, "... ({} bytes)", self.bytes.len()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str) -> Part {
        Message::read(text.as_bytes()).parts[0].clone()
    }

    #[test]
    fn text_and_number_are_different_ids() {
        let id = |text: &str| match part(text) {
            Part::Cancel { id } => id,
            _ => None,
        };
        let number = id(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#);
        let text = id(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"7"}}"#);
        assert_eq!((number.as_deref(), text.as_deref()), (Some("7"), Some("\"7\"")));
    }

    #[test]
    fn what_is_no_message_has_to_be_refused() {
        for text in ["{", "5", r#"{"id":1,"method":"m"}"#, r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#] {
            assert!(matches!(part(text), Part::Unreadable { answer: false, .. }), "{text}");
        }
        let torn = Part::Unreadable { answer: true, request: false, id: None };
        assert_eq!(part(r#"{"jsonrpc":"2.0","id":1,"result":{"#), torn);
        let wrong = part(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}"#);
        assert_eq!(wrong, Part::Unreadable { answer: false, request: true, id: Some("1".into()) });
    }

    #[test]
    fn the_marker_of_an_answer_names_its_execution() {
        let Part::Answer(answer) = part(r#"{"jsonrpc":"2.0","id":"a","result":{"marker":3}}"#) else { panic!() };
        assert_eq!((answer.id.as_deref(), answer.marker, answer.code), (Some("\"a\""), Some(3), None));
        let Part::Answer(answer) = part(r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"","data":{"id":7}}}"#) else {
            panic!()
        };
        assert_eq!((answer.id, answer.about.as_deref(), answer.code), (None, Some("7"), Some(-1)));
    }
}
