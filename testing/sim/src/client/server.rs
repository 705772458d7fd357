//! The server: it reads what the client says, and does to each call what the script has planned for it.

mod changes;
mod resources;
mod tasks;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use steadfast::{Revision, model::TASKS_EXTENSION};

use super::journal::{Journal, ResponseKind};
use super::script::{Action, Opening, Question, Script, ServerAction};
use crate::executor::Executor;
use crate::observation::json::Json;
use crate::observation::message::{Id, id_text};
use crate::script::rng::Random;
use changes::Subscription;
use tasks::Task;

/// How a server speaks and misbehaves, over whatever carries it.
pub(super) trait ServerOutput: Send + Sync {
    /// Sends a message; `last` if nothing follows it for its request. The receipt shows whether
    /// the client has read it; there is none if it never will.
    fn say(&self, message: &[u8], last: bool) -> Option<usize>;

    /// Says a message, and does not care.
    fn tell(&self, message: &[u8], last: bool) {
        let _ = self.say(message, last);
    }

    /// Says only a part of a message, and never the rest.
    fn tear(&self, message: &[u8]) -> Option<usize>;

    fn end_output(&self);

    /// Ends this response alone, without a word (HTTP).
    fn break_off(&self);

    fn stop_reading(&self);

    fn die(&self);

    /// Does not read for a while.
    fn pause(&self, duration: Duration);

    /// The connection that is spoken on.
    fn link(&self) -> usize;
}

/// One server.
pub(super) struct Server {
    executor: Executor,
    journal: Arc<Journal>,
    handshake: Option<Revision>,
    opening: Opening,
    /// The client takes tasks.
    tasks: bool,
    listenings: Vec<Action>,
    state: Mutex<State>,
}

struct State {
    random: Random,
    next: u64,
    tasks: BTreeMap<String, Task>,
    subscriptions: Vec<Subscription>,
    /// The last request of the server, while it may be cancelled.
    asked: Option<Id>,
    /// The connections on which it has declared its revision.
    greeted: BTreeSet<usize>,
}

/// A request that the server is busy with.
#[derive(Clone)]
pub(super) struct OpenRequest {
    id: Id,
    /// What it is called in the journal.
    key: Id,
    tag: u64,
    token: Option<Id>,
    /// How often the client has answered a request for input in place of a result.
    round: u64,
}

impl Server {
    pub(super) fn new(executor: Executor, journal: Arc<Journal>, script: &Script) -> Arc<Self> {
        let state = Mutex::new(State {
            random: Random::new(script.seed, 33),
            next: 0,
            tasks: BTreeMap::new(),
            subscriptions: Vec::new(),
            asked: None,
            greeted: BTreeSet::new(),
        });
        let (handshake, opening, tasks) = (script.handshake, script.opening, script.tasks);
        let listenings = script.steps.iter().map(|step| step.action.clone());
        let listenings = listenings.filter(|action| matches!(action, Action::Listen(_))).collect();
        Arc::new(Self { executor, journal, handshake, opening, tasks, listenings, state })
    }

    /// Takes a message of the client's.
    pub(super) fn take(self: &Arc<Self>, link: usize, message: &Json<'_>, output: &Arc<dyn ServerOutput>) {
        let Some(id) = id_text(&message["id"]) else { return };
        let params = &message["params"];
        match message["method"].as_str() {
            Some("server/discover") => self.open(id, self.handshake.is_none().then(discovered), output),
            Some("initialize") => self.open(id, self.handshake.map(initialized), output),
            Some("tools/call") => {
                let tag = params["arguments"]["tag"].as_u64().unwrap_or_default();
                let round = params["requestState"].as_str().and_then(|state| state.rsplit('.').next()?.parse().ok());
                let token = id_text(&params["_meta"]["progressToken"]);
                let key = self.journal.key(link, &id);
                self.serve(OpenRequest { id, key, tag, token, round: round.unwrap_or(0) }, output);
            }
            Some("resources/read") => self.read(link, id, params, output),
            Some("tasks/get") => self.get_task(link, &id, params, output),
            Some("tasks/update") => self.update_task(link, &id, params, output),
            Some("tasks/cancel") => self.cancel_task(link, &id, params, output),
            Some("subscriptions/listen") => self.listen(link, id, params, output),
            Some("resources/subscribe") => self.subscribe(link, id, params, output),
            Some("resources/unsubscribe") => self.unsubscribe(link, &id, params, output),
            Some(_) => output.tell(&refusal(&id, -32601), true),
            None => {}
        }
    }

    /// Answers what opens a connection, if the script has nothing else for it.
    fn open(self: &Arc<Self>, id: Id, result: Option<Value>, output: &Arc<dyn ServerOutput>) {
        let Some(result) = result else { return output.tell(&refusal(&id, -32601), true) };
        let answer = |result: &Value| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}").into_bytes();
        match self.opening {
            Opening::Plain => self.greet(&answer(&result), output),
            Opening::Slow(delay) => {
                let (server, output, answer) = (Arc::clone(self), Arc::clone(output), answer(&result));
                self.executor.spawn_harness_task(async move {
                    server.executor.sleep(delay).await;
                    server.greet(&answer, &output);
                });
            }
            Opening::Silent => {}
            Opening::Garbled => {
                self.say(ServerAction::Garbage(1), None, output);
                self.greet(&answer(&result), output);
            }
            Opening::Asks => {
                self.greet(&answer(&result), output);
                // The client itself answers it, without a handler and so at once.
                self.ask("ping", None, output);
            }
            Opening::TornLater if self.state().greeted.is_empty() => self.greet(&answer(&result), output),
            Opening::TornLater => drop(output.tear(&answer(&result))),
            Opening::WrongShape => output.tell(&answer(&json!(5)), true),
            Opening::Refuses => output.tell(&refusal(&id, -32022), true),
            Opening::Dies => output.die(),
        }
    }

    /// Says what it speaks.
    fn greet(&self, answer: &[u8], output: &Arc<dyn ServerOutput>) {
        output.tell(answer, true);
        self.state().greeted.insert(output.link());
    }

    fn serve(self: &Arc<Self>, busy: OpenRequest, output: &Arc<dyn ServerOutput>) {
        let Some(plan) = self.journal.facts().plans.get(&busy.tag).map(|call| call.plan.clone()) else { return };
        if busy.round == 0 {
            self.journal.executes(busy.tag);
        }
        let (server, output) = (Arc::clone(self), Arc::clone(output));
        self.executor.spawn_harness_task(async move {
            for say in plan {
                if let ServerAction::Wait(delay) = say {
                    server.executor.sleep(delay).await;
                } else {
                    server.say(say, Some(&busy), &output);
                }
            }
        });
    }

    /// Says or does one thing.
    pub(super) fn say(&self, say: ServerAction, busy: Option<&OpenRequest>, output: &Arc<dyn ServerOutput>) {
        match say {
            ServerAction::Wait(_) => {}
            ServerAction::Progress => {
                let Some((busy, token)) = busy.and_then(|busy| Some((busy, busy.token.clone()?))) else { return };
                let progress = busy.tag * 1_000 + self.number();
                self.journal.reports(busy.tag, progress);
                Self::report(&token, progress, output);
            }
            ServerAction::StrayProgress => Self::report(&Id::from("\"nobody's\""), 1, output),
            ServerAction::Garbage(which) => output.tell(garbage(which), false),
            ServerAction::StrayAnswer => {
                let id = 1_000_000 + self.number();
                output.tell(&result(&Id::from(id.to_string()), &json!({})), false);
            }
            ServerAction::TextAnswer => {
                let Some(busy) = busy else { return };
                output.tell(&result(&Id::from(format!("\"{}\"", busy.id)), &self.done(busy)), false);
            }
            ServerAction::Ask => self.ask("roots/list", busy, output),
            ServerAction::Withdraw => self.withdraw(busy, output),
            ServerAction::Torn => {
                if let Some(busy) = busy {
                    let receipt = output.tear(&result(&busy.id, &self.done(busy)));
                    self.journal.answered(&busy.key, receipt, ResponseKind::Torn);
                }
            }
            ServerAction::Die => output.die(),
            ServerAction::EndOutput => output.end_output(),
            ServerAction::StopReading => output.stop_reading(),
            ServerAction::Result
            | ServerAction::Error
            | ServerAction::WrongShape
            | ServerAction::Both
            | ServerAction::AskBack(..)
            | ServerAction::Task(_) => {
                if let Some(busy) = busy {
                    self.answer(say, busy, output);
                }
            }
        }
    }

    fn answer(&self, say: ServerAction, busy: &OpenRequest, output: &Arc<dyn ServerOutput>) {
        let modern = self.handshake.is_none();
        let (said, message) = match say {
            ServerAction::AskBack(question, rounds) if modern && busy.round < rounds => {
                let state = format!("s{}.{}", busy.tag, busy.round + 1);
                self.journal.asked_back(busy.tag, &busy.key, &state);
                let asked = json!({ "resultType": "input_required", "requestState": state,
                    "inputRequests": inquiry(question, "r") });
                (ResponseKind::AskBack, result(&busy.id, &asked))
            }
            ServerAction::Task(task_plan) if modern => {
                self.journal.prolonged(busy.tag);
                let said = if self.tasks { ResponseKind::Task } else { ResponseKind::Unreadable };
                (said, result(&busy.id, &self.begin_task(task_plan, busy)))
            }
            ServerAction::Error => (ResponseKind::Error, refusal(&busy.id, -32603)),
            ServerAction::WrongShape => (ResponseKind::Unreadable, result(&busy.id, &json!({ "content": 5 }))),
            ServerAction::Both => {
                let id = &busy.id;
                let text = format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}},\"error\":{{\"code\":1,\"message\":\"\"}}}}"
                );
                (ResponseKind::Unreadable, text.into_bytes())
            }
            _ => (ResponseKind::Result, result(&busy.id, &self.done(busy))),
        };
        let receipt = output.say(&message, true);
        self.journal.note("<-", busy.tag, format!("{said:?}").as_bytes());
        self.journal.answered(&busy.key, receipt, said);
    }

    fn done(&self, busy: &OpenRequest) -> Value {
        let content = json!([{ "type": "text", "text": format!("tag:{};", busy.tag) }]);
        match self.handshake {
            None => json!({ "resultType": "complete", "content": content }),
            Some(_) => json!({ "content": content }),
        }
    }

    fn report(token: &Id, progress: u64, output: &Arc<dyn ServerOutput>) {
        let params = format!("{{\"progressToken\":{token},\"progress\":{progress}}}");
        output.tell(&notification("notifications/progress", &params), false);
    }

    fn ask(&self, method: &str, busy: Option<&OpenRequest>, output: &Arc<dyn ServerOutput>) {
        let id = Id::from(format!("\"q{}\"", self.number()));
        let text = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\"}}");
        let receipt = output.say(text.as_bytes(), false);
        self.journal.note("asks", 0, id.as_bytes());
        let early = !self.state().greeted.contains(&output.link());
        self.journal.asked(&id, busy.map(|busy| busy.key.clone()), receipt, early);
        self.state().asked = receipt.is_some().then_some(id);
    }

    /// Takes the last question back.
    fn withdraw(&self, busy: Option<&OpenRequest>, output: &Arc<dyn ServerOutput>) {
        let Some(id) = self.state().asked.take().filter(|_| self.handshake.is_some()) else { return };
        let receipt = output.say(&notification("notifications/cancelled", &format!("{{\"requestId\":{id}}}")), false);
        self.journal.note("takes back", 0, id.as_bytes());
        self.journal.withdrawn(&id, busy.map(|busy| busy.key.clone()), receipt);
    }

    fn number(&self) -> u64 {
        let mut state = self.state();
        state.next += 1;
        state.next
    }

    /// A choice of the server's, of the kind that the script does not make.
    pub(super) fn draw<T>(&self, body: impl FnOnce(&mut Random) -> T) -> T {
        body(&mut self.state().random)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn discovered() -> Value {
    let offered = json!({ "tools": {}, "resources": { "subscribe": true }, "extensions": { TASKS_EXTENSION: {} } });
    json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": offered })
}

fn initialized(revision: Revision) -> Value {
    let server = json!({ "name": "simulated", "version": "1" });
    let offered = json!({ "tools": {}, "resources": { "subscribe": true } });
    json!({ "protocolVersion": revision.as_str(), "serverInfo": server, "capabilities": offered })
}

/// What a server asks, under a key.
fn inquiry(question: Question, key: &str) -> Value {
    let form = |message: &str| {
        json!({ "method": "elicitation/create", "params": { "mode": "form", "message": message,
            "requestedSchema": { "type": "object", "properties": {} } } })
    };
    let asked = match question {
        Question::Roots => json!({ "method": "roots/list" }),
        Question::Fails => form("fail"),
        Question::Hangs => form("hang"),
        Question::Unheard => {
            json!({ "method": "sampling/createMessage", "params": { "messages": [], "maxTokens": 1 } })
        }
        Question::Nothing => return json!({}),
    };
    json!({ key: asked })
}

fn notification(method: &str, params: &str) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}").into_bytes()
}

fn result(id: &Id, result: &Value) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}").into_bytes()
}

fn refusal(id: &Id, code: i64) -> Vec<u8> {
    let error = json!({ "code": code, "message": "no" });
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}").into_bytes()
}

fn garbage(which: u8) -> &'static [u8] {
    match which {
        0 => b"{",
        1 => b"\xff\xfe\x00",
        2 => b"null",
        3 => b"{\"jsonrpc\":\"2.0\",\"method\":5}",
        4 => b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":{}}}",
        5 => b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/nothing\"}",
        6 => b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}",
        _ => b"[]",
    }
}
