//! The laws L1 to L10, tested on the state machine itself.

use std::time::Duration;

use serde_json::{Value, json};
use steadfast_model::{
    ClientCapabilities, ErrorObject, Implementation, LoggingLevel, Method, ProgressToken, Revision, ServerCapabilities,
};

use super::*;
use crate::encode::EncodedResponse;

/// A connection with a virtual clock, and a record of its events.
struct World {
    connection: Connection,
    now: Moment,
    started: Vec<Request>,
    stopped: Vec<(InboundRequestKey, CancelReason)>,
    ended: Vec<(CallKey, CallEnd)>,
    late: Vec<Box<str>>,
    warnings: Vec<ProtocolWarning>,
    closed: Option<CloseCause>,
}

impl World {
    fn new(limits: Limits) -> Self {
        let capabilities = ServerCapabilities::new().with_tools(true).with_logging();
        let hello =
            ClientOrServerDescription::from(ServerDescription::new(Implementation::new("test", "1"), capabilities));
        Self::with(hello, limits)
    }

    fn with(hello: ClientOrServerDescription, limits: Limits) -> Self {
        Self {
            connection: Connection::new(hello, limits),
            now: Moment::ORIGIN,
            started: Vec::new(),
            stopped: Vec::new(),
            ended: Vec::new(),
            late: Vec::new(),
            warnings: Vec::new(),
            closed: None,
        }
    }

    fn opened(revision: Revision) -> Self {
        let mut world = Self::new(Limits::default());
        world.open(revision);
        world
    }

    fn open(&mut self, revision: Revision) {
        self.say(&json!({"jsonrpc":"2.0","id":"init","method":"initialize","params":{
            "protocolVersion":revision.as_str(),"capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}));
        let answers = self.wire();
        assert_eq!(answers[0]["result"]["protocolVersion"], revision.as_str());
        self.say(&json!({"jsonrpc":"2.0","method":"notifications/initialized"}));
    }

    fn say(&mut self, message: &Value) {
        self.raw(message.to_string().as_bytes());
    }

    fn raw(&mut self, bytes: &[u8]) {
        self.connection.handle_message(self.now, bytes);
        self.listen();
    }

    fn listen(&mut self) {
        while let Some(event) = self.connection.poll_event() {
            match event {
                ConnectionEvent::Start(request) => self.started.push(request),
                ConnectionEvent::Stop { key, reason } => self.stopped.push((key, reason)),
                ConnectionEvent::CallEnded { call, outcome } => self.ended.push((call, outcome)),
                ConnectionEvent::LateResult(result) => self.late.push(result),
                ConnectionEvent::Warning(warning) => self.warnings.push(warning),
                ConnectionEvent::Closed(cause) => self.closed = Some(cause),
                ConnectionEvent::CallProgress { .. }
                | ConnectionEvent::Notification { .. }
                | ConnectionEvent::Opened(_) => {}
            }
        }
    }

    /// Everything that is written now.
    fn wire(&mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        while let Some(transmit) = self.connection.poll_transmit() {
            if let Some(call) = transmit.call() {
                self.connection.handle_call_sent(call);
            }
            messages.push(serde_json::from_slice(&transmit.body).unwrap());
        }
        self.connection.handle_flushed();
        self.listen();
        messages
    }

    fn call(&mut self, id: impl Into<Value>) -> InboundRequestKey {
        self.say(&json!({"jsonrpc":"2.0","id":id.into(),"method":"tools/call","params":{"name":"t","_meta":{"progressToken":"p"}}}));
        self.started.last().unwrap().key
    }

    fn call_stateless(&mut self, id: impl Into<Value>) -> InboundRequestKey {
        let params = json!({"name":"t","_meta":stateless_meta()});
        self.say(&json!({"jsonrpc":"2.0","id":id.into(),"method":"tools/call","params":params}));
        self.started.last().unwrap().key
    }

    fn cancel(&mut self, id: impl Into<Value>) {
        self.say(&json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":id.into()}}));
    }

    fn respond(&mut self, key: InboundRequestKey) {
        let id = self.started.iter().find(|request| request.key == key).unwrap().id.clone();
        self.connection.respond(self.now, key, EncodedResponse::serialized(&id, &json!({})));
        self.listen();
    }

    fn end(&mut self, key: InboundRequestKey) {
        self.connection.handle_execution_ended(self.now, key);
        self.listen();
    }

    fn wait(&mut self, duration: Duration) {
        self.now = self.now + duration;
        self.connection.handle_timeout(self.now);
        self.listen();
    }
}

fn ids(messages: &[Value]) -> Vec<Value> {
    messages.iter().map(|message| message["id"].clone()).collect()
}

fn stateless_meta() -> Value {
    json!({"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}})
}

// L1, L3, L4: cancellations and responses, in every order.

#[test]
fn an_answer_ends_a_request_once() {
    let mut world = World::opened(Revision::V2025_11_25);
    let key = world.call(1);
    world.respond(key);
    world.respond(key);
    assert_eq!(ids(&world.wire()), [json!(1)]);
    assert_eq!(world.warnings, [ProtocolWarning::LateAnswer(key)]);
    world.end(key);
    assert_eq!((world.connection.open_requests(), world.connection.live_executions()), (0, 0));
}

#[test]
fn no_response_is_sent_after_a_cancellation() {
    let mut world = World::opened(Revision::V2025_11_25);
    let key = world.call(1);
    world.connection.progress(world.now, key, ProgressReport::new(1.0));
    world.connection.log(key, LoggingLevel::Error, None, json!("x"));
    world.cancel(1);
    world.connection.progress(world.now, key, ProgressReport::new(2.0));
    world.connection.log(key, LoggingLevel::Error, None, json!("x"));
    world.respond(key);
    assert_eq!(world.wire(), Vec::<Value>::new());
    assert_eq!(world.stopped, [(key, CancelReason::Peer)]);
}

#[test]
fn a_cancellation_after_the_response_is_ignored() {
    let mut world = World::opened(Revision::V2025_11_25);
    let key = world.call(1);
    world.respond(key);
    world.cancel(1);
    world.cancel(1);
    assert_eq!(ids(&world.wire()), [json!(1)]);
    assert_eq!(world.warnings, [ProtocolWarning::LateCancel(1.into()), ProtocolWarning::LateCancel(1.into())]);
    assert_eq!(world.stopped, []);
}

#[test]
fn a_malformed_cancellation_is_ignored() {
    let mut world = World::opened(Revision::V2025_11_25);
    world.call(1);
    for params in [json!({}), json!({"requestId":null}), json!({"requestId":{"a":1}}), json!({"requestId":1.5})] {
        world.say(&json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":params}));
    }
    assert_eq!(world.warnings, vec![ProtocolWarning::MalformedCancel; 4]);
    assert_eq!(world.connection.open_requests(), 1);
}

#[test]
fn the_reason_of_a_cancellation_is_logged_and_truncated() {
    let mut world = World::opened(Revision::V2025_11_25);
    for (id, reason) in [(1, "no longer needed".to_owned()), (2, "x".repeat(5000))] {
        world.call(id);
        let params = json!({"requestId": id, "reason": reason});
        world.say(&json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":params}));
    }
    let said = world.warnings.iter().map(|warning| match warning {
        ProtocolWarning::Cancelled { id, reason } => (id.clone(), reason.chars().count()),
        other => panic!("{other:?}"),
    });
    let said: Vec<_> = said.collect();
    assert_eq!(said, [(RequestId::from(1), 16), (RequestId::from(2), 101)]);
    assert_eq!(world.stopped.len(), 2);
}

#[test]
fn initialize_cannot_be_cancelled() {
    let mut world = World::new(Limits::default());
    world.cancel("init");
    world.open(Revision::V2025_11_25);
    world.cancel("init");
    assert_eq!(world.connection.peer().unwrap().revision, Revision::V2025_11_25);
}

// L2: a response whatever the handler does.

#[test]
fn a_request_fails_if_its_execution_ends_without_a_response() {
    let mut world = World::opened(Revision::V2025_11_25);
    let key = world.call(1);
    world.end(key);
    assert_eq!(world.wire()[0]["error"]["code"], -32603);
}

#[test]
fn a_request_past_its_deadline_fails_and_its_handler_is_stopped() {
    let mut limits = Limits::default();
    limits.handler_deadline = Some(Duration::from_secs(10));
    let mut world = World::new(limits);
    world.open(Revision::V2025_11_25);
    let key = world.call(1);
    world.wait(Duration::from_secs(9));
    assert_eq!(world.wire(), Vec::<Value>::new());
    assert_eq!(world.connection.poll_timeout(), Some(Moment::after_origin(Duration::from_secs(10))));
    world.wait(Duration::from_secs(1));
    assert_eq!(world.wire()[0]["error"]["code"], -32603);
    assert_eq!(world.stopped, [(key, CancelReason::Deadline)]);
    world.respond(key);
    assert_eq!(world.wire(), Vec::<Value>::new());
}

// L5: nothing outlives the connection.

#[test]
fn the_end_of_input_gives_handlers_the_window_and_cleanups_the_rest() {
    let mut world = World::opened(Revision::V2025_11_25);
    let (quick, slow) = (world.call(1), world.call(2));
    world.connection.handle_end_of_input(world.now);
    world.respond(quick);
    world.end(quick);
    assert_eq!(ids(&world.wire()), [json!(1)]);
    world.wait(Duration::from_secs(1));
    assert_eq!(world.stopped, [(slow, CancelReason::ConnectionClosed)]);
    assert_eq!(world.closed, None);
    world.end(slow);
    assert_eq!(world.wire()[0]["error"]["code"], -32603);
    assert_eq!(world.closed, Some(CloseCause::PeerClosed));
}

#[test]
fn errors_to_a_peer_that_has_left_are_held_until_cleanups_are_done() {
    let mut world = World::opened(Revision::V2025_11_25);
    let (first, second) = (world.call(1), world.call(2));
    world.connection.handle_end_of_input(world.now);
    world.wait(Duration::from_secs(1));
    world.end(first);
    assert_eq!(world.wire(), Vec::<Value>::new());
    world.end(second);
    assert_eq!(ids(&world.wire()), [json!(1), json!(2)]);
}

#[test]
fn long_cleanups_do_not_prevent_the_last_errors_from_being_sent() {
    let mut world = World::opened(Revision::V2025_11_25);
    world.call(1);
    world.connection.handle_end_of_input(world.now);
    world.wait(Duration::from_secs(1));
    assert_eq!(world.wire(), Vec::<Value>::new());
    world.wait(Duration::from_millis(450));
    assert_eq!((ids(&world.wire()), world.closed), (vec![json!(1)], None));
}

#[test]
fn a_late_timeout_ends_the_window_and_the_silence_in_one_step() {
    let mut world = World::opened(Revision::V2025_11_25);
    world.call(1);
    world.connection.handle_end_of_input(world.now);
    world.wait(Duration::from_millis(1_500));
    assert!(world.connection.poll_timeout().is_some_and(|next| next > world.now), "nothing is due that was handled");
    assert_eq!((ids(&world.wire()), world.closed), (vec![json!(1)], None));
}

#[test]
fn a_shutdown_after_the_end_of_input_stops_handlers_at_once() {
    let mut world = World::opened(Revision::V2025_11_25);
    let key = world.call(1);
    world.connection.handle_end_of_input(world.now);
    world.listen();
    assert_eq!(world.stopped, []);
    world.connection.shut_down(world.now);
    world.listen();
    assert_eq!(world.stopped, [(key, CancelReason::ConnectionClosed)]);
}

#[test]
fn the_drain_ends_at_its_deadline_whatever_is_left() {
    let mut world = World::opened(Revision::V2025_11_25);
    world.call(1);
    world.connection.handle_end_of_input(world.now);
    world.wait(Duration::from_secs(1));
    world.wait(Duration::from_secs(1));
    assert_eq!(world.closed, Some(CloseCause::PeerClosed));
    assert_eq!(world.connection.statistics().abandoned, 1);
    assert_eq!(world.connection.poll_timeout(), None);
}

#[test]
fn a_failed_write_stops_handlers_at_once() {
    let mut world = World::opened(Revision::V2025_11_25);
    let key = world.call(1);
    world.connection.handle_write_failed(world.now);
    world.listen();
    assert_eq!(world.stopped, [(key, CancelReason::ConnectionClosed)]);
    assert_eq!(world.wire(), Vec::<Value>::new());
    world.end(key);
    assert_eq!(world.closed, Some(CloseCause::OutputFailed));
}

#[test]
fn handlers_stop_and_requests_fail_when_the_peer_ends_the_session() {
    let mut world = World::opened(Revision::V2025_11_25);
    let key = world.call(1);
    let (asking, call) = (CallKey::new(0), Call::new(Method::ListRoots, None));
    world.connection.call(world.now, asking, call).unwrap();
    world.wire();
    world.connection.handle_peer_ended(world.now);
    world.listen();
    assert_eq!(world.stopped, [(key, CancelReason::ConnectionClosed)]);
    assert_eq!(world.ended, [(asking, CallEnd::Closed { sent: true })]);
    let wire = world.wire();
    assert_eq!((ids(&wire), &wire[0]["error"]["code"]), (vec![json!(1)], &json!(-32603)));
    world.end(key);
    assert_eq!(world.closed, Some(CloseCause::PeerClosed));
}

#[test]
fn after_a_failed_write_nothing_waits_for_a_reader_and_only_cleanups_delay_the_end() {
    let mut world = World::opened(Revision::V2025_11_25);
    let key = world.call(1);
    world.connection.handle_write_failed(world.now);
    world.raw(b"garbage");
    world.say(&json!({"jsonrpc":"2.0","id":2,"method":"ping"}));
    world.connection.notify_once(Method::ToolListChanged);
    let refused = world.connection.call(world.now, CallKey::new(0), Call::new(Method::Ping, None));
    assert_eq!((world.connection.waiting_bytes(), refused), (0, Err(NotSentReason::Closed)));
    world.end(key);
    assert_eq!(world.closed, Some(CloseCause::OutputFailed));
}

#[test]
fn nothing_happens_after_the_end() {
    let mut world = World::opened(Revision::V2025_11_25);
    let key = world.call(1);
    world.connection.shut_down_now(world.now);
    world.wait(Duration::from_secs(2));
    assert_eq!(world.closed, Some(CloseCause::Shutdown));
    world.connection.respond(world.now, key, EncodedResponse::serialized(&1.into(), &json!({})));
    world.connection.open_stateless(PeerInfo::new(Revision::V2026_07_28));
    world.connection.handle_execution_ended(world.now, key);
    assert!(world.connection.poll_event().is_none());
    assert_eq!(world.connection.statistics().late_answers, 1);
}

#[test]
fn an_execution_that_runs_after_its_response_is_stopped_at_the_end() {
    let mut world = World::opened(Revision::V2025_11_25);
    let (answered, cancelled) = (world.call(1), world.call(2));
    world.respond(answered);
    world.cancel(2);
    world.connection.shut_down_now(world.now);
    world.listen();
    assert_eq!(world.stopped, [(cancelled, CancelReason::Peer), (answered, CancelReason::Shutdown)]);
}

#[test]
fn output_after_a_failed_write_does_not_delay_the_end() {
    let mut world = World::opened(Revision::V2025_11_25);
    let key = world.call(1);
    world.connection.handle_write_failed(world.now);
    world.say(&json!({"jsonrpc":"2.0","id":2,"method":"ping"}));
    world.connection.notify_once(Method::ToolListChanged);
    let refused = world.connection.call(world.now, CallKey::new(0), Call::new(Method::ListRoots, None));
    assert_eq!((refused, world.connection.waiting_bytes()), (Err(NotSentReason::Closed), 0));
    world.end(key);
    assert_eq!(world.closed, Some(CloseCause::OutputFailed));
}

#[test]
fn input_and_output_may_end_in_either_order() {
    for input_first in [true, false] {
        let mut world = World::opened(Revision::V2025_11_25);
        let key = world.call(1);
        if input_first {
            world.connection.handle_end_of_input(world.now);
            world.connection.handle_write_failed(world.now);
        } else {
            world.connection.handle_write_failed(world.now);
            world.connection.handle_end_of_input(world.now);
        }
        world.listen();
        assert_eq!(world.stopped, [(key, CancelReason::ConnectionClosed)]);
        world.end(key);
        assert!(world.closed.is_some());
    }
}

#[test]
fn every_call_that_waits_ends_with_the_connection() {
    let mut world = World::opened(Revision::V2025_11_25);
    let handler = world.call(1);
    for number in 0..5 {
        let mut call = Call::new(Method::ListRoots, None);
        call.parent = Some(handler);
        world.connection.call(world.now, CallKey::new(number), call).unwrap();
    }
    assert_eq!(world.wire().len(), 5);
    world.connection.handle_end_of_input(world.now);
    world.listen();
    let closed: Vec<_> = (0..5).map(|number| (CallKey::new(number), CallEnd::Closed { sent: true })).collect();
    assert_eq!(world.ended, closed);
    assert_eq!(world.connection.open_calls(), 0);
}

#[test]
fn a_shutdown_refuses_new_requests_and_answers_open_ones() {
    let mut world = World::opened(Revision::V2025_11_25);
    let key = world.call(1);
    world.connection.shut_down(world.now);
    world.say(&json!({"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}));
    world.respond(key);
    world.end(key);
    let wire = world.wire();
    assert_eq!((ids(&wire), &wire[0]["error"]["code"]), (vec![json!(2), json!(1)], &json!(-32603)));
    assert_eq!(world.closed, Some(CloseCause::Shutdown));
}

// L7: limits.

#[test]
fn the_limit_counts_live_work_and_not_open_ids() {
    let mut limits = Limits::default();
    limits.in_flight = 2;
    let mut world = World::new(limits);
    world.open(Revision::V2025_11_25);
    let first = world.call(1);
    world.call(2);
    world.cancel(1);
    world.say(&json!({"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t"}}));
    assert_eq!(world.wire()[0]["error"]["code"], -32603);
    world.end(first);
    world.call(4);
    assert_eq!(world.connection.live_executions(), 2);
}

#[test]
fn input_stops_while_too_much_output_is_queued() {
    let mut limits = Limits::default();
    limits.outbox_bytes = 100;
    let mut world = World::new(limits);
    world.open(Revision::V2025_11_25);
    assert!(world.connection.wants_input());
    world.raw(b"garbage");
    world.raw(b"garbage");
    assert!(!world.connection.wants_input());
    world.wire();
    assert!(world.connection.wants_input());
}

#[test]
fn queued_calls_do_not_stop_the_input() {
    let mut limits = Limits::default();
    limits.outbox_bytes = 100;
    let mut world = World::new(limits);
    world.open(Revision::V2025_11_25);
    for number in 0..5 {
        world.connection.call(world.now, CallKey::new(number), Call::new(Method::ListRoots, None)).unwrap();
    }
    assert!(world.connection.waiting_bytes() > 100);
    assert!(world.connection.wants_input());
    world.wire();
    for number in 0..5 {
        world.connection.cancel_call(world.now, CallKey::new(number), None);
    }
    assert!(world.connection.waiting_bytes() > 100, "their cancellations wait");
    assert!(world.connection.wants_input());
    world.wire();
    assert_eq!((world.connection.waiting_bytes(), world.connection.wants_input()), (0, true));
}

#[test]
fn progress_is_merged_and_sent_before_the_response() {
    let mut world = World::opened(Revision::V2025_11_25);
    let key = world.call(1);
    for step in 1..=100 {
        world.connection.progress(world.now, key, ProgressReport::new(f64::from(step)));
    }
    world.connection.progress(world.now, key, ProgressReport::new(50.0));
    world.respond(key);
    let wire = world.wire();
    assert_eq!(wire.len(), 2);
    assert_eq!(wire[0]["params"]["progress"], 100.0);
    assert_eq!(wire[1]["id"], 1);
}

#[test]
fn held_progress_is_sent_after_the_interval() {
    let mut world = World::opened(Revision::V2025_11_25);
    let key = world.call(1);
    world.connection.progress(world.now, key, ProgressReport::new(1.0));
    assert_eq!(world.wire().len(), 1);
    world.connection.progress(world.now, key, ProgressReport::new(2.0));
    world.connection.progress(world.now, key, ProgressReport::new(3.0));
    assert_eq!(world.wire().len(), 0);
    world.wait(Duration::from_millis(5));
    assert_eq!(world.wire()[0]["params"]["progress"], 3.0);
}

// L5: the drain.

#[test]
fn handlers_are_stopped_before_the_drain_is_over_however_long_its_window_is() {
    let second = Duration::from_secs(1);
    for (window, deadline) in [(second, second), (2 * second, second), (600 * second, 601 * second)] {
        let limits = Limits { drain_window: window, drain_deadline: deadline, ..Limits::default() };
        let mut world = World::new(limits);
        world.open(Revision::V2025_11_25);
        let key = world.call(1);
        world.connection.handle_end_of_input(world.now);
        let next = world.connection.poll_timeout().unwrap();
        world.wait(next.since(world.now));
        assert_eq!(world.stopped, [(key, CancelReason::ConnectionClosed)]);
        assert_eq!(world.closed, None, "there is no time for cleanups");
    }
}

// L8: identity.

#[test]
fn a_duplicate_is_refused_without_id_and_the_first_is_answered() {
    for (revision, null) in [(Revision::V2025_06_18, true), (Revision::V2025_11_25, false)] {
        let mut world = World::opened(revision);
        let key = world.call(7);
        world.say(&json!({"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t"}}));
        let refusal = world.wire().remove(0);
        assert_eq!(refusal["error"]["code"], -32600);
        assert_eq!(refusal["error"]["data"]["id"], 7);
        assert_eq!(refusal.as_object().unwrap().contains_key("id"), null);
        world.respond(key);
        assert_eq!(ids(&world.wire()), [json!(7)]);
    }
}

#[test]
fn only_what_is_certainly_a_request_is_refused_under_its_id() {
    // A response whose `result` was damaged, to a call that ended before. The peer may have sent a request with this id
    // meanwhile, and would read an error with that id as the response to it (seed 50255233 of cores).
    for damaged in [
        r#"{"jsonrpc":"2.0","id":5,"resu|t":{}}"#,
        r#"{"jsonrpc":"2.0","id":5,"resu|t":{"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"m","result":{"#,
    ] {
        let mut world = World::opened(Revision::V2025_11_25);
        world.raw(damaged.as_bytes());
        let refusal = world.wire().remove(0);
        assert_eq!((refusal.get("id"), &refusal["error"]["data"]["id"]), (None, &json!(5)), "{damaged}");
    }
    let mut world = World::opened(Revision::V2025_11_25);
    world.raw(br#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"#);
    assert_eq!(ids(&world.wire()), [json!(5)]);
}

#[test]
fn text_and_number_are_different_ids() {
    let mut world = World::opened(Revision::V2025_11_25);
    let (number, text) = (world.call(7), world.call("7"));
    world.cancel("7");
    assert_eq!(world.stopped, [(text, CancelReason::Peer)]);
    world.respond(number);
    assert_eq!(ids(&world.wire()), [json!(7)]);
}

#[test]
fn an_id_may_be_used_again_while_its_cancelled_execution_lingers() {
    let mut world = World::opened(Revision::V2025_11_25);
    let first = world.call(7);
    world.cancel(7);
    let second = world.call(7);
    world.respond(first);
    assert_eq!(world.wire(), Vec::<Value>::new());
    world.end(first);
    world.respond(second);
    assert_eq!(ids(&world.wire()), [json!(7)]);
}

#[test]
fn ids_of_the_two_directions_are_independent() {
    let mut world = World::opened(Revision::V2025_11_25);
    let handler = world.call(1);
    world.connection.call(world.now, CallKey::new(0), Call::new(Method::ListRoots, None)).unwrap();
    assert_eq!(world.wire()[0]["id"], 1);
    world.cancel(1);
    assert_eq!(world.stopped, [(handler, CancelReason::Peer)]);
    world.say(&json!({"jsonrpc":"2.0","id":1,"result":{"roots":[]}}));
    assert_eq!(world.ended, [(CallKey::new(0), CallEnd::Answered(r#"{"roots":[]}"#.into()))]);
}

// L10: known outcomes.

#[test]
fn a_call_cancelled_in_the_queue_is_never_sent() {
    let mut world = World::opened(Revision::V2025_11_25);
    world.connection.call(world.now, CallKey::new(0), Call::new(Method::ListRoots, None)).unwrap();
    world.connection.cancel_call(world.now, CallKey::new(0), None);
    assert_eq!(world.wire(), Vec::<Value>::new());
    assert_eq!(world.ended, [(CallKey::new(0), CallEnd::Cancelled { sent: false })]);
}

#[test]
fn cancelling_a_sent_call_notifies_the_peer() {
    let mut world = World::opened(Revision::V2025_11_25);
    let mut call = Call::new(Method::ListRoots, None);
    call.timeout = Some(Duration::from_secs(3));
    world.connection.call(world.now, CallKey::new(0), call).unwrap();
    world.wire();
    world.wait(Duration::from_secs(3));
    assert_eq!(world.ended, [(CallKey::new(0), CallEnd::TimedOut { sent: true })]);
    let wire = world.wire();
    assert_eq!(
        (wire[0]["method"].as_str(), &wire[0]["params"]["requestId"]),
        (Some("notifications/cancelled"), &json!(1))
    );
    world.say(&json!({"jsonrpc":"2.0","id":1,"result":{}}));
    assert_eq!(world.warnings, [ProtocolWarning::UnknownResponse(Some(1.into()))]);
}

/// Sends a call whose late result is expected after its cancellation.
fn heeded(world: &mut World, number: u64, cancellable: bool) {
    let mut call = Call::new(Method::ListRoots, None);
    (call.expects_late_response, call.cancellable, call.timeout) = (true, cancellable, Some(Duration::from_secs(3)));
    world.connection.call(world.now, CallKey::new(number), call).unwrap();
    world.wire();
}

#[test]
fn a_late_result_is_reported_once() {
    for by_timeout in [false, true] {
        let mut world = World::opened(Revision::V2025_11_25);
        heeded(&mut world, 0, true);
        if by_timeout {
            world.wait(Duration::from_secs(3));
        } else {
            world.connection.cancel_call(world.now, CallKey::new(0), None);
        }
        assert_eq!(world.wire()[0]["method"], "notifications/cancelled");
        for _ in 0..2 {
            world.say(&json!({"jsonrpc":"2.0","id":1,"result":{"roots":[]}}));
        }
        assert_eq!(world.ended.len(), 1, "{:?}", world.ended);
        assert_eq!(world.late, [r#"{"roots":[]}"#.into()]);
        assert_eq!(world.warnings, [ProtocolWarning::UnknownResponse(Some(1.into()))], "the second is to nothing");
    }
}

#[test]
fn a_call_cancelled_without_notification_is_read_until_its_response() {
    let mut world = World::opened(Revision::V2025_11_25);
    heeded(&mut world, 0, false);
    assert!(!world.connection.expects_late_response(CallKey::new(0)), "it waits as any call");
    world.connection.cancel_call(world.now, CallKey::new(0), None);
    assert_eq!(world.wire(), Vec::<Value>::new());
    assert!(world.connection.expects_late_response(CallKey::new(0)));
    world.say(&json!({"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}}));
    assert!(!world.connection.expects_late_response(CallKey::new(0)));
    assert_eq!((world.late.len(), world.warnings.len()), (0, 0));
}

#[test]
fn late_results_are_limited_in_time_and_number() {
    let mut world = World::opened(Revision::V2025_11_25);
    for number in 0..2_000 {
        heeded(&mut world, number, false);
        world.connection.cancel_call(world.now, CallKey::new(number), None);
    }
    let heeded = |world: &World| {
        (0..2_000).filter(|number| world.connection.expects_late_response(CallKey::new(*number))).count()
    };
    assert_eq!(heeded(&world), 1_024);
    assert!(world.connection.expects_late_response(CallKey::new(1_999)), "the oldest make room");
    world.wait(Duration::from_secs(60));
    assert_eq!((heeded(&world), world.connection.poll_timeout()), (0, None));
}

/// The oldest is the one that was cancelled first, whenever it was sent.
#[test]
fn late_results_are_dropped_by_time_of_cancellation_not_by_key() {
    let mut world = World::opened(Revision::V2025_11_25);
    let give_up = |world: &mut World, number| {
        world.now = world.now + Duration::from_millis(1);
        world.connection.cancel_call(world.now, CallKey::new(number), None);
    };
    for number in 0..1_026 {
        heeded(&mut world, number, false);
    }
    for number in (1..1_025).chain([0, 1_025]) {
        give_up(&mut world, number);
    }
    assert!(world.connection.expects_late_response(CallKey::new(0)));
    assert!(!world.connection.expects_late_response(CallKey::new(1)));
}

/// The transport knows that no response will come.
#[test]
fn a_late_result_is_not_expected_after_the_transport_reports_the_end() {
    let mut world = World::opened(Revision::V2025_11_25);
    heeded(&mut world, 0, false);
    world.connection.cancel_call(world.now, CallKey::new(0), None);
    world.connection.handle_call_ended(CallKey::new(0), CallEnd::Lost { sent: true, why: "it broke off".to_owned() });
    assert!(!world.connection.expects_late_response(CallKey::new(0)));
    assert_eq!(world.connection.poll_timeout(), None);
    world.listen();
    assert_eq!(world.ended, [(CallKey::new(0), CallEnd::Cancelled { sent: true })], "it has ended once");
}

#[test]
fn teardown_calls_are_sent_when_the_call_limit_is_reached() {
    let capabilities = ClientCapabilities::new();
    let hello = ClientOrServerDescription::from(ClientDescription::new(Implementation::new("test", "1"), capabilities));
    let mut world = World::with(hello, Limits { calls: 2, ..Limits::default() });
    let mut made = |number, method| world.connection.call(world.now, CallKey::new(number), Call::new(method, None));
    assert_eq!((made(0, Method::CallTool), made(1, Method::CallTool)), (Ok(()), Ok(())));
    assert_eq!(made(2, Method::CallTool), Err(NotSentReason::TooMany));
    assert_eq!((made(3, Method::CancelTask), made(4, Method::CancelTask)), (Ok(()), Ok(())));
    assert_eq!(made(5, Method::CancelTask), Err(NotSentReason::TooMany), "and that is bounded too");
}

#[test]
fn what_a_side_sends_to_see_whether_the_peer_responds_is_exempt_from_the_call_limit() {
    let capabilities = ClientCapabilities::new();
    let hello = ClientOrServerDescription::from(ClientDescription::new(Implementation::new("test", "1"), capabilities));
    let mut world = World::with(hello, Limits { calls: 1, ..Limits::default() });
    let call = |exempt_from_limit| {
        let mut call = Call::new(Method::CallTool, None);
        call.exempt_from_limit = exempt_from_limit;
        call
    };
    let mut made = |number, exempt| world.connection.call(world.now, CallKey::new(number), call(exempt));
    assert_eq!(made(0, true), Ok(()));
    assert_eq!(made(1, false), Ok(()), "it is not counted");
    assert_eq!(made(2, false), Err(NotSentReason::TooMany));
    assert_eq!(made(3, true), Ok(()), "and not refused");
    let mut teardown = Call::new(Method::CancelTask, None);
    teardown.exempt_from_limit = true;
    assert_eq!(world.connection.call(world.now, CallKey::new(5), teardown), Ok(()));
    let refused = world.connection.call(world.now, CallKey::new(6), call(false));
    assert_eq!(refused, Err(NotSentReason::TooMany), "one that ends a task frees no other place");
    world.connection.cancel_call(world.now, CallKey::new(0), None);
    world.connection.cancel_call(world.now, CallKey::new(1), None);
    let made = world.connection.call(world.now, CallKey::new(4), call(false));
    assert_eq!(made, Ok(()), "a place that was free before is free once");
}

#[test]
fn each_teardown_method_has_its_own_limit() {
    let capabilities = ClientCapabilities::new();
    let hello = ClientOrServerDescription::from(ClientDescription::new(Implementation::new("test", "1"), capabilities));
    let mut world = World::with(hello, Limits { calls: 2, ..Limits::default() });
    let opening = Call::new(Method::Initialize, None);
    world.connection.initialize(world.now, CallKey::new(9), opening, Revision::V2025_11_25).unwrap();
    world.wire();
    let capabilities = json!({"tools": {}, "resources": {"subscribe": true}, "tasks": {"cancel": {}}});
    world.say(&json!({"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":capabilities,
        "serverInfo":{"name":"s","version":"1"}}}));
    let mut made = |number, method| world.connection.call(world.now, CallKey::new(number), Call::new(method, None));
    assert_eq!((made(0, Method::CancelTask), made(1, Method::CancelTask)), (Ok(()), Ok(())));
    assert_eq!((made(2, Method::Unsubscribe), made(3, Method::Unsubscribe)), (Ok(()), Ok(())));
    assert_eq!((made(4, Method::CallTool), made(5, Method::CallTool)), (Ok(()), Ok(())));
    for method in [Method::CallTool, Method::CancelTask, Method::Unsubscribe] {
        assert_eq!(made(6, method), Err(NotSentReason::TooMany), "{method:?}");
    }
    world.connection.cancel_call(world.now, CallKey::new(4), None);
    let mut made = |number, method| world.connection.call(world.now, CallKey::new(number), Call::new(method, None));
    assert_eq!(
        made(7, Method::CancelTask),
        Err(NotSentReason::TooMany),
        "the end of another call makes no room for it"
    );
    assert_eq!(made(8, Method::CallTool), Ok(()));
}

#[test]
fn a_call_at_the_writer_when_writing_fails_was_never_sent() {
    let mut world = World::opened(Revision::V2025_11_25);
    world.connection.call(world.now, CallKey::new(0), Call::new(Method::ListRoots, None)).unwrap();
    assert!(world.connection.poll_transmit().is_some());
    world.connection.handle_write_failed(world.now);
    world.listen();
    assert_eq!(world.ended, [(CallKey::new(0), CallEnd::Closed { sent: false })]);
}

#[test]
fn progress_extends_the_first_timeout_and_never_the_second() {
    let mut world = World::opened(Revision::V2025_11_25);
    let mut call = Call::new(Method::ListRoots, None);
    (call.timeout, call.total_timeout) = (Some(Duration::from_secs(3)), Some(Duration::from_secs(7)));
    call.progress_token = Some(ProgressToken::from("t"));
    world.connection.call(world.now, CallKey::new(0), call).unwrap();
    world.wire();
    for step in 1..=3 {
        world.wait(Duration::from_secs(2));
        world.say(
            &json!({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":step}}),
        );
    }
    assert_eq!(world.ended, []);
    world.wait(Duration::from_secs(1));
    assert_eq!(world.ended, [(CallKey::new(0), CallEnd::TimedOut { sent: true })]);
}

#[test]
fn calls_wait_until_the_client_is_ready() {
    let mut world = World::new(Limits::default());
    assert_eq!(
        world.connection.call(world.now, CallKey::new(0), Call::new(Method::ListRoots, None)),
        Err(NotSentReason::NotInRevision)
    );
    world.say(&json!({"jsonrpc":"2.0","id":0,"method":"initialize","params":{
        "protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}));
    world.wire();
    world.connection.call(world.now, CallKey::new(1), Call::new(Method::ListRoots, None)).unwrap();
    world.connection.call(world.now, CallKey::new(2), Call::new(Method::Ping, None)).unwrap();
    assert_eq!(world.wire()[0]["method"], "ping");
    world.say(&json!({"jsonrpc":"2.0","method":"notifications/initialized"}));
    assert_eq!(world.wire()[0]["method"], "roots/list");
    let refused = world.connection.call(world.now, CallKey::new(3), Call::new(Method::CreateMessage, None));
    assert!(matches!(refused, Err(NotSentReason::MissingCapability(_))));
}

#[test]
fn calls_of_a_cancelled_request_are_cancelled() {
    let mut world = World::opened(Revision::V2025_11_25);
    let handler = world.call(1);
    let mut call = Call::new(Method::ListRoots, None);
    call.parent = Some(handler);
    world.connection.call(world.now, CallKey::new(0), call).unwrap();
    world.wire();
    world.cancel(1);
    assert_eq!(world.ended, [(CallKey::new(0), CallEnd::Cancelled { sent: true })]);
    assert_eq!(world.wire()[0]["method"], "notifications/cancelled");
}

// The handshake, and stateless revisions.

#[test]
fn every_older_revision_can_be_negotiated_and_others_become_the_newest_of_them() {
    for revision in Revision::ALL.iter().copied().filter(|revision| !revision.is_stateless()) {
        World::opened(revision);
    }
    for asked in ["2026-07-28", "1999-01-01", ""] {
        let mut world = World::new(Limits::default());
        world.say(&json!({"jsonrpc":"2.0","id":0,"method":"initialize","params":{
            "protocolVersion":asked,"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}));
        assert_eq!(world.wire()[0]["result"]["protocolVersion"], "2025-11-25", "{asked}");
    }
}

#[test]
fn a_second_initialize_is_refused() {
    let mut world = World::opened(Revision::V2025_06_18);
    world.say(&json!({"jsonrpc":"2.0","id":9,"method":"initialize","params":{
        "protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}));
    assert_eq!(world.wire()[0]["error"]["code"], -32600);
    assert_eq!(world.connection.peer().unwrap().revision, Revision::V2025_06_18);
}

#[test]
fn a_notification_with_wrong_parameters_is_not_answered() {
    let mut world = World::opened(Revision::V2025_11_25);
    world.say(&json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":[7]}));
    assert_eq!(world.wire(), Vec::<Value>::new());
}

#[test]
fn before_the_handshake_only_ping_is_answered() {
    let mut world = World::new(Limits::default());
    world.say(&json!({"jsonrpc":"2.0","id":1,"method":"ping"}));
    world.say(&json!({"jsonrpc":"2.0","id":2,"method":"tools/list"}));
    let wire = world.wire();
    assert_eq!(wire[0]["result"], json!({}));
    assert_eq!(wire[1]["error"]["code"], -32602);
    assert!(wire[1]["error"]["message"].as_str().unwrap().contains("initialize"));
}

#[test]
fn stateless_requests_need_no_handshake() {
    let mut world = World::new(Limits::default());
    world.say(&json!({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":stateless_meta()}}));
    assert_eq!(world.started[0].peer.revision, Revision::V2026_07_28);
    world.say(&json!({"jsonrpc":"2.0","id":2,"method":"server/discover","params":{"_meta":stateless_meta()}}));
    assert_eq!(world.wire()[0]["result"]["supportedVersions"][0], "2026-07-28");
    world.say(&json!({"jsonrpc":"2.0","id":3,"method":"ping","params":{"_meta":stateless_meta()}}));
    assert_eq!(world.wire()[0]["error"]["code"], -32601);
}

#[test]
fn a_stateless_request_with_invalid_metadata_is_refused() {
    let mut world = World::new(Limits::default());
    let mut unknown = stateless_meta();
    unknown["io.modelcontextprotocol/protocolVersion"] = json!("1900-01-01");
    let mut bare = stateless_meta();
    bare.as_object_mut().unwrap().remove("io.modelcontextprotocol/clientCapabilities");
    let mut level = stateless_meta();
    level["io.modelcontextprotocol/logLevel"] = json!("loud");
    for (meta, code) in [(unknown, -32022), (bare, -32602), (level, -32602)] {
        world.say(&json!({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":meta}}));
        assert_eq!(world.wire()[0]["error"]["code"], code);
    }
}

#[test]
fn stateful_and_stateless_requests_share_a_connection() {
    let mut world = World::opened(Revision::V2025_06_18);
    world.say(&json!({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":stateless_meta()}}));
    world.call(2);
    let revisions: Vec<_> = world.started.iter().map(|request| request.peer.revision).collect();
    assert_eq!(revisions, [Revision::V2026_07_28, Revision::V2025_06_18]);
}

#[test]
fn methods_not_offered_do_not_exist() {
    let mut world = World::opened(Revision::V2025_11_25);
    for method in ["prompts/list", "resources/read", "tools/destroy", "notifications/cancelled", "roots/list"] {
        world.say(&json!({"jsonrpc":"2.0","id":1,"method":method}));
        assert_eq!(world.wire()[0]["error"]["code"], -32601, "{method}");
    }
}

#[test]
fn logs_are_sent_as_asked() {
    let mut world = World::opened(Revision::V2025_11_25);
    let key = world.call(1);
    world.connection.log(key, LoggingLevel::Debug, None, json!("quiet"));
    assert_eq!(world.wire().len(), 0);
    world.say(&json!({"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"debug"}}));
    world.connection.log(key, LoggingLevel::Debug, Some("l".into()), json!("loud"));
    assert_eq!(world.wire()[1]["params"], json!({"level":"debug","logger":"l","data":"loud"}));
    world.say(&json!({"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t","_meta":stateless_meta()}}));
    world.connection.log(world.started.last().unwrap().key, LoggingLevel::Emergency, None, json!("unasked"));
    assert_eq!(world.wire().len(), 0);
}

// Malformed messages.

#[test]
fn bad_messages_are_answered_and_the_connection_goes_on() {
    let mut world = World::opened(Revision::V2025_11_25);
    let key = world.call(1);
    for (bytes, code) in [
        (&b"\xff\xfe"[..], -32700),
        (b"{", -32700),
        (b"\0\0", -32700),
        (b"5", -32600),
        (b"[]", -32600),
        (br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
        (br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (br#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600),
        (br#"{"jsonrpc":"2.0","id":3}"#, -32600),
        (br#"{"jsonrpc":"2.0","id":3,"method":"ping","params":[1]}"#, -32602),
    ] {
        world.raw(bytes);
        assert_eq!(world.wire()[0]["error"]["code"], code, "{}", String::from_utf8_lossy(bytes));
    }
    world.respond(key);
    assert_eq!(ids(&world.wire()), [json!(1)]);
}

#[test]
fn a_malformed_message_with_the_id_of_an_open_request_is_refused_without_id() {
    let mut world = World::opened(Revision::V2025_11_25);
    world.call(1);
    world.raw(br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"#);
    let refusal = world.wire().remove(0);
    assert_eq!((refusal.get("id"), &refusal["error"]["data"]["id"]), (None, &json!(1)));
}

#[test]
fn responses_with_an_unknown_id_are_ignored() {
    let mut world = World::opened(Revision::V2025_11_25);
    for answer in [
        json!({"jsonrpc":"2.0","id":5,"result":{}}),
        json!({"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}),
        json!({"jsonrpc":"2.0","error":{"code":1,"message":"x"}}),
        json!({"jsonrpc":"2.0","id":5,"result":{},"error":{}}),
    ] {
        world.say(&answer);
    }
    world.raw(br#"{"jsonrpc":"2.0","id":5,"result":{"#);
    assert_eq!(world.wire(), Vec::<Value>::new());
    assert_eq!(world.connection.statistics().unknown_responses, 5);
}

#[test]
fn a_call_that_was_not_sent_cannot_be_answered() {
    let mut world = World::opened(Revision::V2025_11_25);
    world.connection.call(world.now, CallKey::new(0), Call::new(Method::ListRoots, None)).unwrap();
    world.say(&json!({"jsonrpc":"2.0","id":1,"result":{"guessed":true}}));
    world.raw(br#"{"jsonrpc":"2.0","id":1,"result":{"#);
    assert_eq!((world.ended.len(), world.connection.statistics().unknown_responses), (0, 2));
    world.wire();
    world.say(&json!({"jsonrpc":"2.0","id":1,"result":{"roots":[]}}));
    assert_eq!(world.ended, [(CallKey::new(0), CallEnd::Answered(r#"{"roots":[]}"#.into()))]);
}

#[test]
fn a_subscription_that_was_not_sent_cannot_be_ended() {
    let mut world = client();
    world.connection.open_stateless(PeerInfo::new(Revision::V2026_07_28));
    world.connection.call(world.now, CallKey::new(0), Call::new(Method::Listen, None)).unwrap();
    world.cancel(1);
    assert_eq!((world.ended.len(), &*world.warnings), (0, &[ProtocolWarning::LateCancel(1.into())][..]));
}

#[test]
fn a_message_that_may_be_a_response_is_refused_without_id() {
    let broken = json!({"jsonrpc":"2.0","id":1,"reqult":{}});
    let mut server = World::opened(Revision::V2025_11_25);
    server.connection.call(server.now, CallKey::new(0), Call::new(Method::ListRoots, None)).unwrap();
    server.wire();
    server.say(&broken);
    let refusal = server.wire().remove(0);
    assert_eq!((refusal.get("id"), &refusal["error"]["data"]["id"]), (None, &json!(1)));
    assert_eq!(server.ended, []);
    let mut client = client();
    client.connection.open_stateless(PeerInfo::new(Revision::V2026_07_28));
    client.connection.call(client.now, CallKey::new(0), Call::new(Method::Discover, None)).unwrap();
    client.wire();
    client.say(&broken);
    assert!(matches!(client.ended[0].1, CallEnd::Unreadable(_)));
    assert_eq!(client.wire(), Vec::<Value>::new());
}

#[test]
fn an_unreadable_response_ends_the_call() {
    let mut world = World::opened(Revision::V2025_11_25);
    for number in 0..3 {
        world.connection.call(world.now, CallKey::new(number), Call::new(Method::ListRoots, None)).unwrap();
    }
    world.wire();
    world.raw(br#"{"jsonrpc":"2.0","id":1,"result":{"#);
    world.raw(br#"{"jsonrpc":"2.0","id":2,"error":7}"#);
    world.raw(br#"{"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":"no"}}"#);
    assert!(matches!(world.ended[0].1, CallEnd::Unreadable(_)));
    assert!(matches!(world.ended[1].1, CallEnd::Unreadable(_)));
    assert_eq!(world.ended[2].1, CallEnd::Refused(ErrorObject::new(-1, "no")));
}

// Batches of 2025-03-26.

#[test]
fn a_batch_is_answered_as_one_array_when_all_have_ended() {
    let mut world = World::opened(Revision::V2025_03_26);
    world.say(&json!([
        {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}},
        {"jsonrpc":"2.0","method":"notifications/roots/list_changed"},
        {"jsonrpc":"2.0","id":2,"method":"ping"},
        {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t"}},
        7,
        {"jsonrpc":"2.0","id":4,"method":"nothing"},
    ]));
    let (first, third) = (world.started[0].key, world.started[1].key);
    assert_eq!(world.wire(), Vec::<Value>::new());
    world.respond(first);
    assert_eq!(world.wire(), Vec::<Value>::new());
    world.cancel(3);
    world.respond(third);
    let wire = world.wire();
    let array = wire[0].as_array().unwrap();
    assert_eq!((wire.len(), ids(array)), (1, vec![json!(2), json!(null), json!(4), json!(1)]));
    assert_eq!(world.connection.waiting_bytes(), 0);
}

#[test]
fn a_batch_without_requests_has_no_answer() {
    let mut world = World::opened(Revision::V2025_03_26);
    world.say(
        &json!([{"jsonrpc":"2.0","method":"notifications/roots/list_changed"},{"jsonrpc":"2.0","id":9,"result":{}}]),
    );
    assert_eq!(world.wire(), Vec::<Value>::new());
}

#[test]
fn invalid_batches_are_refused() {
    let mut world = World::opened(Revision::V2025_03_26);
    let initialize = json!([{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}]);
    let long = Value::Array(vec![json!(1); 1_025]);
    for batch in [json!([]), initialize, long] {
        world.say(&batch);
        let wire = world.wire();
        assert_eq!((wire.len(), &wire[0]["error"]["code"], wire[0].get("id")), (1, &json!(-32600), Some(&json!(null))));
    }
}

#[test]
fn a_request_of_2026_in_a_batch_is_refused_and_the_batch_does_not_wait_for_it() {
    let mut world = World::opened(Revision::V2025_03_26);
    let meta =
        json!({"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}});
    world.say(&json!([
        {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}},
        {"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"_meta":meta}},
    ]));
    world.respond(world.started[0].key);
    let wire = world.wire();
    let array = wire[0].as_array().unwrap();
    assert_eq!((ids(array), &array[0]["error"]["code"]), (vec![json!(2), json!(1)], &json!(-32600)));
}

// A client.

fn client() -> World {
    let hello = ClientDescription::new(Implementation::new("c", "1"), ClientCapabilities::new().with_roots(false));
    World::with(hello.into(), Limits::default())
}

#[test]
fn a_client_sends_initialized_after_initialize() {
    let mut world = client();
    world
        .connection
        .initialize(world.now, CallKey::new(0), Call::new(Method::Initialize, None), Revision::V2025_11_25)
        .unwrap();
    assert_eq!(world.wire()[0]["params"]["protocolVersion"], "2025-11-25");
    world.say(&json!({"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26","capabilities":{"tools":{}},
        "serverInfo":{"name":"s","version":"1"}}}));
    assert!(matches!(world.ended[0].1, CallEnd::Answered(_)));
    assert_eq!(world.connection.peer().unwrap().revision, Revision::V2025_03_26);
    assert_eq!(world.wire()[0]["method"], "notifications/initialized");
    world.say(&json!({"jsonrpc":"2.0","id":1,"method":"roots/list"}));
    assert_eq!(world.started.len(), 1);
}

#[test]
fn each_message_of_a_client_says_what_it_is() {
    let mut world = client();
    let connection = &mut world.connection;
    let initialize = Call::new(Method::Initialize, None);
    connection.initialize(world.now, CallKey::new(0), initialize, Revision::V2025_11_25).unwrap();
    let request = connection.poll_transmit().unwrap();
    let (id, method) = (RequestId::from(1), Method::Initialize);
    assert_eq!(request.kind, TransmitKind::Request { call: CallKey::new(0), id, method });
    world.say(&json!({"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},
        "serverInfo":{"name":"s","version":"1"}}}));
    let connection = &mut world.connection;
    assert_eq!(connection.poll_transmit().unwrap().kind, TransmitKind::Notification(Method::Initialized));
    connection.call(world.now, CallKey::new(7), Call::new(Method::ListTools, None)).unwrap();
    assert_eq!(connection.poll_transmit().unwrap().call(), Some(CallKey::new(7)));
    connection.cancel_call(world.now, CallKey::new(7), None);
    let cancellation = connection.poll_transmit().unwrap();
    assert_eq!(cancellation.kind, TransmitKind::Cancellation { call: CallKey::new(7) });
    assert_eq!((cancellation.call(), cancellation.kind.method()), (None, Some(Method::Cancelled)));
    world.say(&json!({"jsonrpc":"2.0","id":5,"method":"ping"}));
    assert_eq!(world.connection.poll_transmit().unwrap().kind, TransmitKind::Response);
}

#[test]
fn an_envelope_is_handled_as_its_bytes_are() {
    use crate::envelope::Envelope;

    let result = r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}"#;
    for bytes in [result, r#"{"jsonrpc":"2.0","id":2,"result":{"#, r#"{"jsonrpc":"2.0","id":9,"result":{}}"#, "no JSON"]
    {
        let ended = [false, true].map(|parsed| {
            let mut world = client();
            let initialize = Call::new(Method::Initialize, None);
            world.connection.initialize(world.now, CallKey::new(0), initialize, Revision::V2025_11_25).unwrap();
            world.wire();
            world.say(&json!({"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25",
                "capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}));
            world.connection.call(world.now, CallKey::new(7), Call::new(Method::ListTools, None)).unwrap();
            world.wire();
            if parsed {
                let depth = world.connection.limits.depth;
                world.connection.handle_envelope(world.now, &Envelope::read(bytes.into(), depth));
                world.listen();
            } else {
                world.raw(bytes.as_bytes());
            }
            let (now, messages) = (world.now, world.wire());
            (world.ended, messages, world.connection.fingerprint(now))
        });
        assert_eq!(ended[0], ended[1], "{bytes}");
    }
}

#[test]
fn a_client_never_cancels_initialize() {
    let mut world = client();
    let mut call = Call::new(Method::Initialize, None);
    call.timeout = Some(Duration::from_secs(1));
    world.connection.initialize(world.now, CallKey::new(0), call, Revision::V2025_11_25).unwrap();
    world.wire();
    world.wait(Duration::from_secs(1));
    assert_eq!(world.ended, [(CallKey::new(0), CallEnd::TimedOut { sent: true })]);
    assert_eq!(world.wire(), Vec::<Value>::new());
}

#[test]
fn a_stateless_server_can_cancel_only_subscriptions() {
    let mut world = client();
    world.connection.open_stateless(PeerInfo::new(Revision::V2026_07_28));
    world.connection.call(world.now, CallKey::new(0), Call::new(Method::Listen, None)).unwrap();
    let refused = world.connection.call(world.now, CallKey::new(1), Call::new(Method::ListTools, None));
    assert!(matches!(refused, Err(NotSentReason::MissingCapability(_))));
    world.connection.call(world.now, CallKey::new(2), Call::new(Method::Discover, None)).unwrap();
    world.wire();
    world.cancel(1);
    world.cancel(2);
    assert_eq!(world.ended, [(CallKey::new(0), CallEnd::EndedByPeer)]);
    assert_eq!(world.warnings, [ProtocolWarning::LateCancel(2.into())]);
}

#[test]
fn a_client_sends_no_responses_after_discovery() {
    let mut world = client();
    world.connection.call(world.now, CallKey::new(0), Call::new(Method::Discover, None)).unwrap();
    let asked = world.wire().remove(0);
    world.say(&json!({"jsonrpc":"2.0","id":asked["id"],"result":{"resultType":"complete"}}));
    // The result was received; the client has not opened the revision yet.
    world.say(&json!({"jsonrpc":"2.0","id":"q","method":"roots/list"}));
    world.say(&json!({"jsonrpc":"2.0","id":"p","method":"ping"}));
    world.connection.handle_message(world.now, br#"{"jsonrpc":"2.0","id":"d","method":"ping","params":{]}"#);
    world.connection.handle_message(world.now, b"[");
    assert_eq!((world.wire(), world.started.len()), (Vec::<Value>::new(), 0));
}

#[test]
fn a_client_that_has_given_up_discovery_sends_no_responses_after_its_late_result() {
    let mut world = discovering();
    world.connection.cancel_call(world.now, CallKey::new(0), None);
    world.connection.shut_down(world.now);
    world.wire();
    world.say(&json!({"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}));
    world.say(&json!({"jsonrpc":"2.0","id":"p","method":"ping"}));
    assert_eq!(world.wire(), Vec::<Value>::new());
}

#[test]
fn a_handshake_that_was_not_sent_does_not_change_what_discovery_showed() {
    let ping = json!({"jsonrpc":"2.0","id":"p","method":"ping"});
    for withdrawn in [false, true] {
        let mut world = discovering();
        world.connection.cancel_call(world.now, CallKey::new(0), None);
        let initialize = Call::new(Method::Initialize, None);
        world.connection.initialize(world.now, CallKey::new(1), initialize, Revision::V2025_11_25).unwrap();
        if withdrawn {
            world.connection.cancel_call(world.now, CallKey::new(1), None);
        }
        world.say(&json!({"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}));
        world.say(&ping);
        let wire = world.wire();
        assert!(wire.iter().all(|message| message["id"] != "p"), "withdrawn: {withdrawn}, {wire:?}");
    }
}

#[test]
fn a_server_that_is_asked_for_a_handshake_after_discover_is_answered() {
    let mut world = client();
    world.connection.call(world.now, CallKey::new(0), Call::new(Method::Discover, None)).unwrap();
    let asked = world.wire().remove(0);
    world.say(&json!({"jsonrpc":"2.0","id":asked["id"],"result":{"resultType":"complete"}}));
    let initialize = Call::new(Method::Initialize, None);
    world.connection.initialize(world.now, CallKey::new(1), initialize, Revision::V2025_11_25).unwrap();
    world.wire();
    world.say(&json!({"jsonrpc":"2.0","id":"p","method":"ping"}));
    let wire = world.wire();
    assert_eq!((wire.len(), &wire[0]["id"]), (1, &json!("p")));
}

#[test]
fn a_stateless_client_sends_no_responses() {
    let mut world = client();
    // Before the revision is known, the peer may send a ping.
    world.say(&json!({"jsonrpc":"2.0","id":"early","method":"ping"}));
    assert_eq!(world.wire()[0]["id"], "early");
    world.say(&json!({"jsonrpc":"2.0","id":"open","method":"roots/list"}));
    let key = world.started[0].key;
    world.connection.open_stateless(PeerInfo::new(Revision::V2026_07_28));
    world.respond(key);
    for method in ["ping", "roots/list", "sampling/createMessage", "elicitation/create", "nothing"] {
        world.say(&json!({"jsonrpc":"2.0","id":1,"method":method,"params":{"_meta":stateless_meta()}}));
        world.say(&json!({"jsonrpc":"2.0","id":1,"method":method}));
    }
    world.say(&json!([{"jsonrpc":"2.0","id":2,"method":"ping"}]));
    world.raw(b"no message at all");
    world.raw(br#"{"jsonrpc":"2.0","id":3,"method":7}"#);
    assert_eq!((world.wire(), world.started.len()), (Vec::<Value>::new(), 1));
    assert_eq!(world.connection.statistics().refused, 13);
}

#[test]
fn a_message_says_which_request_it_belongs_to() {
    let mut world = World::opened(Revision::V2025_11_25);
    let key = world.call(7);
    world.connection.progress(world.now, key, ProgressReport::new(1.0));
    world.connection.log(key, steadfast_model::LoggingLevel::Error, None, json!("x"));
    let asked = Call { parent: Some(key), ..Call::new(Method::ListRoots, None) };
    world.connection.call(world.now, CallKey::new(0), asked).unwrap();
    world.connection.cancel_call(world.now, CallKey::new(0), None);
    world.respond(key);
    world.connection.notify_once(Method::ToolListChanged);
    world.say(&json!({"jsonrpc":"2.0","id":8,"method":"nothing"}));
    let about: Vec<_> =
        std::iter::from_fn(|| world.connection.poll_transmit()).map(|transmit| transmit.about).collect();
    assert_eq!(about, [Some(key), Some(key), Some(key), None, None]);
}

#[test]
fn calls_of_a_handler_are_cancelled_before_its_request_fails() {
    let mut limits = Limits::default();
    limits.handler_deadline = Some(Duration::from_secs(10));
    let mut world = World::new(limits);
    world.open(Revision::V2025_11_25);
    let key = world.call(7);
    let asked = Call { parent: Some(key), ..Call::new(Method::ListRoots, None) };
    world.connection.call(world.now, CallKey::new(0), asked).unwrap();
    assert_eq!(world.wire()[0]["method"], "roots/list");
    world.connection.handle_call_sent(CallKey::new(0));
    world.now = world.now + Duration::from_secs(10);
    world.connection.handle_timeout(world.now);
    let wire = world.wire();
    assert_eq!((&wire[0]["method"], &wire[1]["id"]), (&json!("notifications/cancelled"), &json!(7)), "{wire:?}");
}

#[test]
fn an_array_of_answers_belongs_to_the_request_that_ended_last() {
    let mut world = World::opened(Revision::V2025_03_26);
    let call = |id| json!({"jsonrpc":"2.0","id":id,"method":"tools/call","params":{"name":"t"}});
    world.say(&json!([call(1), call(2)]));
    let keys: Vec<_> = world.started.iter().map(|request| request.key).collect();
    world.respond(keys[1]);
    world.respond(keys[0]);
    let about = world.connection.poll_transmit().map(|transmit| transmit.about);
    assert_eq!(about, Some(Some(keys[0])));
}

/// Opens a stream of notifications.
fn listen(world: &mut World, id: impl Into<Value>) -> InboundRequestKey {
    world.say(&json!({"jsonrpc":"2.0","id":id.into(),"method":"subscriptions/listen",
        "params":{"notifications":{},"_meta":stateless_meta()}}));
    world.started.last().unwrap().key
}

/// A subscription that was acknowledged.
fn acknowledged(world: &mut World, id: impl Into<Value>) -> InboundRequestKey {
    let key = listen(world, id);
    assert!(world.connection.notify_about(key, Method::SubscriptionAcknowledged, r#"{"notifications":{}}"#));
    world.wire();
    key
}

fn methods(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["method"].as_str().unwrap_or("answer")).collect()
}

#[test]
fn notifications_about_a_request_are_sent_in_order_and_queued_once() {
    let mut world = World::new(Limits::default());
    let key = listen(&mut world, 1);
    assert!(world.connection.notify_about(key, Method::SubscriptionAcknowledged, r#"{"notifications":{}}"#));
    for _ in 0..3 {
        assert!(world.connection.notify_about(key, Method::ResourceUpdated, r#"{"uri":"a:1"}"#));
    }
    assert!(world.connection.notify_about(key, Method::ResourceUpdated, r#"{"uri":"a:2"}"#));
    let messages = world.wire();
    let expected =
        ["notifications/subscriptions/acknowledged"].into_iter().chain(["notifications/resources/updated"; 2]);
    assert_eq!(methods(&messages), expected.collect::<Vec<_>>());
    assert!(world.connection.notify_about(key, Method::ResourceUpdated, r#"{"uri":"a:1"}"#));
    assert_eq!(world.wire().len(), 1, "a notification that was sent may be sent again");
}

#[test]
fn only_the_newest_notification_about_a_subject_is_queued() {
    let mut world = World::new(Limits { subscribed: 2, ..Limits::default() });
    let key = listen(&mut world, 1);
    for number in 0..100 {
        for subject in ["a", "b"] {
            let params = json!({ "taskId": subject, "number": number }).to_string();
            assert!(world.connection.notify_newest(key, Method::TaskUpdated, subject, &params));
        }
    }
    let sent: Vec<Value> = world.wire().iter().map(|message| message["params"].clone()).collect();
    assert_eq!(sent, [json!({"taskId": "a", "number": 99}), json!({"taskId": "b", "number": 99})]);
    assert!(world.connection.notify_newest(key, Method::TaskUpdated, "a", "{}"));
    assert_eq!(world.wire().len(), 1, "what was written is not replaced");
}

#[test]
fn no_notification_is_sent_about_a_request_that_has_ended() {
    let mut world = World::new(Limits::default());
    let key = listen(&mut world, 1);
    assert!(world.connection.notify_about(key, Method::ToolListChanged, "{}"));
    world.cancel(1);
    assert!(!world.connection.notify_about(key, Method::ToolListChanged, "{}"));
    assert_eq!(world.wire(), Vec::<Value>::new(), "what waited is taken back");
    assert_eq!(world.stopped, [(key, CancelReason::Peer)]);
    let again = listen(&mut world, 1);
    assert!(!world.connection.notify_about(key, Method::ToolListChanged, "{}"), "the id is another request's now");
    assert!(world.connection.notify_about(again, Method::ToolListChanged, "{}"));
}

#[test]
fn a_notification_that_the_revision_does_not_have_is_not_sent() {
    let mut world = World::opened(Revision::V2025_11_25);
    let key = world.call(7);
    assert!(!world.connection.notify_about(key, Method::SubscriptionAcknowledged, "{}"));
    assert!(!world.connection.notify_about(key, Method::ListRoots, "{}"));
    assert_eq!(world.wire(), Vec::<Value>::new());
}

#[test]
fn queued_notifications_of_a_request_are_bounded() {
    let mut world = World::new(Limits { subscribed: 2, ..Limits::default() });
    let key = listen(&mut world, 1);
    let tell = |world: &mut World, number: u32| {
        world.connection.notify_about(key, Method::ResourceUpdated, &json!({"uri": format!("a:{number}")}).to_string())
    };
    let sent = (0..100).filter(|number| tell(&mut world, *number)).count();
    assert_eq!(world.wire().len(), sent);
    assert!(sent < 10, "{sent}");
    assert!(tell(&mut world, 1000));
}

#[test]
fn a_shutdown_ends_subscriptions_at_once_with_a_result_and_a_cancellation() {
    let mut world = World::new(Limits::default());
    let (first, second) = (acknowledged(&mut world, 1), acknowledged(&mut world, "two"));
    let call = world.call_stateless(3);
    world.connection.shut_down(world.now);
    world.listen();
    let messages = world.wire();
    assert_eq!(methods(&messages), ["answer", "notifications/cancelled", "answer", "notifications/cancelled"]);
    assert_eq!(messages[0]["result"]["resultType"], "complete");
    assert_eq!(messages[0]["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
    assert_eq!(messages[2]["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "two");
    assert_eq!((&messages[1]["params"]["requestId"], &messages[3]["params"]["requestId"]), (&json!(1), &json!("two")));
    assert_eq!(world.stopped, [(first, CancelReason::Shutdown), (second, CancelReason::Shutdown)]);
    assert!(world.connection.is_open(call), "other requests have the drain window");
    assert!(!world.connection.notify_about(first, Method::ToolListChanged, "{}"));
}

#[test]
fn the_end_of_input_ends_subscriptions_at_once() {
    let mut world = World::new(Limits::default());
    let key = acknowledged(&mut world, 1);
    world.connection.handle_end_of_input(world.now);
    world.listen();
    assert_eq!(methods(&world.wire()), ["answer", "notifications/cancelled"]);
    assert_eq!(world.stopped, [(key, CancelReason::ConnectionClosed)]);
    world.end(key);
    assert_eq!(world.closed, Some(CloseCause::PeerClosed));
}

#[test]
fn a_subscription_without_acknowledgement_fails_at_shutdown() {
    let mut world = World::new(Limits::default());
    let key = listen(&mut world, 1);
    world.connection.handle_end_of_input(world.now);
    assert!(!world.connection.notify_about(key, Method::SubscriptionAcknowledged, r#"{"notifications":{}}"#));
    world.listen();
    let messages = world.wire();
    assert_eq!((methods(&messages), &messages[0]["error"]["code"]), (vec!["answer"], &json!(-32603)));
    assert_eq!(world.stopped, [(key, CancelReason::ConnectionClosed)]);
}

#[test]
fn a_subscription_on_a_connection_for_one_request_ends_without_a_notification() {
    let mut world = World::new(Limits::default());
    world.connection.serve_single_request();
    acknowledged(&mut world, 1);
    world.connection.shut_down(world.now);
    assert_eq!(methods(&world.wire()), ["answer"]);
}

#[test]
fn subscriptions_are_limited_and_have_no_deadline() {
    let mut world = World::new(Limits { subscriptions: 1, ..Limits::default() });
    let key = listen(&mut world, 1);
    world.connection.notify_about(key, Method::ToolListChanged, "{}");
    world.wire();
    assert_eq!(world.connection.poll_timeout(), None);
    listen(&mut world, 2);
    assert_eq!(world.wire()[0]["error"]["data"], json!({"limit": 1, "retryable": true}));
    world.cancel(1);
    listen(&mut world, 3);
    assert_eq!(world.wire(), Vec::<Value>::new());
    assert_eq!(world.connection.open_requests(), 1);
}

#[test]
fn notifications_with_parameters_are_queued_once() {
    let mut world = World::opened(Revision::V2025_11_25);
    for uri in ["a:1", "a:2", "a:1"] {
        assert!(world.connection.notify_once_of(Method::ResourceUpdated, Some(&json!({ "uri": uri }).to_string())));
    }
    let messages = world.wire();
    assert_eq!(messages.iter().map(|message| &message["params"]["uri"]).collect::<Vec<_>>(), ["a:1", "a:2"]);
    for number in 0..10_000 {
        world.connection.notify_once_of(Method::ResourceUpdated, Some(&json!({ "uri": number }).to_string()));
        world.wire();
    }
    assert!(world.connection.queued_notifications.len() < 100, "sent notifications are forgotten");
}

fn discovering() -> World {
    let mut world = client();
    world.connection.call(world.now, CallKey::new(0), Call::new(Method::Discover, None)).unwrap();
    world.wire();
    world
}

fn legacy_client(revision: &str) -> World {
    let mut world = client();
    world
        .connection
        .initialize(world.now, CallKey::new(1000), Call::new(Method::Initialize, None), Revision::V2025_11_25)
        .unwrap();
    world.wire();
    world.say(&json!({"jsonrpc":"2.0","id":1,"result":{"protocolVersion":revision,"capabilities":{"tools":{}},
        "serverInfo":{"name":"s","version":"1"}}}));
    world.wire();
    world.ended.clear();
    world
}

#[test]
fn a_readable_message_with_a_method_and_a_result_is_not_taken_for_a_request() {
    // A server: refused without an id, like the truncated form of the same message.
    let mut world = World::opened(Revision::V2025_11_25);
    world.raw(br#"{"jsonrpc":"2.0","id":5,"method":"m","result":{}}"#);
    let wire = world.wire();
    assert_eq!(wire[0].get("id"), None, "{wire:?}");
}

#[test]
fn an_answer_that_repeats_the_method_ends_its_call() {
    let mut world = legacy_client("2025-11-25");
    world.connection.call(world.now, CallKey::new(0), Call::new(Method::CallTool, None)).unwrap();
    world.wire();
    world.raw(br#"{"jsonrpc":"2.0","id":2,"method":"tools/call","result":{"content":[]}}"#);
    assert_eq!(world.wire(), Vec::<Value>::new(), "an answer is never answered");
    assert_eq!(world.ended.len(), 1, "the call goes on");
}

#[test]
fn an_answer_with_a_member_twice_ends_its_call() {
    let mut world = legacy_client("2025-11-25");
    world.connection.call(world.now, CallKey::new(0), Call::new(Method::CallTool, None)).unwrap();
    world.wire();
    world.raw(br#"{"jsonrpc":"2.0","id":2,"result":{"content":[]},"result":{"content":[]}}"#);
    assert!(matches!(world.ended.as_slice(), [(_, CallEnd::Unreadable(_))]), "{:?}", world.ended);
}

#[test]
fn no_response_is_sent_after_discovery_even_to_earlier_requests() {
    let mut world = discovering();
    world.say(&json!({"jsonrpc":"2.0","id":"q","method":"roots/list"}));
    let key = world.started[0].key;
    world.say(&json!({"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}));
    world.respond(key);
    assert_eq!(world.wire(), Vec::<Value>::new());
}

#[test]
fn output_is_held_for_half_of_the_rest_at_a_shutdown_after_the_end_of_input() {
    let limits = Limits {
        drain_window: Duration::from_secs(600),
        drain_deadline: Duration::from_secs(601),
        ..Limits::default()
    };
    let mut world = World::new(limits);
    world.open(Revision::V2025_11_25);
    world.call(1);
    world.connection.handle_end_of_input(world.now);
    world.connection.shut_down(world.now);
    world.listen();
    let next = world.connection.poll_timeout().unwrap().since(world.now);
    assert!(next <= Duration::from_millis(300_500), "{next:?}");
}

#[test]
fn an_id_cut_by_a_brace_is_not_salvaged() {
    // A client: a response to call 27948 whose 7 became a brace must not end call 2.
    for brace in ['}', ']'] {
        let mut world = legacy_client("2025-11-25");
        world.connection.call(world.now, CallKey::new(0), Call::new(Method::CallTool, None)).unwrap();
        world.wire();
        world.raw(format!(r#"{{"jsonrpc":"2.0","id":2{brace}948,"result":{{}}}}"#).as_bytes());
        assert_eq!(world.ended, [], "{brace}");
    }
}

#[test]
fn a_request_whose_id_is_cut_by_a_brace_is_refused_without_id() {
    for brace in ['}', ']'] {
        let mut world = World::opened(Revision::V2025_11_25);
        world.raw(format!(r#"{{"jsonrpc":"2.0","method":"ping","id":2{brace}948}}"#).as_bytes());
        let wire = world.wire();
        assert_eq!(wire[0].get("id"), None, "{wire:?}");
    }
}

#[test]
fn a_partial_response_at_the_end_of_input_ends_the_opening_call_as_closed() {
    for (bytes, closed) in [
        (&br#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}"#[..], false),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r", false),
        (br#"{"jsonrpc":"2.0","id":1,"result":{"#, true),
        (br#"{"jsonrpc":"2.0","id":1,"resu"#, true),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\xe2\x82", true),
        (br#"{"jsonrpc":"2.0","id":1"#, true),
        (br#"{"jsonrpc":"2.0","#, true),
        (br#"[{"jsonrpc":"2.0","id":1,"result":{}}"#, true),
        (br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"x"}}"#, false),
    ] {
        let mut world = discovering();
        world.connection.handle_last_message(world.now, bytes);
        world.connection.handle_end_of_input(world.now);
        world.listen();
        assert_eq!(world.ended.len(), 1);
        assert_eq!(world.ended[0].1 == CallEnd::Closed { sent: true }, closed, "{:?}", world.ended);
        world.wire();
        world.wait(Duration::from_secs(3));
        assert!(world.closed.is_some());
    }
}

#[test]
fn the_teardown_limit_is_released_however_a_call_ends() {
    let hello = ClientOrServerDescription::from(ClientDescription::new(
        Implementation::new("test", "1"),
        ClientCapabilities::new(),
    ));
    let mut world = World::with(hello, Limits { calls: 1, ..Limits::default() });
    for round in 0..12_u64 {
        let mut call = Call::new(Method::CancelTask, None);
        call.timeout = Some(Duration::from_secs(1));
        call.progress_token = Some(ProgressToken::from("t"));
        world.connection.call(world.now, CallKey::new(round), call).unwrap();
        if round % 2 == 0 {
            world.wire();
        }
        match round % 6 {
            0 => world.say(&json!({"jsonrpc":"2.0","id":round + 1,"result":{}})),
            2 => world.raw(format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"#, round + 1).as_bytes()),
            1 => world.connection.cancel_call(world.now, CallKey::new(round), None),
            3 => world
                .connection
                .handle_call_ended(CallKey::new(round), CallEnd::Lost { sent: true, why: String::new() }),
            _ => world.wait(Duration::from_secs(2)),
        }
        world.listen();
        world.wire();
        assert_eq!(world.connection.open_calls(), 0, "{round}");
        assert_eq!(world.connection.poll_timeout(), None);
    }
    assert_eq!(world.ended.len(), 12);
}

#[test]
fn drains_end_and_stop_everything_once_whatever_the_limits() {
    let times = [
        Duration::ZERO,
        Duration::from_nanos(1),
        Duration::from_millis(1),
        Duration::from_secs(1),
        Duration::MAX / 2,
        Duration::MAX,
    ];
    for window in times {
        for deadline in times {
            for how in 0..6 {
                for start in
                    [Duration::ZERO, Duration::from_secs(5), Duration::MAX.saturating_sub(Duration::from_secs(1))]
                {
                    let limits = Limits {
                        drain_window: window,
                        drain_deadline: deadline,
                        handler_deadline: None,
                        ..Limits::default()
                    };
                    let mut world = World::new(limits);
                    world.now = Moment::after_origin(start);
                    world.open(Revision::V2025_11_25);
                    let (key, lingering) = (world.call(1), world.call(2));
                    world.cancel(2);
                    let subscription = acknowledged(&mut world, 3);
                    match how {
                        0 => world.connection.handle_end_of_input(world.now),
                        1 => world.connection.handle_peer_gone(world.now),
                        2 => world.connection.handle_write_failed(world.now),
                        3 => world.connection.handle_peer_ended(world.now),
                        4 => world.connection.shut_down(world.now),
                        _ => world.connection.shut_down_now(world.now),
                    }
                    world.listen();
                    let mut steps = 0;
                    while let Some(next) = world.connection.poll_timeout() {
                        let stuck = next <= world.now && steps > 10;
                        assert!(!stuck, "{window:?} {deadline:?} {how} {start:?}");
                        world.now = world.now.max(next);
                        world.connection.handle_timeout(world.now);
                        world.listen();
                        world.wire();
                        steps += 1;
                    }
                    assert!(world.closed.is_some());
                    let mut stopped: Vec<InboundRequestKey> = world.stopped.iter().map(|(key, _)| *key).collect();
                    stopped.sort_unstable();
                    assert_eq!(stopped, [key, lingering, subscription], "{window:?} {deadline:?} {how}");
                    for key in [key, lingering, subscription] {
                        world.end(key);
                    }
                    assert_eq!(world.connection.live_executions(), 0);
                    assert_eq!((world.connection.open_requests(), world.connection.waiting_bytes()), (0, 0));
                }
            }
        }
    }
}

#[test]
fn warnings_about_ignored_requests_and_cancellations_are_short() {
    let mut world = discovering();
    world.say(&json!({"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}));
    world.say(&json!({"jsonrpc":"2.0","id":"q","method":"m".repeat(1_000_000)}));
    let Some(ProtocolWarning::Refused { why, .. }) = world.warnings.last() else { panic!() };
    assert!(why.len() < 1_000, "a warning of {} bytes", why.len());
}

#[test]
fn an_id_in_a_cancellation_is_as_long_as_an_id_can_be() {
    let mut world = World::opened(Revision::V2025_11_25);
    world.cancel("x".repeat(1_000_000));
    let [warning] = world.warnings.as_slice() else { panic!("{:?}", world.warnings.len()) };
    let length = if let ProtocolWarning::LateCancel(id) = warning { id.to_string().len() } else { 0 };
    assert!(length <= 4_096, "a line of {length} bytes");
}

#[test]
fn an_id_can_be_reused_when_its_response_waits_for_the_batch() {
    let mut world = World::opened(Revision::V2025_03_26);
    let call = |id| json!({"jsonrpc":"2.0","id":id,"method":"tools/call","params":{"name":"t"}});
    world.say(&json!([call(1), call(2)]));
    let first = world.started[0].key;
    world.respond(first);
    world.end(first);
    assert_eq!(world.wire(), Vec::<Value>::new());
    world.say(&json!({"jsonrpc":"2.0","id":1,"method":"ping"}));
    assert_eq!(world.wire()[0]["id"], 1);
}
