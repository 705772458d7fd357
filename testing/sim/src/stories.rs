//! The stories that started this: orders of events in which other implementations lost their process, hung or answered
//! twice. Each is replayed with a real connection, with every checker watching.

use std::time::Duration;

use serde_json::json;
use steadfast_model::{Method, Revision};
use steadfast_proto::connection::Call;

use crate::endpoint::opened::{cancel, limits, request, server_of, write_all};
use crate::endpoint::{Endpoint, Reply};
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
    script: fn(&mut StoryRun),
}

impl Story {
    /// Tells the story. Returns the laws that were broken.
    pub fn run(&self) -> Vec<Violation> {
        let mut run = StoryRun {
            endpoint: server_of(Revision::V2025_11_25, limits())(),
            trace: Trace::off(),
            violations: Vec::new(),
        };
        (self.script)(&mut run);
        run.violations.append(&mut run.endpoint.violations());
        run.violations
    }
}

/// All of them.
pub const STORIES: &[Story] = &[
    Story {
        name: "a close while a handler runs and then answers",
        law: Law::Lateness,
        guard: "PanicOnLateAnswer",
        script: close_then_answer,
    },
    Story { name: "bytes that are not UTF-8", law: Law::Isolation, guard: "CloseOnBadBytes", script: bad_bytes },
    Story {
        name: "a cancellation between the handler's end and its answer",
        law: Law::Silence,
        guard: "AnswerAfterCancel",
        script: cancel_between,
    },
    Story {
        name: "two handlers waiting on the client when the transport closes",
        law: Law::Closing,
        guard: "IterateWhileRemoving",
        script: two_waiters,
    },
    Story {
        name: "the two ends of a stream closing in either order",
        law: Law::Closing,
        guard: "DrainForever",
        script: either_order,
    },
];

/// A server in the middle of a story.
struct StoryRun {
    endpoint: Endpoint,
    trace: Trace,
    violations: Vec<Violation>,
}

impl StoryRun {
    fn receive(&mut self, message: &serde_json::Value) {
        self.endpoint.receive(&mut self.trace, Message::read(message.to_string().as_bytes()));
    }

    fn respond(&mut self, execution: u64) {
        self.endpoint.respond(&mut self.trace, execution, Reply::Result { padding: 0 });
    }

    fn end_execution(&mut self, execution: u64) {
        self.endpoint.end_execution(&mut self.trace, execution);
    }

    fn write(&mut self) {
        write_all(&mut self.endpoint, &mut self.trace);
    }

    fn wait(&mut self, duration: Duration) {
        self.endpoint.now = self.endpoint.now + duration;
        self.endpoint.time_out(&mut self.trace);
    }

    fn quiet(&mut self) {
        self.endpoint.quiet(&mut self.trace);
    }

    /// What the checkers cannot know: that this had to have happened by now.
    fn expect(&mut self, law: Law, what: &str, holds: bool) {
        if !holds {
            self.violations.push(Violation { law, what: format!("expected that {what}, observed that it is not so") });
        }
    }
}

/// The client closes, the drain passes its deadline, and only then the handler gives its answer.
fn close_then_answer(run: &mut StoryRun) {
    run.receive(&request(json!(1), None));
    run.endpoint.end_input(&mut run.trace);
    run.wait(Duration::from_secs(1));
    run.write();
    run.wait(Duration::from_secs(1));
    run.expect(Law::Closing, "it closes at its deadline", run.endpoint.is_closed());
    run.respond(0);
    run.end_execution(0);
    run.quiet();
}

/// A line of bytes that are no text arrives between two calls; both are answered, and so is the line.
fn bad_bytes(run: &mut StoryRun) {
    run.receive(&request(json!(1), None));
    run.endpoint.receive(&mut run.trace, Message::read(b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"\xff\xfe\"}"));
    run.receive(&request(json!(2), None));
    for execution in 0..2 {
        run.respond(execution);
        run.end_execution(execution);
    }
    run.write();
    run.quiet();
    let answered = run.endpoint.ledger.requests.iter().filter(|request| request.answers == 1).count();
    run.expect(Law::Isolation, "the handshake and both calls are answered", answered == 3);
}

/// The handler is done and its answer is on its way to the connection when the cancellation is taken in.
fn cancel_between(run: &mut StoryRun) {
    run.receive(&request(json!(1), Some("t")));
    run.endpoint.progress(&mut run.trace, 0, 1.0);
    run.receive(&cancel(json!(1)));
    run.respond(0);
    run.end_execution(0);
    run.write();
    run.receive(&cancel(json!(1)));
    run.quiet();
}

/// Two handlers have asked the client something and wait; the client goes away.
fn two_waiters(run: &mut StoryRun) {
    for id in 0..2 {
        run.receive(&request(json!(id), None));
        run.endpoint.call(&mut run.trace, Call::new(Method::ListRoots, None), Some(id));
    }
    run.write();
    run.endpoint.end_input(&mut run.trace);
    let waiting = run.endpoint.ledger.open_calls();
    run.expect(Law::Closing, "both learn at once that the client is gone", waiting == 0);
    for execution in 0..2 {
        run.respond(execution);
        run.end_execution(execution);
    }
    run.write();
    run.quiet();
    run.expect(Law::Closing, "it closes when nothing is left", run.endpoint.is_closed());
}

/// The peer stops writing and stops reading, one after the other, while a handler runs that does not stop.
fn either_order(run: &mut StoryRun) {
    let begin = run.endpoint.clone();
    for input_first in [true, false] {
        run.violations.append(&mut run.endpoint.violations());
        run.endpoint = begin.clone();
        run.receive(&request(json!(1), None));
        run.receive(&request(json!(2), None));
        run.respond(1);
        if input_first {
            run.endpoint.end_input(&mut run.trace);
            run.endpoint.fail_write(&mut run.trace);
        } else {
            run.endpoint.fail_write(&mut run.trace);
            run.endpoint.end_input(&mut run.trace);
        }
        run.end_execution(1);
        run.wait(Duration::from_secs(2));
        run.expect(Law::Closing, "it closes although a handler goes on", run.endpoint.is_closed());
        run.end_execution(0);
        run.quiet();
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
