//! The stories that started this: orders of events in which other implementations lost their process, hung or answered
//! twice. Each is replayed with a real connection, with every checker watching.

use std::time::Duration;

use serde_json::json;
use steadfast_model::{Method, Revision};
use steadfast_proto::connection::Call;

use crate::endpoint::opened::{cancel, limits, request, server_of, write_all};
use crate::endpoint::{End, Reply};
use crate::law::{Law, Violation};
use crate::observation::message::Message;
use crate::observation::trace::Trace;

/// A story, and the law that keeps it from going wrong.
pub struct Story {
    /// What happens.
    pub name: &'static str,
    /// What must hold.
    pub law: Law,
    /// The fault that takes the guard away: a name of `steadfast_proto::mutant::Mutant`.
    pub guard: &'static str,
    tell: fn(&mut StoryRun),
}

impl Story {
    /// Tells the story. Returns the laws that were broken.
    pub fn tell(&self) -> Vec<Violation> {
        let mut told =
            StoryRun { end: server_of(Revision::V2025_11_25, limits())(), trace: Trace::off(), violations: Vec::new() };
        (self.tell)(&mut told);
        told.violations.append(&mut told.end.violations());
        told.violations
    }
}

/// All of them.
pub const STORIES: &[Story] = &[
    Story {
        name: "a close while a handler runs and then answers",
        law: Law::Lateness,
        guard: "PanicOnLateAnswer",
        tell: close_then_answer,
    },
    Story { name: "bytes that are not UTF-8", law: Law::Isolation, guard: "CloseOnBadBytes", tell: bad_bytes },
    Story {
        name: "a cancellation between the handler's end and its answer",
        law: Law::Silence,
        guard: "AnswerAfterCancel",
        tell: cancel_between,
    },
    Story {
        name: "two handlers waiting on the client when the transport closes",
        law: Law::Closing,
        guard: "IterateWhileRemoving",
        tell: two_waiters,
    },
    Story {
        name: "the two ends of a stream closing in either order",
        law: Law::Closing,
        guard: "DrainForever",
        tell: either_order,
    },
];

/// A server in the middle of a story.
struct StoryRun {
    end: End,
    trace: Trace,
    violations: Vec<Violation>,
}

impl StoryRun {
    fn hear(&mut self, message: &serde_json::Value) {
        self.end.receive(&mut self.trace, Message::read(message.to_string().as_bytes()));
    }

    fn respond(&mut self, execution: u64) {
        self.end.respond(&mut self.trace, execution, Reply::Result { padding: 0 });
    }

    fn end_execution(&mut self, execution: u64) {
        self.end.end_execution(&mut self.trace, execution);
    }

    fn write(&mut self) {
        write_all(&mut self.end, &mut self.trace);
    }

    fn wait(&mut self, duration: Duration) {
        self.end.now = self.end.now + duration;
        self.end.time_out(&mut self.trace);
    }

    fn quiet(&mut self) {
        self.end.quiet(&mut self.trace);
    }

    /// What the checkers cannot know: that this had to have happened by now.
    fn expect(&mut self, law: Law, what: &str, holds: bool) {
        if !holds {
            self.violations.push(Violation { law, what: what.to_owned() });
        }
    }
}

/// The client closes, the drain passes its deadline, and only then the handler gives its answer.
fn close_then_answer(told: &mut StoryRun) {
    told.hear(&request(json!(1), None));
    told.end.end_input(&mut told.trace);
    told.wait(Duration::from_secs(1));
    told.write();
    told.wait(Duration::from_secs(1));
    told.expect(Law::Closing, "it closes at its deadline", told.end.is_closed());
    told.respond(0);
    told.end_execution(0);
    told.quiet();
}

/// A line of bytes that are no text arrives between two calls; both are answered, and so is the line.
fn bad_bytes(told: &mut StoryRun) {
    told.hear(&request(json!(1), None));
    told.end.receive(&mut told.trace, Message::read(b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"\xff\xfe\"}"));
    told.hear(&request(json!(2), None));
    for execution in 0..2 {
        told.respond(execution);
        told.end_execution(execution);
    }
    told.write();
    told.quiet();
    let answered = told.end.ledger.requests.iter().filter(|request| request.answers == 1).count();
    told.expect(Law::Isolation, "the handshake and both calls are answered", answered == 3);
}

/// The handler is done and its answer is on its way to the connection when the cancellation is taken in.
fn cancel_between(told: &mut StoryRun) {
    told.hear(&request(json!(1), Some("t")));
    told.end.progress(&mut told.trace, 0, 1.0);
    told.hear(&cancel(json!(1)));
    told.respond(0);
    told.end_execution(0);
    told.write();
    told.hear(&cancel(json!(1)));
    told.quiet();
}

/// Two handlers have asked the client something and wait; the client goes away.
fn two_waiters(told: &mut StoryRun) {
    for id in 0..2 {
        told.hear(&request(json!(id), None));
        told.end.call(&mut told.trace, Call::new(Method::ListRoots, None), Some(id));
    }
    told.write();
    told.end.end_input(&mut told.trace);
    let waiting = told.end.ledger.open_calls();
    told.expect(Law::Closing, "both learn at once that the client is gone", waiting == 0);
    for execution in 0..2 {
        told.respond(execution);
        told.end_execution(execution);
    }
    told.write();
    told.quiet();
    told.expect(Law::Closing, "it closes when nothing is left", told.end.is_closed());
}

/// The peer stops writing and stops reading, one after the other, while a handler runs that does not stop.
fn either_order(told: &mut StoryRun) {
    let begin = told.end.clone();
    for input_first in [true, false] {
        told.violations.append(&mut told.end.violations());
        told.end = begin.clone();
        told.hear(&request(json!(1), None));
        told.hear(&request(json!(2), None));
        told.respond(1);
        if input_first {
            told.end.end_input(&mut told.trace);
            told.end.fail_write(&mut told.trace);
        } else {
            told.end.fail_write(&mut told.trace);
            told.end.end_input(&mut told.trace);
        }
        told.end_execution(1);
        told.wait(Duration::from_secs(2));
        told.expect(Law::Closing, "it closes although a handler goes on", told.end.is_closed());
        told.end_execution(0);
        told.quiet();
    }
}

/// Reports name stories.
impl std::fmt::Debug for Story {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Story")
            .field("name", &self.name)
            .field("law", &self.law)
            .field("guard", &self.guard)
            .finish_non_exhaustive()
    }
}
