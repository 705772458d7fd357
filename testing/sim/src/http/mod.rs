//! Seeded simulation of the HTTP service: clients of both eras call it as a web server does, read slowly or not at all, hang
//! up anywhere, resume, and delete or abandon their sessions.
//!
//! Everything comes from the seed: `Script` is what will be done, and the executor draws in which order things run. The
//! checks see requests, responses and the journal of the handlers.

mod bias;
mod changes;
mod checks;
mod client;
mod handlers;
mod journal;
mod script;
mod subscriptions;
mod wire;

use std::fmt;
use std::sync::{Arc, Mutex};

use steadfast::Server;
use steadfast::transport::http::HttpService;

use crate::executor::Executor;
use crate::executor::world::{self, World};
use crate::law::Violation;
use crate::observation::lifetimes::LifetimeKind;
use crate::observation::record::Record;
use crate::script::changes::with_changing_items;
use crate::script::rng::Random;
use crate::seed::Seed;
use crate::worlds::Shrunk;
use client::{Clients, State};
use handlers::HandlerContext;
use journal::Journal;
use script::Script;

/// What a run, or many, came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Runs.
    pub runs: u64,
    /// Requests of HTTP.
    pub exchanges: u64,
    /// Requests of the protocol's.
    pub requests: u64,
    /// Answers that were given.
    pub answers: u64,
    /// Cancellations that were taken in.
    pub cancellations: u64,
    /// Sessions that were opened.
    pub sessions: u64,
    /// Streams that were resumed.
    pub resumed: u64,
    /// Handlers that began.
    pub handlers: u64,
    /// Questions to older clients.
    pub questions: u64,
    /// Events and messages that were given.
    pub events: u64,
    /// Polls of tasks and runs of threads.
    pub steps: u64,
    /// Of everything that was seen, in order; of many runs, all of them together.
    pub trace: u64,
}

impl std::ops::AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.runs += other.runs;
        self.exchanges += other.exchanges;
        self.requests += other.requests;
        self.answers += other.answers;
        self.cancellations += other.cancellations;
        self.sessions += other.sessions;
        self.resumed += other.resumed;
        self.handlers += other.handlers;
        self.questions += other.questions;
        self.events += other.events;
        self.steps += other.steps;
        self.trace = self.trace.rotate_left(1) ^ other.trace;
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, exchanges, requests, answers, cancellations, sessions, resumed, .. } = self;
        let Self { handlers, questions, events, steps, trace, .. } = self;
        write!(
            formatter,
            "{runs} runs over HTTP, {steps} steps, {exchanges} exchanges, {requests} requests, {answers} answers, {cancellations} cancellations, {sessions} sessions, {resumed} resumed, {handlers} handlers, {questions} questions, {events} events, trace {trace:016x}"
        )
    }
}

/// Runs the service under a seed, and checks every law.
///
/// # Errors
///
/// The first law that was broken.
pub fn run_seed(seed: impl Into<Seed>) -> Result<Totals, Violation> {
    world::run_seed::<Simulated>(seed.into())
}

/// Makes the script of a seed that fails as small as it gets, and tells what happens in it. `None` if it does not fail.
pub fn shrink(seed: impl Into<Seed>) -> Option<Shrunk> {
    world::shrink::<Simulated>(seed.into())
}

/// What happens under a seed, for people to read.
pub fn lines(seed: impl Into<Seed>) -> Vec<String> {
    world::lines::<Simulated>(seed.into())
}

struct Simulated {
    executor: Executor,
    journal: Arc<Journal>,
    clients: Arc<Clients>,
}

impl World for Simulated {
    type Script = Script;
    type Totals = Totals;

    fn script(seed: Seed) -> Script {
        Script::of(seed)
    }

    fn new(script: &Script, kept: bool) -> Self {
        let executor = Executor::new(Random::new(script.seed, 22)).with_first_polls(Random::new(script.seed, 122));
        let journal = Journal::new(executor.clone(), script, kept);
        let context = Arc::new(HandlerContext { executor: executor.clone(), journal: Arc::clone(&journal) });
        let builder = Server::builder("simulated", "1.0.0").tools(handlers::tools(&context));
        let server = if script.changes { with_changing_items(builder) } else { builder }.build();
        let options = script.tuning.options(&script.limits);
        let service = HttpService::new(server.clone(), options).runtime(Arc::new(executor.clone()));
        let clients = Arc::new(Clients {
            executor: executor.clone(),
            journal: Arc::clone(&journal),
            server,
            service: Mutex::new(Some(service)),
            revisions: script.clients.clone(),
            silent: script.silent,
            state: Mutex::new(State::new(Random::new(script.seed, 23), script.clients.len())),
        });
        let (watched, asked, time) = (Arc::clone(&journal), Arc::clone(&clients), executor.clone());
        executor.on_idle(move || {
            let sessions = asked.service().map_or(0, |service| service.sessions());
            let mut facts = watched.facts();
            facts.blocked = time.blocked_in_first_poll();
            checks::at_idle(&mut facts, time.now(), sessions);
        });
        executor.spawn_harness_task(Arc::clone(&clients).perform(script.clone()));
        Self { executor, journal, clients }
    }

    fn executor(&self) -> &Executor {
        &self.executor
    }

    fn with_record<T>(&self, body: impl FnOnce(&mut Record) -> T) -> T {
        body(&mut self.journal.facts().record)
    }

    fn at_last(&self) {
        let sessions = self.clients.service().map_or(0, |service| service.sessions());
        checks::at_last(&mut self.journal.facts(), &self.executor, sessions);
    }

    fn totals(&self, trace: u64) -> Totals {
        let facts = self.journal.facts();
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let handlers = facts
            .lives
            .values()
            .filter(|life| matches!(life.what, LifetimeKind::Handler | LifetimeKind::Thread))
            .count();
        Totals {
            runs: 1,
            exchanges: count(facts.exchanges.len()),
            requests: count(facts.requests.values().map(|request| request.sent).sum()),
            answers: facts.counts.answers,
            cancellations: facts.counts.cancellations,
            sessions: count(facts.sessions.len()),
            resumed: facts.counts.resumed,
            handlers: count(handlers),
            questions: facts.counts.questions,
            events: facts.counts.events,
            steps: self.executor.steps(),
            trace,
        }
    }
}
