//! Seeded simulation of the real shell: a server of the crate `steadfast` on the simulator's executor, spoken to over a
//! wire that delays, splits, merges and hangs up, by a scripted peer that sends calls, cancellations, duplicates and
//! garbage, and goes away in every order.
//!
//! Everything comes from the seed: `Script` is what will be done, and the executor draws in which order things run. The
//! checks see only the wire and the journal of the handlers.

mod bias;
mod changes;
mod checks;
mod handlers;
mod journal;
mod peer;
mod script;
mod subscriptions;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

use steadfast::{Serve, Server};

use crate::executor::Executor;
use crate::executor::link::Link;
use crate::executor::world::{self, World};
use crate::law::Violation;
use crate::observation::lifetimes::LifetimeKind;
use crate::observation::record::Record;
use crate::script::changes::with_changing_items;
use crate::script::rng::Random;
use crate::seed::Seed;
use crate::worlds::Shrunk;
use handlers::HandlerContext;
use journal::Journal;
use peer::Peer;
use script::Script;

/// What a run, or many, came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Runs.
    pub runs: u64,
    /// Requests that were sent.
    pub requests: u64,
    /// Answers that came.
    pub answers: u64,
    /// Cancellations that were sent.
    pub cancellations: u64,
    /// Handlers that began.
    pub handlers: u64,
    /// Calls that handlers made to the peer.
    pub calls: u64,
    /// Messages that the server wrote.
    pub messages: u64,
    /// Polls of tasks and runs of threads.
    pub steps: u64,
    /// Of everything that was seen, in order; of many runs, all of them together.
    pub trace: u64,
}

impl std::ops::AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.runs += other.runs;
        self.requests += other.requests;
        self.answers += other.answers;
        self.cancellations += other.cancellations;
        self.handlers += other.handlers;
        self.calls += other.calls;
        self.messages += other.messages;
        self.steps += other.steps;
        self.trace = self.trace.rotate_left(1) ^ other.trace;
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} runs of the shell, {} steps, {} requests, {} answers, {} cancellations, {} handlers, {} calls to the peer, {} messages, trace {:016x}",
            self.runs,
            self.steps,
            self.requests,
            self.answers,
            self.cancellations,
            self.handlers,
            self.calls,
            self.messages,
            self.trace
        )
    }
}

/// Runs the shell under a seed, and checks every law.
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
    link: Link,
}

impl World for Simulated {
    type Script = Script;
    type Totals = Totals;

    fn script(seed: Seed) -> Script {
        Script::of(seed)
    }

    fn new(script: &Script, kept: bool) -> Self {
        let executor = Executor::new(Random::new(script.seed, 11)).with_first_polls(Random::new(script.seed, 111));
        let (link, server_end) = Link::new(Random::new(script.seed, 12));
        let journal = Journal::new(executor.clone(), link.clone(), script, kept);
        let context = Arc::new(HandlerContext { executor: executor.clone(), journal: Arc::clone(&journal) });
        let builder = Server::builder("simulated", "1.0.0").tools(handlers::tools(&context));
        let server = if script.changes { with_changing_items(builder) } else { builder }.build();
        let shutdown = Signal::default();
        let serving = server
            .clone()
            .serve(server_end)
            .limits(script.limits.clone())
            .shutdown_when(shutdown.clone().wait())
            .runtime(Arc::new(executor.clone()));
        let observer = Arc::clone(&journal);
        let task = executor.spawn_task(async move {
            let ended = serving.run().await;
            observer.server_ended(&format!("{ended:?}"));
        });
        let (watched, wire, time) = (Arc::clone(&journal), link.clone(), executor.clone());
        executor.on_idle(move || {
            let (empty, written) = (wire.is_empty(), wire.total_written());
            let mut facts = watched.facts();
            facts.blocked = time.blocked_in_first_poll();
            checks::at_idle(&mut facts, time.now(), empty, written);
        });
        let (observer, wire) = (Arc::clone(&journal), link.clone());
        let peer = Peer { executor: executor.clone(), journal: observer, link: wire, server, shutdown, task };
        peer.start(script.clone());
        Self { executor, journal, link }
    }

    fn executor(&self) -> &Executor {
        &self.executor
    }

    fn with_record<T>(&self, body: impl FnOnce(&mut Record) -> T) -> T {
        body(&mut self.journal.facts().record)
    }

    fn at_last(&self) {
        checks::at_last(&mut self.journal.facts(), &self.executor, self.link.was_read_to_the_end());
    }

    fn totals(&self, trace: u64) -> Totals {
        let facts = self.journal.facts();
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let handlers = |what: &LifetimeKind| matches!(what, LifetimeKind::Handler | LifetimeKind::Thread);
        Totals {
            runs: 1,
            requests: count(facts.requests.values().map(|request| request.sent).sum()),
            answers: count(facts.answers),
            cancellations: count(facts.requests.values().map(|request| request.cancels).sum()),
            handlers: count(facts.lives.values().filter(|life| handlers(&life.what)).count()),
            calls: count(facts.calls_seen),
            messages: count(facts.frames),
            steps: self.executor.steps(),
            trace,
        }
    }
}

/// Something to wait for.
#[derive(Clone, Default)]
struct Signal(Arc<Mutex<(bool, Option<Waker>)>>);

impl Signal {
    fn set(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 = true;
        let waker = state.1.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    async fn wait(self) {
        std::future::poll_fn(|cx| {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if state.0 {
                return Poll::Ready(());
            }
            state.1 = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}
