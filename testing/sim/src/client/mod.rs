//! Seeded simulation of the real client: a program that calls, waits, drops and closes, against a server that answers
//! twice, late, wrongly or never, dies in the middle of a word, stops reading or forgets its session.
//!
//! Calls continue in rounds and as tasks, with subscriptions and cached results: the server ends, forgets and denies all
//! of it at will.
//!
//! Everything comes from the seed: `Script` is what will be done, and the executor draws in which order things run. The
//! checks see only the results that the program got, and what the server read and wrote. Two worlds share all but the transport to
//! the server: a byte stream, or HTTP.

mod bias;
mod caller;
mod checks;
mod http;
mod journal;
mod listener;
mod script;
mod server;
mod stream;
mod writer;

use std::fmt;
use std::sync::Arc;

use steadfast::Client;

use crate::executor::Executor;
use crate::executor::world::{self, World};
use crate::law::Violation;
use crate::observation::record::Record;
use crate::script::rng::Random;
use crate::seed::Seed;
use crate::worlds::Shrunk;
use caller::Caller;
use http::HttpServer;
use journal::{CallResult, Journal};
use script::Script;
use server::{Server, ServerOutput};
use stream::{NewestStream, Pipes};

/// What a run, or many, came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Runs.
    pub runs: u64,
    /// Runs in which the connection was opened.
    pub opened: u64,
    /// Calls that were made.
    pub calls: u64,
    /// Calls that ended with their result.
    pub done: u64,
    /// Calls that were dropped.
    pub dropped: u64,
    /// Cancellations that were sent.
    pub cancellations: u64,
    /// Questions that the server asked.
    pub questions: u64,
    /// Calls that became tasks.
    pub tasks: u64,
    /// Tasks that were cancelled.
    pub cancelled_tasks: u64,
    /// Rounds beyond the first.
    pub rounds: u64,
    /// Changes that listeners received.
    pub changes: u64,
    /// How often a subscription was reported.
    pub listened: u64,
    /// Readings that were served from the cache.
    pub kept: u64,
    /// Streams that were resumed.
    pub resumed: u64,
    /// Streams that were opened.
    pub links: u64,
    /// Messages that the client wrote.
    pub messages: u64,
    /// Polls of tasks.
    pub steps: u64,
    /// Of everything that was seen, in order; of many runs, all of them together.
    pub trace: u64,
}

impl Totals {
    /// Whether all that takes more than a request and its answer has happened more often than this.
    pub fn goes_beyond_one_request(&self, times: u64) -> bool {
        let Self { tasks, cancelled_tasks, rounds, changes, listened, kept, .. } = *self;
        [tasks, cancelled_tasks, rounds, changes, listened, kept].into_iter().all(|count| count > times)
    }
}

impl std::ops::AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.runs += other.runs;
        self.opened += other.opened;
        self.calls += other.calls;
        self.done += other.done;
        self.dropped += other.dropped;
        self.cancellations += other.cancellations;
        self.questions += other.questions;
        self.tasks += other.tasks;
        self.cancelled_tasks += other.cancelled_tasks;
        self.rounds += other.rounds;
        self.changes += other.changes;
        self.listened += other.listened;
        self.kept += other.kept;
        self.resumed += other.resumed;
        self.links += other.links;
        self.messages += other.messages;
        self.steps += other.steps;
        self.trace = self.trace.rotate_left(1) ^ other.trace;
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, opened, calls, done, dropped, cancellations, .. } = self;
        let Self { questions, resumed, links, messages, steps, trace, .. } = self;
        let Self { tasks, cancelled_tasks, rounds, changes, listened, kept, .. } = self;
        write!(
            formatter,
            "{runs} runs of the client, {opened} opened, {steps} steps, {calls} calls, {done} done, {dropped} dropped, {cancellations} cancellations, {questions} questions, {rounds} rounds, {tasks} tasks, {cancelled_tasks} of them cancelled, {listened} times listened, {changes} changes, {kept} kept answers, {resumed} resumed, {links} streams, {messages} messages, trace {trace:016x}"
        )
    }
}

/// How the client reaches its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransportKind {
    /// Over a stream of bytes.
    Stream,
    /// Over HTTP.
    Http,
}

/// Runs the client under a seed, and checks every law.
///
/// # Errors
///
/// The first law that was broken.
pub fn run_seed(transport: TransportKind, seed: impl Into<Seed>) -> Result<Totals, Violation> {
    match transport {
        TransportKind::Stream => world::run_seed::<Simulated<false>>(seed.into()),
        TransportKind::Http => world::run_seed::<Simulated<true>>(seed.into()),
    }
}

/// Makes the script of a seed that fails as small as it gets, and tells what happens in it. `None` if it does not fail.
pub fn shrink(transport: TransportKind, seed: impl Into<Seed>) -> Option<Shrunk> {
    match transport {
        TransportKind::Stream => world::shrink::<Simulated<false>>(seed.into()),
        TransportKind::Http => world::shrink::<Simulated<true>>(seed.into()),
    }
}

/// What happens under a seed, for people to read.
pub fn lines(transport: TransportKind, seed: impl Into<Seed>) -> Vec<String> {
    match transport {
        TransportKind::Stream => world::lines::<Simulated<false>>(seed.into()),
        TransportKind::Http => world::lines::<Simulated<true>>(seed.into()),
    }
}

struct Simulated<const HTTP: bool> {
    executor: Executor,
    journal: Arc<Journal>,
    server: Arc<Server>,
}

impl<const HTTP: bool> Drop for Simulated<HTTP> {
    fn drop(&mut self) {
        // It refers to itself through the streams that it tells of changes.
        self.server.forget_subscriptions();
    }
}

impl<const HTTP: bool> World for Simulated<HTTP> {
    type Script = Script;
    type Totals = Totals;

    fn script(seed: Seed) -> Script {
        Script::of(seed, if HTTP { TransportKind::Http } else { TransportKind::Stream })
    }

    fn new(script: &Script, kept: bool) -> Self {
        let executor = Executor::new(Random::new(script.seed, 31));
        let journal = Journal::new(executor.clone(), script, kept);
        let server = Server::new(executor.clone(), Arc::clone(&journal), script);
        let (output, connecting): (Arc<dyn ServerOutput>, _) = match script.transport_kind {
            TransportKind::Stream => {
                let pipes = Pipes::new(&executor, &journal, &server, script);
                let newest = NewestStream(Arc::clone(&pipes));
                let opens = move || std::future::ready(pipes.open());
                (Arc::new(newest), Client::connect(opens))
            }
            TransportKind::Http => {
                let (web, target) = HttpServer::new(&executor, &journal, &server, script);
                (Arc::new(web), Client::connect(target))
            }
        };
        let caller = Arc::new(Caller::new(executor.clone(), Arc::clone(&journal), Arc::clone(&server), output));
        let connecting = caller.prepare(connecting, script);
        executor.spawn_harness_task(caller.perform(connecting, script.clone()));
        let (watching, time) = (Arc::downgrade(&journal), executor.clone());
        executor.on_idle(move || {
            let Some(journal) = watching.upgrade() else { return };
            if let Some(transport) = journal.transport() {
                checks::at_idle(&mut journal.facts(), transport, time.now());
            }
        });
        Self { executor, journal, server }
    }

    fn executor(&self) -> &Executor {
        &self.executor
    }

    fn with_record<T>(&self, body: impl FnOnce(&mut Record) -> T) -> T {
        body(&mut self.journal.facts().record)
    }

    fn at_last(&self) {
        if let Some(transport) = self.journal.transport() {
            checks::at_last(&mut self.journal.facts(), transport, &self.executor);
        }
    }

    fn totals(&self, trace: u64) -> Totals {
        let facts = self.journal.facts();
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let ended = |end: fn(&CallResult) -> bool| {
            count(facts.calls.values().filter(|call| call.ended.as_ref().is_some_and(|(_, how)| end(how))).count())
        };
        Totals {
            runs: 1,
            opened: u64::from(facts.opened == Some(Ok(()))),
            calls: count(facts.calls.len()),
            done: ended(|end| matches!(end, CallResult::Done(_))),
            dropped: ended(|end| *end == CallResult::Dropped),
            cancellations: facts.counts.cancellations,
            questions: count(facts.questions.len()),
            tasks: count(facts.tasks.len()),
            cancelled_tasks: count(checks::tasks::cancelled(&facts)),
            rounds: facts.counts.rounds,
            changes: count(facts.listeners.values().map(|listener| listener.received).sum()),
            listened: count(facts.listeners.values().map(|listener| listener.began).sum()),
            kept: facts.cache.spared,
            resumed: facts.counts.resumed,
            links: facts.counts.links,
            messages: facts.counts.messages,
            steps: self.executor.steps(),
            trace,
        }
    }
}
