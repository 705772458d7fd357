//! The lines that are put on the wire by hand, as bytes.

use serde_json::{Value, json};
use steadfast_model::Revision;

use super::script::LONGEST_MESSAGE;
use super::workload::RawLine;
use crate::observation::message::Id;

/// What a line may have to know of the conversation.
pub(super) struct ConversationState<'a> {
    /// The id of the last call that went this way.
    pub(super) last: Option<&'a Id>,
    /// The id of the last call that went the other way.
    pub(super) last_back: Option<&'a Id>,
    /// A number that no other line of the run has.
    pub(super) number: usize,
    pub(super) revision: Revision,
    /// Whether the line goes to the server.
    pub(super) to_server: bool,
}

/// The lines, without newlines at their ends. None if what it would name is not there.
pub(super) fn bytes(line: RawLine, known: &ConversationState<'_>) -> Vec<Vec<u8>> {
    let own = json!(format!("x{}", known.number));
    let last = known.last.and_then(|id| serde_json::from_str::<Value>(id).ok());
    let message = match line {
        RawLine::DuplicateOfLast => last.map(|id| request(known, &id)),
        RawLine::CancelLast => last.map(|id| cancel(&id)),
        RawLine::CancelLastAsText => last.map(|id| cancel(&json!(id.to_string().trim_matches('"')))),
        RawLine::AnswerLast => {
            let id = known.last_back.and_then(|id| serde_json::from_str::<Value>(id).ok());
            id.map(|id| json!({"jsonrpc":"2.0","id":id,"result":{"by":"hand"}}))
        }
        RawLine::CancelUnknown => Some(cancel(&own)),
        RawLine::CancelNothing => {
            Some(json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null}}))
        }
        RawLine::AnswerNothing => Some(json!({"jsonrpc":"2.0","id":own,"result":{}})),
        RawLine::ErrorWithoutId => Some(json!({"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"x"}})),
        RawLine::NotAMessage => Some(json!({"jsonrpc":"2.0","id":own})),
        RawLine::IdNull => Some(json!({"jsonrpc":"2.0","id":null,"method":"ping"})),
        RawLine::IdFloat => Some(json!({"jsonrpc":"2.0","id":1.5,"method":"ping"})),
        RawLine::ParamsArray => Some(json!({"jsonrpc":"2.0","id":own,"method":"tools/call","params":[1]})),
        RawLine::UnknownMethod => Some(json!({"jsonrpc":"2.0","id":own,"method":"no/such"})),
        RawLine::UnknownNotification => Some(json!({"jsonrpc":"2.0","method":"notifications/no/such"})),
        RawLine::Initialize => {
            Some(json!({"jsonrpc":"2.0","id":own,"method":"initialize","params":{"protocolVersion":"2025-06-18",
            "capabilities":{},"clientInfo":{"name":"x","version":"1"}}}))
        }
        RawLine::Request => Some(request(known, &own)),
        RawLine::RequestThenCancel => {
            return vec![request(known, &own).to_string().into_bytes(), cancel(&own).to_string().into_bytes()];
        }
        RawLine::Batch => Some(json!([
            request(known, &own),
            request(known, &json!(format!("y{}", known.number))),
            {"jsonrpc":"2.0","method":"notifications/no/such"},
            cancel(&own),
            7,
        ])),
        RawLine::NotUtf8 => return vec![b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\xfe\"}".to_vec()],
        RawLine::NotJson => return vec![br#"{"jsonrpc":"2.0","method":"#.to_vec()],
        RawLine::Blank => return vec![b" \t".to_vec(), Vec::new()],
        RawLine::TooDeep => {
            return vec![
                format!("{{\"jsonrpc\":\"2.0\",\"id\":{own},\"method\":\"m\",\"params\":{}", "[".repeat(200))
                    .into_bytes(),
            ];
        }
        RawLine::TooLong => {
            let long = json!({"jsonrpc":"2.0","id":own,"method":"ping","params":{"x":"x".repeat(LONGEST_MESSAGE)}});
            return vec![long.to_string().into_bytes()];
        }
    };
    message.map(|message| message.to_string().into_bytes()).into_iter().collect()
}

fn request(known: &ConversationState<'_>, id: &Value) -> Value {
    let (method, mut params) = if known.to_server {
        ("tools/call", json!({"name":"t","arguments":{},"_meta":{}}))
    } else {
        ("roots/list", json!({}))
    };
    if known.revision.is_stateless() {
        params["_meta"] = modern_meta();
    }
    json!({"jsonrpc":"2.0","id":id,"method":method,"params":params})
}

fn cancel(id: &Value) -> Value {
    json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":id}})
}

/// What every request of 2026-07-28 carries.
pub(super) fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/logLevel": "debug",
    })
}
