//! The clients: they do the steps of the script, read responses, answer requests of the server, and resume streams for what they
//! missed.

mod requests;
mod sessions;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use steadfast::Server;
use steadfast::transport::http::HttpService;

use super::journal::{Journal, Purpose};
use super::script::{Action, ClientBehavior, Hang, Pace, Script, Upload};
use super::wire::RequestParts;
use crate::executor::{Executor, TaskId};
use crate::script::changes::Change;
use crate::script::rng::Random;

/// Longer than anything takes to be answered.
const LONG: Duration = Duration::from_secs(40);

/// A client of 2026-07-28 answers questions of one call so often, and then lets it be.
const ROUNDS: usize = 4;

/// A client tries so often to get the rest of a stream.
const TRIES: usize = 20;

const PLAIN: ClientBehavior = ClientBehavior { upload: Upload::Whole, hang: Hang::Never, pace: Pace::Eager };

/// Everybody on this side of the wire.
pub(super) struct Clients {
    pub(super) executor: Executor,
    pub(super) journal: Arc<Journal>,
    pub(super) server: Server,
    pub(super) service: Mutex<Option<HttpService>>,
    /// The revision of each; `None` for 2026-07-28.
    pub(super) revisions: Vec<Option<&'static str>>,
    pub(super) silent: u64,
    pub(super) state: Mutex<State>,
}

/// What the clients know.
pub(super) struct State {
    random: Random,
    clients: Vec<Client>,
}

impl State {
    pub(super) fn new(random: Random, clients: usize) -> Self {
        Self { random, clients: (0..clients).map(|_| Client::default()).collect() }
    }
}

#[derive(Default)]
struct Client {
    /// Which of the journal's it is, and its id.
    session: Option<(usize, String)>,
    /// The ids of its requests, with the tasks that wait for their responses.
    requests: Vec<(u64, TaskId)>,
    open: Vec<(TaskId, Pace)>,
    /// The events of each stream of this session that it has seen.
    seen: BTreeMap<usize, Vec<String>>,
}

/// What came of a request of HTTP.
#[derive(Default)]
struct Outcome {
    status: u16,
    opened: Option<(usize, String)>,
}

/// A request of HTTP that is about to be made.
struct PreparedRequest {
    client: usize,
    session: Option<usize>,
    purpose: Purpose,
    asked: RequestParts,
    behavior: ClientBehavior,
    /// How many rounds its call has had.
    round: usize,
}

impl Clients {
    pub(super) async fn perform(self: Arc<Self>, script: Script) {
        for step in script.steps {
            if step.delay > Duration::ZERO {
                self.executor.sleep(step.delay).await;
            }
            if self.revisions.get(step.client).is_some_and(Option::is_some) {
                self.have_session(step.client, &step.action).await;
            }
            self.run_action(step.client, step.action).await;
        }
        if self.journal.facts().closing.is_none() {
            self.shut_down();
        }
        self.executor.sleep(LONG).await;
        drop(self.take_service());
        // Those who do not read do not notice that it is over. A subscription of a service that was dropped is open until its
        // client hangs up.
        let listens = self.journal.facts().dropped && script.changes;
        for client in 0..self.revisions.len() {
            self.hang_up(client, |pace| listens || pace == Pace::Stuck);
        }
    }

    async fn run_action(self: &Arc<Self>, client: usize, action: Action) {
        let modern = self.revisions.get(client).is_none_or(Option::is_none);
        match action {
            Action::Call(call, behavior) => self.call(client, &call, behavior),
            Action::Again { back } => self.again(client, back),
            Action::Ping(number, behavior) => {
                let method = if modern { "server/discover" } else { "ping" };
                self.request(client, number, None, method, json!({}), behavior, 0);
            }
            Action::Cancel { back } if modern => {
                let task = nth(&self.state().clients[client].requests, back).map(|(_, task)| task);
                if let Some(task) = task {
                    self.executor.cancel(task);
                }
            }
            Action::Cancel { back } => self.cancel(client, back),
            Action::HangUp { back } => {
                let task = nth(&self.state().clients[client].open, back).map(|(task, _)| task);
                if let Some(task) = task {
                    self.executor.cancel(task);
                }
            }
            Action::Abandon => self.hang_up(client, |_| true),
            Action::Listen(behavior) => {
                if let Some((session, asked)) = self.in_session(client, RequestParts::new("GET")) {
                    let purpose = Purpose::Listen;
                    self.send(PreparedRequest { client, session: Some(session), purpose, asked, behavior, round: 0 });
                }
            }
            Action::Resume { back, from, behavior } => self.resume(client, back, from, behavior),
            Action::Delete => {
                if let Some((session, asked)) = self.in_session(client, RequestParts::new("DELETE")) {
                    let purpose = Purpose::Delete;
                    self.run(PreparedRequest {
                        client,
                        session: Some(session),
                        purpose,
                        asked,
                        behavior: PLAIN,
                        round: 0,
                    })
                    .await;
                }
            }
            Action::Collect => self.collect(client).await,
            Action::StrayAnswer(id) => self.notify(client, &json!({ "jsonrpc": "2.0", "id": id, "result": {} })),
            Action::ChangeTools => self.change(Change::Tools),
            Action::Change(change) => self.change(change),
            Action::Subscribe { number, filter, behavior } => {
                let params = json!({ "notifications": filter.to_json() });
                self.journal.facts().subscriptions.open(number, filter, behavior.pace == Pace::Eager);
                self.request(client, number, None, "subscriptions/listen", params, behavior, 0);
            }
            Action::SubscribeTo { number, uri, on } => {
                let method = if on { "resources/subscribe" } else { "resources/unsubscribe" };
                self.request(client, number, None, method, json!({ "uri": uri }), PLAIN, 0);
            }
            Action::Wait(duration) => self.executor.sleep(duration).await,
            Action::ShutDown => self.shut_down(),
            Action::DropService => {
                self.journal.close("   service dropped");
                self.journal.facts().dropped = true;
                drop(self.take_service());
            }
        }
    }

    fn change(&self, change: Change) {
        self.journal.change(change);
        change.make(&self.server);
    }

    fn shut_down(&self) {
        self.journal.close("   shutdown");
        if let Some(service) = self.service() {
            service.shutdown();
        }
    }

    pub(super) fn service(&self) -> Option<HttpService> {
        self.service.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn take_service(&self) -> Option<HttpService> {
        self.service.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hang_up(&self, client: usize, which: impl Fn(Pace) -> bool) {
        let open = self.state().clients[client].open.clone();
        for (task, _) in open.into_iter().filter(|(_, pace)| which(*pace)) {
            self.executor.cancel(task);
        }
    }
}

fn nth<T: Copy>(from: &[T], back: usize) -> Option<T> {
    from.len().checked_sub(1 + back).and_then(|at| from.get(at)).copied()
}
