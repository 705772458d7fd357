//! The peer: does the steps of the script, reads what the server writes, and answers what the server asks.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steadfast::Server;

use super::Signal;
use super::checks;
use super::journal::Journal;
use super::script::{Action, Call, Script};
use crate::executor::line_buffer::LineBuffer;
use crate::executor::link::Link;
use crate::executor::{Executor, TaskId};
use crate::observation::message::Id;
use crate::script::changes::Change;
use crate::script::rng::Random;

/// Longer than anything takes to be answered.
const LONG: Duration = Duration::from_secs(40);

#[derive(Clone)]
pub(super) struct Peer {
    pub(super) executor: Executor,
    pub(super) journal: Arc<Journal>,
    pub(super) link: Link,
    pub(super) server: Server,
    pub(super) shutdown: Signal,
    /// The server.
    pub(super) task: TaskId,
}

impl Peer {
    pub(super) fn start(self, script: Script) {
        let journal = Arc::clone(&self.journal);
        let carry = self.link.clone().carry(self.executor.clone(), move || journal.close("input ended", false));
        self.executor.spawn_harness_task(carry);
        let (executor, random) = (self.executor.clone(), Random::new(script.seed, 13));
        executor.spawn_harness_task(self.clone().read(random, script.silent, script.handshake.is_none()));
        executor.spawn_harness_task(self.perform(script));
    }

    async fn perform(self, script: Script) {
        let modern = script.handshake.is_none();
        if let Some(revision) = script.handshake {
            let client = json!({ "name": "peer", "version": "1" });
            let params = json!({ "protocolVersion": revision, "clientInfo": client, "capabilities": { "roots": {} } });
            self.send(&json!({ "jsonrpc": "2.0", "id": "open", "method": "initialize", "params": params }));
            self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        }
        for step in script.steps {
            if step.delay > Duration::ZERO {
                self.executor.sleep(step.delay).await;
            }
            self.run_action(step.action, modern).await;
        }
        self.link.end_input(false);
        self.executor.sleep(LONG).await;
        self.leave();
    }

    /// Hangs up both ways.
    fn leave(&self) {
        self.journal.close("cut", true);
        if self.link.cut() {
            self.journal.lost();
        }
    }

    async fn run_action(&self, action: Action, modern: bool) {
        match action {
            Action::Call(call) => self.call(&call, modern),
            Action::Cancel(id) => {
                let params = json!({ "requestId": value(&id) });
                self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
            }
            Action::Ask(id) => self.request(&id, if modern { "server/discover" } else { "ping" }, "", modern),
            Action::ListTools(id) => self.request(&id, "tools/list", "", modern),
            Action::Garbage(bytes) => self.send_bytes(&bytes, None, None),
            Action::StrayAnswer(id) => self.send(&json!({ "jsonrpc": "2.0", "id": value(&id), "result": {} })),
            Action::Pause(duration) => {
                let until = self.executor.now() + duration;
                let mut facts = self.journal.facts();
                facts.paused_until = facts.paused_until.max(until);
            }
            Action::ChangeTools => self.change(Change::Tools),
            Action::Change(change) => self.change(change),
            Action::Listen { id, filter } => {
                if !self.link.is_ended() {
                    self.journal.facts().subscriptions.listen(id.as_str().into(), filter.clone());
                }
                let params = format!("\"notifications\":{}", filter.to_json());
                self.request(&id, "subscriptions/listen", &params, modern);
            }
            Action::Subscribe { id, uri, on } => {
                if !self.link.is_ended() {
                    self.journal.facts().subscriptions.subscribe(id.as_str().into(), uri, on);
                }
                let method = if on { "resources/subscribe" } else { "resources/unsubscribe" };
                self.request(&id, method, &format!("\"uri\":{}", json!(uri)), modern);
            }
            Action::Settle => self.settle().await,
            Action::EndInput { torn } => self.link.end_input(torn),
            Action::StopReading => {
                self.journal.close("nobody reads", true);
                if self.link.stop_reading() {
                    self.journal.lost();
                }
            }
            Action::Cut => self.leave(),
            Action::ShutDown => {
                self.journal.facts().shut_down = true;
                self.journal.close("shutdown", false);
                self.shutdown.set();
            }
            Action::DropServer => self.drop_server(),
        }
    }

    /// Waits until everything that can be answered is.
    async fn settle(&self) {
        self.executor.sleep(LONG).await;
        let mut facts = self.journal.facts();
        if facts.closing.is_none() {
            checks::all_answered(&mut facts, "long after they were sent");
        }
    }

    fn change(&self, change: Change) {
        self.journal.change(change);
        change.make(&self.server);
    }

    fn drop_server(&self) {
        self.journal.close("server dropped", true);
        let mut facts = self.journal.facts();
        if facts.ended.is_none() {
            facts.server_dropped = true;
            facts.ended = Some(self.executor.now());
        }
        drop(facts);
        self.executor.cancel(self.task);
    }

    fn call(&self, call: &Call, modern: bool) {
        let params = format!("\"name\":\"{}\",\"arguments\":{{\"tag\":{}}}", call.kind.tool(), call.tag);
        let token = call.token.then(|| format!("\"t{}\"", call.tag));
        let mut bytes = request(&call.id, "tools/call", &params, token.as_deref(), modern).into_bytes();
        let Some((place, byte)) = call.corrupt else { return self.send_bytes(&bytes, Some(call.tag), None) };
        let place = place * bytes.len() / 1_000;
        if let Some(old) = bytes.get_mut(place) {
            *old = byte;
        }
        self.send_bytes(&bytes, None, Some(&call.id));
    }

    /// Sends a request with these members of `params`.
    fn request(&self, id: &str, method: &str, params: &str, modern: bool) {
        self.send_bytes(request(id, method, params, None, modern).as_bytes(), None, None);
    }

    fn send(&self, message: &Value) {
        self.send_bytes(message.to_string().as_bytes(), None, None);
    }

    fn send_bytes(&self, line: &[u8], tag: Option<u64>, doubtful: Option<&str>) {
        // Nothing can be sent after the end.
        if !self.link.is_ended() {
            self.journal.sent(line, tag, doubtful);
            self.link.send(line);
        }
    }

    /// Reads lines until there are no more.
    async fn read(self, mut random: Random, silent: u64, modern: bool) {
        let mut buffer = LineBuffer::default();
        loop {
            let pause = self.journal.facts().paused_until;
            let now = self.executor.now();
            if pause > now {
                self.executor.sleep(pause.since(now)).await;
                continue;
            }
            let Some(bytes) = std::future::poll_fn(|cx| self.link.poll_receive(cx)).await else { return };
            for line in buffer.push(&bytes) {
                for id in self.journal.received(&line) {
                    self.answer(&id, &mut random, if modern { 100 } else { silent });
                }
            }
        }
    }

    /// Answers a call of the server, perhaps: at once, later, with an error, or twice.
    fn answer(&self, id: &Id, random: &mut Random, silent: u64) {
        if random.chance(silent) {
            return;
        }
        let answer = if random.chance(80) {
            json!({ "jsonrpc": "2.0", "id": value(id), "result": { "roots": [] } })
        } else {
            json!({ "jsonrpc": "2.0", "id": value(id), "error": { "code": -32603, "message": "no" } })
        };
        let times = if random.chance(10) { 2 } else { 1 };
        let delay = if random.chance(50) { Duration::ZERO } else { random.delay(Duration::from_secs(1)) };
        let peer = self.clone();
        self.executor.spawn_harness_task(async move {
            if delay > Duration::ZERO {
                peer.executor.sleep(delay).await;
            }
            (0..times).for_each(|_| peer.send(&answer));
        });
    }
}

fn value(id: &str) -> Value {
    serde_json::from_str(id).unwrap_or(Value::Null)
}

/// What clients of 2026-07-28 add to `_meta`.
const MODERN: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"peer","version":"1"}"#;

/// A request with these members of `params`, as text: most of the messages of a run are requests.
fn request(id: &str, method: &str, params: &str, token: Option<&str>, modern: bool) -> String {
    let token = token.map(|token| format!("\"progressToken\":{token}"));
    let meta: Vec<&str> = token.as_deref().into_iter().chain(modern.then_some(MODERN)).collect();
    let meta = if meta.is_empty() { String::new() } else { format!("\"_meta\":{{{}}}", meta.join(",")) };
    let comma = if params.is_empty() || meta.is_empty() { "" } else { "," };
    let id = value(id);
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{{{params}{comma}{meta}}}}}")
}
