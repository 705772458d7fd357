//! Endpoints that are ready to be used, and the messages that are sent to them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steadfast_model::{ClientCapabilities, Implementation, Method, Revision, ServerCapabilities};
use steadfast_proto::connection::{
    Call, ClientDescription, ClientOrServerDescription, Connection, Limits, PeerInfo, ServerDescription,
};

use crate::endpoint::Endpoint;
use crate::observation::ledger::{Settings, Side};
use crate::observation::message::Message;
use crate::observation::trace::Trace;

pub(crate) fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.in_flight = 3;
    limits.handler_deadline = Some(Duration::from_secs(10));
    limits.drain_window = Duration::from_secs(1);
    limits.drain_deadline = Duration::from_secs(2);
    limits
}

pub(crate) fn limited(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = limits();
    change(&mut limits);
    limits
}

pub(crate) fn request(id: Value, token: Option<&str>) -> Value {
    let meta = token.map_or(json!({}), |token| json!({ "progressToken": token }));
    json!({"jsonrpc":"2.0","id":id,"method":"tools/call","params":{"name":"t","_meta":meta}})
}

pub(crate) fn modern(id: Value, token: Option<&str>) -> Value {
    let mut request = request(id, token);
    request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    request["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
    request
}

pub(crate) fn discover() -> Value {
    let mut discover = modern(json!("d"), None);
    discover["method"] = json!("server/discover");
    discover
}

pub(crate) fn cancel(id: Value) -> Value {
    json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":id}})
}

pub(crate) fn initialize(revision: Revision) -> Value {
    json!({"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":revision.as_str(),
        "capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}})
}

pub(crate) fn initialize_result(revision: Revision) -> Value {
    json!({"protocolVersion":revision.as_str(),"capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}})
}

fn settings(side: Side, limits: &Limits) -> Arc<Settings> {
    Arc::new(Settings { side, limits: limits.clone(), longest_frame: 4_096 })
}

pub(crate) fn unopened_server(limits: Limits) -> impl Fn() -> Endpoint + Send + Sync + 'static {
    move || {
        let capabilities = ServerCapabilities::new().with_tools(true).with_logging();
        let hello = ServerDescription::new(Implementation::new("sim", "1"), capabilities);
        Endpoint::new(
            "server",
            Connection::new(ClientOrServerDescription::from(hello), limits.clone()),
            settings(Side::Server, &limits),
        )
    }
}

pub(crate) fn unopened_client(limits: Limits) -> impl Fn() -> Endpoint + Send + Sync + 'static {
    move || {
        let hello =
            ClientDescription::new(Implementation::new("sim", "1"), ClientCapabilities::new().with_roots(false));
        Endpoint::new(
            "client",
            Connection::new(ClientOrServerDescription::from(hello), limits.clone()),
            settings(Side::Client, &limits),
        )
    }
}

/// A server after its handshake.
pub(crate) fn server_of(revision: Revision, limits: Limits) -> impl Fn() -> Endpoint + Send + Sync + 'static {
    let begin = unopened_server(limits);
    move || {
        let (mut end, mut trace) = (begin(), Trace::off());
        end.receive(&mut trace, Message::read(initialize(revision).to_string().as_bytes()));
        write_all(&mut end, &mut trace);
        end.receive(&mut trace, Message::read(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#));
        end
    }
}

/// A client after its handshake; its next call has id 2.
pub(crate) fn client_of(revision: Revision, limits: Limits) -> impl Fn() -> Endpoint + Send + Sync + 'static {
    let begin = unopened_client(limits);
    move || {
        let (mut end, mut trace) = (begin(), Trace::off());
        end.initialize(&mut trace, Call::new(Method::Initialize, None), revision);
        write_all(&mut end, &mut trace);
        let answer = json!({"jsonrpc":"2.0","id":1,"result":initialize_result(revision)});
        end.receive(&mut trace, Message::read(answer.to_string().as_bytes()));
        write_all(&mut end, &mut trace);
        end
    }
}

pub(crate) fn modern_client_end(limits: Limits) -> impl Fn() -> Endpoint + Send + Sync + 'static {
    let begin = unopened_client(limits);
    move || {
        let mut end = begin();
        let mut peer = PeerInfo::new(Revision::V2026_07_28);
        peer.server_capabilities = ServerCapabilities::new().with_tools(true);
        end.open_stateless(&mut Trace::off(), peer);
        end
    }
}

pub(crate) fn write_all(end: &mut Endpoint, trace: &mut Trace) {
    while let Some(frame) = end.take_frame(trace) {
        if let Some(call) = frame.call {
            end.first_byte(trace, call);
        }
    }
    end.flushed(trace);
}
