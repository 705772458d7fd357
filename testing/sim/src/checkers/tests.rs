//! Checkers have to be able to fail: for each law, a short history that breaks it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steadfast_proto::connection::{CancelReason, CloseCause, Limits};

use super::{Checkers, Report};
use crate::law::Law;
use crate::observation::ledger::{Ledger, Settings, Side};
use crate::observation::message::Message;
use crate::observation::{CallOutcome, CallRecord, Observation};

/// A history that is shown to the checkers.
struct History {
    ledger: Ledger,
    checkers: Checkers,
    report: Report,
}

impl History {
    fn new(limits: Limits) -> Self {
        let settings = Arc::new(Settings { side: Side::Server, limits, longest_frame: 4_096 });
        Self { ledger: Ledger::new(settings), checkers: Checkers::default(), report: Report::default() }
    }

    fn see(mut self, seen: Observation) -> Self {
        self.checkers.see(&self.ledger, &seen, &mut self.report);
        self.ledger.note(&seen);
        self
    }

    fn settle(self) -> Self {
        self.see(Observation::Settled { waiting: 0, deadline: None, wants_input: true })
    }

    fn receive(self, message: &Value) -> Self {
        self.see(Observation::Received(read(message)))
    }

    fn send(self, message: &Value) -> Self {
        self.see(Observation::Sent { message: read(message), call: None }).settle()
    }

    fn start(self, execution: u64, id: &str) -> Self {
        self.see(Observation::Started { execution, id: id.into(), method: "tools/call" })
    }

    /// A request arrives and is started.
    fn request(self, execution: u64, id: &Value) -> Self {
        self.receive(&request(id)).start(execution, &id.to_string()).settle()
    }

    fn respond(self, execution: u64) -> Self {
        self.see(Observation::Responded(execution)).settle()
    }

    fn call(self, call: u64) -> Self {
        let called =
            CallRecord { call, method: "ping", parent: None, timeout: None, total_timeout: None, accepted: true };
        self.see(Observation::Called(called)).settle()
    }

    fn send_call(self, call: u64) -> Self {
        let message = read(&json!({"jsonrpc":"2.0","id":call,"method":"ping"}));
        self.see(Observation::Sent { message, call: Some(call) }).settle()
    }

    fn end_call(self, call: u64, how: CallOutcome) -> Self {
        self.see(Observation::CallEnded { call, how })
    }

    fn later(mut self, seconds: u64) -> Self {
        self.ledger.now = self.ledger.now + Duration::from_secs(seconds);
        self.see(Observation::TimedOut).settle()
    }

    fn broken(mut self) -> Vec<Law> {
        let mut laws: Vec<Law> = self.report.take().into_iter().map(|violation| violation.law).collect();
        laws.sort_unstable();
        laws.dedup();
        laws
    }
}

fn read(message: &Value) -> Arc<Message> {
    Message::read(message.to_string().as_bytes())
}

fn request(id: &Value) -> Value {
    json!({"jsonrpc":"2.0","id":id,"method":"tools/call","params":{"_meta":{"progressToken":format!("t{id}")}}})
}

fn cancel(id: &Value) -> Value {
    json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":id}})
}

fn answer(id: &Value, execution: u64) -> Value {
    json!({"jsonrpc":"2.0","id":id,"result":{"marker":execution}})
}

fn progress(id: &Value, value: u64) -> Value {
    json!({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":format!("t{id}"),"progress":value}})
}

fn history() -> History {
    let mut limits = Limits::default();
    limits.in_flight = 2;
    limits.handler_deadline = Some(Duration::from_secs(10));
    History::new(limits)
}

const ENDED: Observation = Observation::InputEnded;

#[test]
fn a_good_history_breaks_nothing() {
    let id = json!(7);
    let good = history().request(0, &id).send(&progress(&id, 1)).respond(0).send(&answer(&id, 0));
    let good = good.see(Observation::Flushed).settle().see(Observation::ExecutionEnded(0)).settle();
    let good = good.call(0).send_call(0).see(Observation::FirstByte(0)).settle().see(Observation::Flushed).settle();
    let good = good
        .receive(&json!({"jsonrpc":"2.0","id":0,"result":{}}))
        .end_call(0, CallOutcome::Answered("{}".into()))
        .settle();
    assert_eq!(good.see(Observation::Quiet).broken(), []);
}

#[test]
fn one_ending() {
    let id = json!(7);
    let answered = || history().request(0, &id).respond(0).send(&answer(&id, 0));
    assert!(answered().send(&answer(&id, 0)).broken().contains(&Law::OneEnding), "twice");
    assert_eq!(history().send(&json!({"jsonrpc":"2.0","id":1,"result":{}})).broken(), [Law::OneEnding], "to nothing");
    let lost = history().request(0, &id).respond(0).see(Observation::ExecutionEnded(0)).settle();
    assert_eq!(lost.see(Observation::Quiet).broken(), [Law::OneEnding], "lost");
}

#[test]
fn an_answer() {
    let ended = history().request(0, &json!(7)).see(Observation::ExecutionEnded(0)).settle();
    assert_eq!(ended.see(Observation::Quiet).broken(), [Law::Answer], "the handler dropped it");
    assert_eq!(history().request(0, &json!(7)).later(11).broken(), [Law::Answer], "past its deadline");
    let ignored = history().receive(&json!({"jsonrpc":"2.0","id":1,"method":"ping"})).settle();
    assert_eq!(ignored.see(Observation::Quiet).broken(), [Law::Answer], "never started");
    let unrefused = history().see(Observation::Received(Message::read(b"{"))).settle();
    assert_eq!(unrefused.see(Observation::Quiet).broken(), [Law::Answer], "not refused");
}

#[test]
fn silence() {
    let id = json!(7);
    let stopped = Observation::Stopped { execution: 0, reason: CancelReason::Peer };
    let cancelled = || history().request(0, &id).receive(&cancel(&id)).see(stopped.clone()).settle();
    assert_eq!(cancelled().broken(), []);
    assert!(cancelled().send(&answer(&id, 0)).broken().contains(&Law::Silence), "a result");
    let error = json!({"jsonrpc":"2.0","id":id,"error":{"code":-32603,"message":"ended"}});
    assert!(cancelled().send(&error).broken().contains(&Law::Silence), "an error");
    assert_eq!(cancelled().send(&progress(&id, 1)).broken(), [Law::Silence], "progress");
    let log = json!({"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":{"marker":0}}});
    assert!(cancelled().send(&log).broken().contains(&Law::Silence), "a log message");
}

#[test]
fn lateness() {
    let late = |seen: Observation| history().receive(&cancel(&json!(9))).see(seen).settle().broken();
    let line = Observation::LogLine("late".to_owned());
    assert_eq!(late(line.clone()), []);
    assert_eq!(history().receive(&cancel(&json!(9))).settle().broken(), [Law::Lateness], "no line in the log");
    let stopped = history().request(0, &json!(7)).receive(&cancel(&json!(9))).see(line);
    let stopped = stopped.see(Observation::Stopped { execution: 0, reason: CancelReason::Peer }).settle();
    assert!(stopped.broken().contains(&Law::Lateness), "an effect");
    assert!(late(Observation::Panicked("no such request".to_owned())).contains(&Law::Lateness), "a panic");
}

#[test]
fn closing() {
    let closed = Observation::Closed(CloseCause::PeerClosed);
    assert!(
        history().request(0, &json!(7)).see(ENDED).see(closed.clone()).broken().contains(&Law::Closing),
        "not stopped"
    );
    assert!(
        history().call(0).send_call(0).see(ENDED).see(closed.clone()).broken().contains(&Law::Closing),
        "a lost waiter"
    );
    assert!(history().see(ENDED).settle().broken().contains(&Law::Closing), "nothing left to wait for");
    assert!(history().request(0, &json!(7)).see(ENDED).settle().later(2).broken().contains(&Law::Closing), "too long");
    let after = history().see(ENDED).see(closed.clone());
    assert!(after.start(0, "7").broken().contains(&Law::Closing), "after the end");
    assert!(history().see(closed).broken().contains(&Law::Closing), "unasked");
}

#[test]
fn isolation() {
    let bad = || history().request(0, &json!(7)).see(Observation::Received(Message::read(b"\xff")));
    let stopped = Observation::Stopped { execution: 0, reason: CancelReason::ConnectionClosed };
    assert_eq!(bad().see(stopped.clone()).broken(), [Law::Isolation], "bad bytes stop a handler");
    let other = history().request(0, &json!(7)).request(1, &json!(8)).see(Observation::ExecutionEnded(1)).see(stopped);
    assert_eq!(other.broken(), [Law::Isolation], "one handler's end stops another");
}

#[test]
fn bounded() {
    let full = || history().request(0, &json!(7)).request(1, &json!(8));
    assert_eq!(full().request(2, &json!(9)).broken(), [Law::Bounded], "past the limit");
    let refusal = json!({"jsonrpc":"2.0","id":8,"error":{"code":-32603,"message":"full","data":{"limit":2}}});
    let below = history().request(0, &json!(7)).receive(&request(&json!(8))).settle().send(&refusal);
    assert_eq!(below.broken(), [Law::Bounded], "below the limit");
    let waiting = Observation::Settled { waiting: usize::MAX, deadline: None, wants_input: true };
    assert_eq!(history().see(waiting).broken(), [Law::Bounded], "what waits");
}

#[test]
fn identity() {
    let running = || history().request(0, &json!(7));
    assert_eq!(running().request(1, &json!(7)).broken(), [Law::Identity], "a duplicate");
    let stopped = Observation::Stopped { execution: 0, reason: CancelReason::Peer };
    let confused = running().receive(&cancel(&json!("7"))).see(Observation::LogLine("late".to_owned())).see(stopped);
    assert!(confused.broken().contains(&Law::Identity), "text and number");
    let error = json!({"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"duplicate"}});
    assert!(
        running().receive(&request(&json!(7))).settle().send(&error).broken().contains(&Law::Identity),
        "a refusal"
    );
    let wrong = history().call(0).send_call(0).receive(&json!({"jsonrpc":"2.0","id":"0","result":{}}));
    let wrong = wrong.end_call(0, CallOutcome::Answered("{}".into()));
    assert!(wrong.broken().contains(&Law::Identity), "an answer to another");
}

#[test]
fn order() {
    let (first, second) = (json!(7), json!(8));
    let both = history().request(0, &first).request(1, &second).respond(0).respond(1);
    assert_eq!(both.send(&answer(&second, 1)).broken(), [Law::Order], "an answer overtakes");
    let late = history().request(0, &first).respond(0).send(&answer(&first, 0)).send(&progress(&first, 1));
    assert_eq!(late.broken(), [Law::Order], "progress after the answer");
    let shrinks = history().request(0, &first).send(&progress(&first, 2)).send(&progress(&first, 1));
    assert_eq!(shrinks.broken(), [Law::Order], "progress that does not grow");
    assert_eq!(history().send(&cancel(&json!(1))).broken(), [Law::Order], "a cancellation before its call");
}

#[test]
fn outcome() {
    let written = || history().call(0).send_call(0).see(Observation::FirstByte(0)).settle();
    let gave_up = Observation::GaveUp(0);
    let said = |how| written().see(gave_up.clone()).end_call(0, how).settle().broken();
    assert_eq!(said(CallOutcome::Cancelled { sent: true }), []);
    assert_eq!(said(CallOutcome::Cancelled { sent: false }), [Law::Outcome], "it was sent");
    let unsent = history().call(0).see(gave_up.clone()).end_call(0, CallOutcome::Cancelled { sent: true });
    assert_eq!(unsent.broken(), [Law::Outcome], "it was not sent");
    assert!(history().call(0).see(gave_up).settle().broken().contains(&Law::Outcome), "it goes on");
    let twice = written().see(Observation::GaveUp(0)).end_call(0, CallOutcome::Cancelled { sent: true });
    assert_eq!(twice.end_call(0, CallOutcome::Cancelled { sent: true }).broken(), [Law::Outcome], "twice");
    assert_eq!(written().end_call(0, CallOutcome::TimedOut { sent: true }).broken(), [Law::Outcome], "before its time");
}
