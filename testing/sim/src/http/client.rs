//! The clients: they do the steps of the script, read responses, answer requests of the server, and resume streams for what they
//! missed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use steadfast::Server;
use steadfast::transport::http::HttpService;
use steadfast_proto::frame::sse::{SseDecoder, SseFrame};
use tower_service::Service;

use super::journal::{Journal, Purpose};
use super::script::{Action, Call, ClientBehavior, Hang, Pace, ResumeFrom, Script, Upload};
use super::wire::{ArrivalObserver, RequestParts, ResponseReader};
use crate::executor::{Executor, TaskId};
use crate::law::Law;
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
            service.shut_down();
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

/// Sessions.
impl Clients {
    /// Opens a session if there is none, and the action needs one.
    async fn have_session(self: &Arc<Self>, client: usize, action: &Action) {
        let needed = !matches!(
            action,
            Action::Wait(_)
                | Action::ShutDown
                | Action::DropService
                | Action::ChangeTools
                | Action::Change(_)
                | Action::Abandon
        );
        if !needed || self.state().clients[client].session.is_some() {
            return;
        }
        let Some(revision) = self.revisions.get(client).copied().flatten() else { return };
        let capabilities = json!({ "roots": {}, "sampling": {}, "elicitation": {} });
        let info = json!({ "name": "client", "version": "1" });
        let params = json!({ "protocolVersion": revision, "clientInfo": info, "capabilities": capabilities });
        let message = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let hang = match self.state().random.below(20) {
            0 => Hang::Polls(1),
            1 => Hang::Bytes(10),
            _ => Hang::Never,
        };
        let upload = if self.state().random.chance(20) { Upload::Pieces } else { Upload::Whole };
        let behavior = ClientBehavior { upload, hang, ..PLAIN };
        let asked = RequestParts::post(&message);
        let outcome = self
            .run(PreparedRequest { client, session: None, purpose: Purpose::Open, asked, behavior, round: 0 })
            .await;
        let Some(session) = outcome.opened else { return };
        let mut state = self.state();
        state.clients[client].session = Some(session);
        state.clients[client].seen.clear();
        drop(state);
        self.notify(client, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    }

    /// A request in the session of the client, if it has one.
    fn in_session(&self, client: usize, asked: RequestParts) -> Option<(usize, RequestParts)> {
        let (number, id) = self.state().clients[client].session.clone()?;
        Some((number, asked.with("mcp-session-id", id)))
    }

    fn notify(self: &Arc<Self>, client: usize, message: &Value) {
        if let Some((session, asked)) = self.in_session(client, RequestParts::post(message)) {
            let purpose = Purpose::Notification;
            self.send(PreparedRequest { client, session: Some(session), purpose, asked, behavior: PLAIN, round: 0 });
        }
    }

    fn cancel(self: &Arc<Self>, client: usize, back: usize) {
        let Some((number, _)) = nth(&self.state().clients[client].requests, back) else { return };
        let params = json!({ "requestId": number });
        let message = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
        let Some((session, asked)) = self.in_session(client, RequestParts::post(&message)) else { return };
        let mut facts = self.journal.facts();
        let known = facts.requests.get_mut(&number).filter(|request| request.session == Some(session));
        let Some(known) = known else { return };
        known.cancels += 1;
        drop(facts);
        let purpose = Purpose::Cancel(number);
        self.send(PreparedRequest { client, session: Some(session), purpose, asked, behavior: PLAIN, round: 0 });
    }

    fn resume(self: &Arc<Self>, client: usize, back: usize, from: ResumeFrom, behavior: ClientBehavior) {
        let state = self.state();
        let streams: Vec<&Vec<String>> = state.clients[client].seen.values().collect();
        let seen = streams.len().checked_sub(1 + back).and_then(|at| streams.get(at)).or(streams.first());
        let seen = seen.map(|seen| seen.as_slice()).unwrap_or_default();
        let id = match from {
            ResumeFrom::Last => seen.last().cloned(),
            ResumeFrom::Earlier(back) => seen.len().checked_sub(1 + back).and_then(|at| seen.get(at)).cloned(),
            ResumeFrom::Unknown(id) => Some(id.to_owned()),
            ResumeFrom::Other => {
                let others = state.clients.iter().enumerate().filter(|(other, _)| *other != client);
                others.flat_map(|(_, other)| other.seen.values().flatten()).next_back().cloned()
            }
        };
        drop(state);
        if let Some(id) = id
            && let Some(request) = self.resumption(client, &id, behavior)
        {
            self.send(request);
        }
    }

    fn resumption(&self, client: usize, id: &str, behavior: ClientBehavior) -> Option<PreparedRequest> {
        let (session, asked) = self.in_session(client, RequestParts::new("GET").with("last-event-id", id))?;
        let purpose = Purpose::Resume(id.to_owned());
        Some(PreparedRequest { client, session: Some(session), purpose, asked, behavior, round: 0 })
    }

    /// Comes back for every stream until all of it is there, and then once more.
    async fn collect(self: &Arc<Self>, client: usize) {
        let Some((session, _)) = self.state().clients[client].session.clone() else { return };
        let streams: Vec<usize> = self.state().clients[client].seen.keys().copied().filter(|it| *it > 0).collect();
        for stream in streams {
            for _ in 0..TRIES {
                let last = self.state().clients[client].seen.get(&stream).and_then(|seen| seen.last().cloned());
                let Some(request) = last.and_then(|last| self.resumption(client, &last, PLAIN)) else { return };
                if self.run(request).await.status != 200 {
                    return;
                }
                if self.has_all(client, session, stream) {
                    break;
                }
            }
            self.check_all(client, session, stream);
            let first = self.state().clients[client].seen.get(&stream).and_then(|seen| seen.first().cloned());
            let Some(request) = first.and_then(|first| self.resumption(client, &first, PLAIN)) else { return };
            if self.run(request).await.status != 200 {
                return;
            }
        }
    }

    /// Whether the answer is among what the client has seen of a stream.
    fn has_all(&self, client: usize, session: usize, stream: usize) -> bool {
        let state = self.state();
        let facts = self.journal.facts();
        let Some(given) = facts.sessions.get(session).and_then(|session| session.streams.get(stream)) else {
            return false;
        };
        let last = state.clients[client].seen.get(&stream).and_then(|seen| seen.last());
        given.answered && last == given.events.last().map(|(id, _)| id)
    }

    /// A client that came back often enough has every event once and in order, and the answer (L2, L9).
    fn check_all(&self, client: usize, session: usize, stream: usize) {
        let state = self.state();
        let mut facts = self.journal.facts();
        let Some(known) = facts.sessions.get(session) else { return };
        let ended = facts.closing.is_some() || facts.forgetful || known.deleted.is_some() || known.may_be_gone;
        let Some(given) = known.streams.get(stream).filter(|_| !ended) else { return };
        let request = given.request.and_then(|request| facts.requests.get(&request));
        let cancelled = request.is_none_or(|request| request.cancels > 0);
        let seen = state.clients[client].seen.get(&stream).map(Vec::as_slice).unwrap_or_default();
        // All but those before the first that it saw: it may have come in with an id of another session.
        let before = given.events.len().saturating_sub(seen.len());
        let same = given.events.iter().skip(before).map(|(id, _)| id).eq(seen);
        if !given.answered && !cancelled {
            let what = format!("the answer of {:?} cannot be had however often it is asked for", given.request);
            facts.broken(Law::Answer, what);
        } else if !same {
            let what = format!("a client that came back for everything has {seen:?} of the stream {stream}");
            facts.broken(Law::Order, what);
        }
    }
}

/// Requests.
impl Clients {
    fn call(self: &Arc<Self>, client: usize, call: &Call, behavior: ClientBehavior) {
        let params = json!({ "name": call.kind.tool(), "arguments": { "tag": call.tag } });
        self.request(client, call.tag, Some(call), "tools/call", params, behavior, 0);
    }

    #[allow(clippy::too_many_arguments)]
    fn request(
        self: &Arc<Self>,
        client: usize,
        number: u64,
        call: Option<&Call>,
        method: &str,
        mut params: Value,
        behavior: ClientBehavior,
        round: usize,
    ) {
        if call.is_some_and(|call| call.token) {
            params["_meta"]["progressToken"] = format!("t{number}").into();
        }
        let modern = self.revisions.get(client).is_none_or(Option::is_none);
        if modern {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
            params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({ "name": "client", "version": "1" });
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
                json!({ "roots": {}, "sampling": {}, "elicitation": { "form": {} } });
            if call.is_some_and(|call| call.logs) {
                params["_meta"]["io.modelcontextprotocol/logLevel"] = "debug".into();
            }
        }
        let name = params["name"].as_str().map(str::to_owned);
        let message = json!({ "jsonrpc": "2.0", "id": number, "method": method, "params": params });
        let mut asked = RequestParts::post(&message);
        let mut session = None;
        if modern {
            asked = asked.with("mcp-protocol-version", "2026-07-28").with("mcp-method", method);
            asked = name.into_iter().fold(asked, |asked, name| asked.with("mcp-name", name));
        } else {
            let Some((number, in_session)) = self.in_session(client, asked) else { return };
            (session, asked) = (Some(number), in_session);
        }
        let torn = matches!(behavior.upload, Upload::Stalls | Upload::Breaks);
        if self.service().is_none() {
            return;
        }
        self.journal.sent(number, session, call.map(|call| call.tag), torn);
        let purpose = Purpose::Request(number, false);
        let task = self.send(PreparedRequest { client, session, purpose, asked, behavior, round });
        self.state().clients[client].requests.extend(task.map(|task| (number, task)));
    }

    /// Sends a request once more.
    fn again(self: &Arc<Self>, client: usize, back: usize) {
        let Some((number, _)) = nth(&self.state().clients[client].requests, back) else { return };
        let Some(call) = self.journal.call(number) else { return };
        let params = json!({ "name": call.kind.tool(), "arguments": { "tag": call.tag } });
        let message = json!({ "jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params });
        let Some((session, asked)) = self.in_session(client, RequestParts::post(&message)) else { return };
        let known = self.journal.facts().requests.get(&number).and_then(|request| request.session);
        if known != Some(session) || self.service().is_none() {
            return;
        }
        self.journal.sent(number, Some(session), Some(call.tag), false);
        let purpose = Purpose::Request(number, true);
        self.send(PreparedRequest { client, session: Some(session), purpose, asked, behavior: PLAIN, round: 0 });
    }

    /// Sends a request beside everything else.
    fn send(self: &Arc<Self>, request: PreparedRequest) -> Option<TaskId> {
        self.service()?;
        let (client, pace) = (request.client, request.behavior.pace);
        let clients = Arc::clone(self);
        let task = self.executor.spawn_harness_task(async move {
            clients.run(request).await;
        });
        self.state().clients[client].open.push((task, pace));
        Some(task)
    }

    /// Sends a request, until it is done or its client hangs up.
    async fn run(self: &Arc<Self>, request: PreparedRequest) -> Outcome {
        let hang = request.behavior.hang;
        let mut exchange = Box::pin(self.exchange(request));
        let mut late = match hang {
            Hang::After(duration) => Some(Box::pin(self.executor.sleep(duration))),
            _ => None,
        };
        let mut polls = 0;
        std::future::poll_fn(move |cx| {
            let gone = matches!(hang, Hang::Polls(most) if polls >= most)
                || late.as_mut().is_some_and(|late| late.as_mut().poll(cx).is_ready());
            if gone {
                return std::task::Poll::Ready(Outcome::default());
            }
            polls += 1;
            exchange.as_mut().poll(cx)
        })
        .await
    }

    async fn exchange(self: &Arc<Self>, request: PreparedRequest) -> Outcome {
        let PreparedRequest { client, session, purpose, asked, behavior, round } = request;
        let Some(mut service) = self.service() else { return Outcome::default() };
        let open = self.journal.begin_exchange(session, purpose.clone(), &asked.body);
        let observer = || ArrivalObserver {
            executor: self.executor.clone(),
            journal: Arc::clone(&self.journal),
            exchange: open.number,
        };
        let mut random = {
            let mut state = self.state();
            Random::new(state.random.next(), 0)
        };
        let response = service.call(asked.begin(behavior, &mut random, observer()));
        drop(service);
        let response = response.await.unwrap_or_else(|never| match never {});
        let mut arriving = ResponseReader::new(response, behavior, random, observer());
        let status = arriving.status;
        let id = arriving.header("mcp-session-id").map(str::to_owned);
        let revision = self.revisions.get(client).copied().flatten();
        let opened = revision.filter(|_| purpose == Purpose::Open && id.is_some());
        let new = self.journal.responded(open.number, status, arriving.is_events(), opened);
        let mut outcome = Outcome { status, opened: None };
        self.told_of_status(client, session, &purpose, status);
        let events = arriving.is_events();
        let mut decoder = SseDecoder::new(1 << 20);
        let (mut body, mut total) = (Vec::new(), 0);
        while let Some(mut piece) = arriving.piece().await {
            if let Hang::Bytes(most) = behavior.hang {
                piece.truncate(most.saturating_sub(total));
            }
            total += piece.len();
            if events {
                let mut input = piece.as_slice();
                while let Some(decoded) = decoder.next(&mut input) {
                    let SseFrame::Message(message) = decoded else { continue };
                    self.hear(client, session, message.id.as_deref(), &message.data, round);
                }
            } else {
                body.extend(piece);
            }
            if matches!(behavior.hang, Hang::Bytes(most) if total >= most) {
                return Outcome::default();
            }
        }
        if !events {
            self.hear(client, session, None, &body, round);
        }
        outcome.opened = new.zip(id);
        outcome
    }

    /// What a client makes of a status.
    fn told_of_status(&self, client: usize, session: Option<usize>, purpose: &Purpose, status: u16) {
        if let Purpose::Cancel(number) = purpose
            && status == 202
        {
            self.journal.cancelled(*number);
        }
        let mut state = self.state();
        let known = &mut state.clients[client].session;
        if status == 404 && session.is_some() && known.as_ref().map(|(number, _)| *number) == session {
            *known = None;
        }
    }

    /// A message has come, whole.
    fn hear(self: &Arc<Self>, client: usize, session: Option<usize>, id: Option<&str>, data: &[u8], round: usize) {
        let current = self.state().clients[client].session.as_ref().map(|(number, _)| *number);
        if let Some(id) = id
            && session == current
            && let Some((stream, _)) = self.place(session, id)
        {
            let mut state = self.state();
            let seen = state.clients[client].seen.entry(stream).or_default();
            if !seen.iter().any(|known| known == id) {
                seen.push(id.to_owned());
            }
        }
        let Ok(message) = serde_json::from_slice::<Value>(data) else { return };
        if let (Some(method), Some(_)) = (message["method"].as_str(), message.get("id")) {
            self.answer(client, method, &message["id"]);
        } else if message["result"]["resultType"] == "input_required" && round < ROUNDS {
            self.answer_in_next_round(client, &message, round + 1);
        }
    }

    fn place(&self, session: Option<usize>, id: &str) -> Option<(usize, usize)> {
        self.journal.facts().sessions.get(session?)?.places.get(id).copied()
    }

    /// Answers a question, perhaps.
    fn answer(self: &Arc<Self>, client: usize, method: &str, id: &Value) {
        if self.state().random.chance(self.silent) {
            return;
        }
        let answer = json!({ "jsonrpc": "2.0", "id": id, "result": self.reply(method) });
        let delay = self.state().random.delay(Duration::from_secs(1));
        let clients = Arc::clone(self);
        self.executor.spawn_harness_task(async move {
            clients.executor.sleep(delay).await;
            clients.notify(client, &answer);
        });
    }

    fn reply(&self, method: &str) -> Value {
        match method {
            "elicitation/create" if self.state().random.chance(50) => json!({ "action": "decline" }),
            "elicitation/create" => json!({ "action": "accept", "content": { "value": true } }),
            "sampling/createMessage" => {
                json!({ "role": "assistant", "content": { "type": "text", "text": "so" }, "model": "m" })
            }
            "roots/list" => json!({ "roots": [] }),
            _ => json!({}),
        }
    }

    /// A call of 2026-07-28 has asked something: it is made again with the answers, under another id.
    fn answer_in_next_round(self: &Arc<Self>, client: usize, message: &Value, round: usize) {
        let tag = message["id"].as_u64().and_then(|number| {
            let facts = self.journal.facts();
            facts.requests.get(&number).and_then(|request| request.tag)
        });
        let Some(call) = tag.and_then(|tag| self.journal.call(tag)) else { return };
        if self.state().random.chance(self.silent) {
            return;
        }
        let questions = message["result"]["inputRequests"].as_object().cloned().unwrap_or_default();
        let answers: serde_json::Map<String, Value> = questions
            .into_iter()
            .map(|(key, question)| (key, self.reply(question["method"].as_str().unwrap_or_default())))
            .collect();
        let params = json!({
            "name": call.kind.tool(), "arguments": { "tag": call.tag },
            "inputResponses": answers, "requestState": message["result"]["requestState"],
        });
        let number = 10_000_000 + call.tag * 10 + u64::try_from(round).unwrap_or(0);
        self.request(client, number, Some(&call), "tools/call", params, PLAIN, round);
    }
}

fn nth<T: Copy>(from: &[T], back: usize) -> Option<T> {
    from.len().checked_sub(1 + back).and_then(|at| from.get(at)).copied()
}
