//! What a peer may say, valid as far as its grammar goes; whether it makes sense at the time is for the connection to see.

use arbitrary::{Result, Unstructured};
use serde_json::{Value, json};
use steadfast_model::Revision;

use super::operation::operand;

/// One message of the peer's.
#[derive(Debug)]
pub(super) enum Utterance {
    /// Opens with a revision, or with one that does not exist.
    Initialize { id: u8, revision: u8 },
    /// Is ready.
    Initialized,
    /// Asks something.
    Request { id: u8, kind: u8 },
    /// Takes a request back.
    Cancel { id: u8 },
    /// Takes something back and does not say what.
    CancelNothing { kind: u8 },
    /// Answers a call of ours, or none.
    Answer { id: u8, kind: u8 },
    /// Reports progress on a call of ours.
    Progress { token: u8 },
    /// Tells something.
    Notification { kind: u8 },
    /// Says several things at once.
    Batch(Vec<Utterance>),
    /// Sends bytes.
    Raw(Vec<u8>),
}

impl Utterance {
    pub(super) fn read(letter: u8, bytes: &mut Unstructured<'_>) -> Result<Option<Self>> {
        let utterance = match letter {
            b'i' => Self::Initialize { id: 15, revision: operand(bytes)? },
            b'j' => Self::Initialize { id: operand(bytes)?, revision: operand(bytes)? },
            b'I' => Self::Initialized,
            b'q' => Self::Request { id: operand(bytes)?, kind: operand(bytes)? },
            b'x' => Self::Cancel { id: operand(bytes)? },
            b'X' => Self::CancelNothing { kind: operand(bytes)? },
            b'n' => Self::Answer { id: operand(bytes)?, kind: operand(bytes)? },
            b'p' => Self::Progress { token: operand(bytes)? },
            b'g' => Self::Notification { kind: operand(bytes)? },
            b'b' => Self::Batch(Self::read_members(bytes)?),
            b'r' => {
                let length = usize::from(bytes.arbitrary::<u8>()?).min(bytes.len());
                Self::Raw(bytes.bytes(length)?.to_vec())
            }
            _ => return Ok(None),
        };
        Ok(Some(utterance))
    }

    fn read_members(bytes: &mut Unstructured<'_>) -> Result<Vec<Self>> {
        let mut members = Vec::new();
        for _ in 0..operand(bytes)? {
            let letter = bytes.arbitrary()?;
            // A batch in a batch is one too, and small.
            let member = if letter == b'b' { Some(Self::Batch(Vec::new())) } else { Self::read(letter, bytes)? };
            members.extend(member);
        }
        Ok(members)
    }

    /// The bytes of it. `serial` is a number that no other message has.
    pub(super) fn bytes(&self, serial: u64) -> Vec<u8> {
        match self {
            Self::Raw(bytes) => bytes.clone(),
            Self::Batch(members) => {
                let members: Vec<Vec<u8>> =
                    (0..).zip(members).map(|(place, member)| member.bytes(serial * 16 + place)).collect();
                [b"[", &*members.join(&b","[..]), b"]"].concat()
            }
            _ => self.value(serial).to_string().into_bytes(),
        }
    }

    fn value(&self, serial: u64) -> Value {
        match self {
            Self::Initialize { id, revision } => request(*id, "initialize", initialize_params(*revision)),
            Self::Initialized => notification("notifications/initialized", json!({})),
            Self::Request { id, kind } => asked(*id, *kind, serial),
            Self::Cancel { id } => notification("notifications/cancelled", json!({ "requestId": request_id(*id) })),
            Self::CancelNothing { kind } => {
                let nothing = [json!(null), json!(1.5), json!({}), json!([1])];
                notification("notifications/cancelled", json!({ "requestId": nothing[usize::from(kind % 4)] }))
            }
            Self::Answer { id, kind } => answer(*id, *kind),
            Self::Progress { token } => {
                notification("notifications/progress", json!({ "progressToken": token, "progress": 1 }))
            }
            Self::Notification { kind } => {
                let names = [
                    "notifications/roots/list_changed",
                    "notifications/tools/list_changed",
                    "notifications/message",
                    "no/such",
                ];
                notification(names[usize::from(kind % 4)], json!({ "level": "info", "data": 1 }))
            }
            Self::Batch(_) | Self::Raw(_) => Value::Null,
        }
    }
}

/// The ids of a peer: integers, strings that look like them, and strings that need escapes.
pub(super) fn request_id(operand: u8) -> Value {
    match operand {
        0..=9 => json!(operand),
        10..=12 => json!((operand - 9).to_string()),
        13 => json!(i64::MAX),
        14 => json!("é\n\"\u{1f600}"),
        _ => json!("the first"),
    }
}

fn initialize_params(revision: u8) -> Value {
    let revision = Revision::ALL.get(usize::from(revision)).map_or("1999-12-31", |revision| revision.as_str());
    json!({
        "protocolVersion": revision,
        "capabilities": { "roots": {}, "sampling": {} },
        "clientInfo": { "name": "peer", "version": "1" },
    })
}

/// Requests of many kinds. Each that asks for progress does so under a token of its own.
fn asked(id: u8, kind: u8, serial: u64) -> Value {
    let modern = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/logLevel": "debug",
        "progressToken": serial,
    });
    match kind {
        0 => request(id, "tools/call", json!({ "name": "t" })),
        1 | 2 => request(id, "tools/call", json!({ "name": "t", "_meta": { "progressToken": serial } })),
        3 | 4 => request(id, "tools/call", json!({ "name": "t", "_meta": modern })),
        5 => request(id, "tools/list", json!({})),
        6 => request(id, "ping", json!({})),
        7 => request(id, "no/such\n\"method", json!({})),
        8 => request(id, "subscriptions/listen", json!({ "_meta": modern })),
        9 => request(id, "logging/setLevel", json!({ "level": "debug" })),
        10 => request(id, "server/discover", json!({ "_meta": modern })),
        11 => request(id, "roots/list", json!({})),
        12 => request(id, "sampling/createMessage", json!({ "_meta": { "progressToken": serial } })),
        13 => request(id, "tools/call", json!({ "name": "t", "arguments": { "text": "x".repeat(200) } })),
        14 => {
            request(id, "tools/call", json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "1999-12-31" } }))
        }
        _ => request(id, "tools/call", json!([1])),
    }
}

fn answer(id: u8, kind: u8) -> Value {
    let error = json!({ "code": -32000, "message": "no" });
    match kind {
        0 | 1 => json!({ "jsonrpc": "2.0", "id": request_id(id), "result": {} }),
        2 => json!({ "jsonrpc": "2.0", "id": request_id(id), "error": error }),
        3 => json!({ "jsonrpc": "2.0", "id": request_id(id), "error": 7 }),
        4 => json!({ "jsonrpc": "2.0", "id": request_id(id), "result": {}, "error": error }),
        5 => json!({ "jsonrpc": "2.0", "id": null, "error": error }),
        6 => json!({ "jsonrpc": "2.0", "error": error }),
        7 => json!({ "jsonrpc": "1.0", "id": request_id(id), "result": {} }),
        _ => {
            let revision = Revision::ALL.get(usize::from(kind - 8)).map_or("1999-12-31", |revision| revision.as_str());
            let capabilities = json!({ "tools": {}, "logging": {} });
            let server = json!({ "name": "peer", "version": "1" });
            let result = json!({ "protocolVersion": revision, "capabilities": capabilities, "serverInfo": server });
            json!({ "jsonrpc": "2.0", "id": request_id(id), "result": result })
        }
    }
}

fn request(id: u8, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": request_id(id), "method": method, "params": params })
}

fn notification(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}
