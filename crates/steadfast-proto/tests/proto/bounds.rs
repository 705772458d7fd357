//! Memory and time stay within bounds, however many requests are cancelled or not read.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use steadfast_model::{Implementation, Method, ServerCapabilities};
use steadfast_proto::Moment;
use steadfast_proto::connection::{
    Call, CallKey, ClientOrServerDescription, Connection, ConnectionEvent, InboundRequestKey, Limits, ProgressReport,
    ServerDescription,
};
use steadfast_proto::encode::EncodedResponse;

fn opened(revision: &str, limits: Limits) -> Connection {
    let capabilities = ServerCapabilities::new().with_tools(true).with_logging();
    let hello = ClientOrServerDescription::from(ServerDescription::new(Implementation::new("test", "1"), capabilities));
    let mut connection = Connection::new(hello, limits);
    say(
        &mut connection,
        &json!({"jsonrpc":"2.0","id":"init","method":"initialize","params":{
        "protocolVersion":revision,"capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}),
    );
    assert_eq!(wire(&mut connection).len(), 1);
    say(&mut connection, &json!({"jsonrpc":"2.0","method":"notifications/initialized"}));
    connection
}

fn say(connection: &mut Connection, message: &Value) -> Vec<InboundRequestKey> {
    connection.handle_message(Moment::ORIGIN, message.to_string().as_bytes());
    started(connection)
}

fn started(connection: &mut Connection) -> Vec<InboundRequestKey> {
    let mut keys = Vec::new();
    while let Some(event) = connection.poll_event() {
        if let ConnectionEvent::Start(request) = event {
            keys.push(request.key);
        }
    }
    keys
}

fn wire(connection: &mut Connection) -> Vec<Value> {
    let mut messages = Vec::new();
    while let Some(transmit) = connection.poll_transmit() {
        if let Some(call) = transmit.call() {
            connection.handle_call_sent(call);
        }
        messages.push(serde_json::from_slice(&transmit.body).unwrap());
    }
    connection.handle_flushed();
    messages
}

fn call(id: u64) -> Value {
    json!({"jsonrpc":"2.0","id":id,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":id}}})
}

fn cancel(id: u64) -> Value {
    json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":id}})
}

/// Withdrawn frames would otherwise stay in the queue for as long as the writer is stuck.
#[test]
fn withdrawn_frames_leave_the_queue() {
    let mut connection = opened("2025-11-25", Limits::default());
    // The writer takes nothing: it is blocked on an earlier message.
    for id in 0..20_000 {
        let key = say(&mut connection, &call(id))[0];
        connection.progress(Moment::ORIGIN, key, ProgressReport::new(0.5));
        say(&mut connection, &cancel(id));
        connection.handle_execution_ended(Moment::ORIGIN, key);
    }
    assert_eq!((connection.open_requests(), connection.live_executions(), connection.waiting_bytes()), (0, 0, 0));
    // The state of the connection as text: that of an idle one is a few kilobytes long.
    let held = format!("{connection:?}").len();
    assert!(held < 20_000, "an idle connection is {held} characters long");
}

/// The responses to a batch are sent when its last request has ended. Until then they must not count as output that waits: the
/// input that they would stop may hold the cancellation of that last request.
#[test]
fn an_open_batch_does_not_stop_the_input() {
    let limits = Limits::default();
    let mut connection = opened("2025-03-26", limits.clone());
    let keys = say(&mut connection, &json!([call(1), call(2)]));
    let large = EncodedResponse::serialized(&1.into(), &json!({"text": "x".repeat(limits.outbox_bytes)}));
    connection.respond(Moment::ORIGIN, keys[0], large);
    connection.handle_execution_ended(Moment::ORIGIN, keys[0]);
    assert!(wire(&mut connection).is_empty());
    assert!(connection.wants_input(), "the cancellation of the second request would never be read");
}

/// Handling one message must not take longer the more requests are in flight.
#[test]
fn cancelling_many_requests_with_calls_is_not_quadratic() {
    let count = 8_000;
    let mut connection = opened("2025-11-25", Limits::default());
    for id in 0..count {
        let key = say(&mut connection, &call(id))[0];
        let mut roots = Call::new(Method::ListRoots, None);
        roots.parent = Some(key);
        connection.call(Moment::ORIGIN, CallKey::new(id), roots).unwrap();
    }
    wire(&mut connection);
    let begun = Instant::now();
    for id in 0..count {
        say(&mut connection, &cancel(id));
    }
    let taken = begun.elapsed();
    eprintln!("{count} cancellations took {taken:?}");
    assert!(taken < Duration::from_millis(500), "{count} cancellations took {taken:?}");
}
