//! The server: it reads what the client says, and does to each call what the script has planned for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use steadfast::Revision;

use super::journal::{Journal, Said};
use super::script::{Opening, Say, Script};
use crate::executor::Executor;
use crate::message::{Id, id_text};
use crate::rng::Random;

/// How a server speaks and misbehaves, over whatever carries it.
pub(super) trait Voice: Send + Sync {
    /// Says a message; `last` if there is nothing behind it for the request that it is about. The receipt tells whether
    /// the client has read it; there is none if nobody ever will.
    fn say(&self, message: &[u8], last: bool) -> Option<usize>;

    /// Says a message, and does not care.
    fn tell(&self, message: &[u8], last: bool) {
        let _ = self.say(message, last);
    }

    /// Says only a part of a message, and never the rest.
    fn tear(&self, message: &[u8]) -> Option<usize>;

    fn end_output(&self);

    fn stop_reading(&self);

    fn die(&self);

    /// Does not read for a while.
    fn pause(&self, duration: Duration);
}

/// One server.
pub(super) struct Server {
    executor: Executor,
    journal: Arc<Journal>,
    handshake: Option<Revision>,
    opening: Opening,
    state: Mutex<State>,
}

struct State {
    random: Random,
    next: u64,
}

/// A request that the server is busy with.
#[derive(Clone)]
pub(super) struct Busy {
    id: Id,
    /// What it is called in the journal.
    key: Id,
    tag: u64,
    token: Option<Id>,
    /// The client has answered what was asked in place of a result.
    later: bool,
}

impl Server {
    pub(super) fn new(executor: Executor, journal: Arc<Journal>, script: &Script) -> Arc<Self> {
        let state = Mutex::new(State { random: Random::new(script.seed, 33), next: 0 });
        let (handshake, opening) = (script.handshake, script.opening);
        Arc::new(Self { executor, journal, handshake, opening, state })
    }

    /// Takes a message of the client's.
    pub(super) fn take(self: &Arc<Self>, link: usize, message: &Value, voice: &Arc<dyn Voice>) {
        let Some(id) = id_text(&message["id"]) else { return };
        let params = &message["params"];
        match message["method"].as_str() {
            Some("server/discover") => self.open(id, self.handshake.is_none().then(discovered), voice),
            Some("initialize") => self.open(id, self.handshake.map(initialized), voice),
            Some("tools/call") => {
                let tag = params["arguments"]["tag"].as_u64().unwrap_or_default();
                let later = params.get("requestState").is_some();
                let token = id_text(&params["_meta"]["progressToken"]);
                let key = self.journal.key(link, &id);
                self.serve(Busy { id, key, tag, token, later }, voice);
            }
            Some(_) => voice.tell(&refusal(&id, -32601), true),
            None => {}
        }
    }

    /// Answers what opens a connection, if the script has nothing else for it.
    fn open(self: &Arc<Self>, id: Id, result: Option<Value>, voice: &Arc<dyn Voice>) {
        let Some(result) = result else { return voice.tell(&refusal(&id, -32601), true) };
        let answer = |result: &Value| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}").into_bytes();
        match self.opening {
            Opening::Plain => voice.tell(&answer(&result), true),
            Opening::Slow(delay) => {
                let (server, voice, answer) = (Arc::clone(self), Arc::clone(voice), answer(&result));
                self.executor.spawn_scenery(async move {
                    server.executor.sleep(delay).await;
                    voice.tell(&answer, true);
                });
            }
            Opening::Silent => {}
            Opening::Garbled => {
                self.say(Say::Garbage(1), None, voice);
                voice.tell(&answer(&result), true);
            }
            Opening::WrongShape => voice.tell(&answer(&json!(5)), true),
            Opening::Refuses => voice.tell(&refusal(&id, -32022), true),
            Opening::Dies => voice.die(),
        }
    }

    fn serve(self: &Arc<Self>, busy: Busy, voice: &Arc<dyn Voice>) {
        let Some(plan) = self.journal.facts().plans.get(&busy.tag).map(|call| call.plan.clone()) else { return };
        if !busy.later {
            self.journal.executes(busy.tag);
        }
        let (server, voice) = (Arc::clone(self), Arc::clone(voice));
        self.executor.spawn_scenery(async move {
            for say in plan {
                if let Say::Wait(delay) = say {
                    server.executor.sleep(delay).await;
                } else {
                    server.say(say, Some(&busy), &voice);
                }
            }
        });
    }

    /// Says or does one thing.
    pub(super) fn say(&self, say: Say, busy: Option<&Busy>, voice: &Arc<dyn Voice>) {
        match say {
            Say::Wait(_) => {}
            Say::Progress => {
                let Some((busy, token)) = busy.and_then(|busy| Some((busy, busy.token.clone()?))) else { return };
                self.journal.prolonged(busy.tag);
                let progress = busy.tag * 1_000 + self.number();
                Self::notify(&token, progress, voice);
            }
            Say::StrayProgress => Self::notify(&Id::from("\"nobody's\""), 1, voice),
            Say::Garbage(which) => voice.tell(garbage(which), false),
            Say::StrayAnswer => {
                let id = 1_000_000 + self.number();
                voice.tell(&result(&Id::from(id.to_string()), &json!({})), false);
            }
            Say::TextAnswer => {
                let Some(busy) = busy else { return };
                voice.tell(&result(&Id::from(format!("\"{}\"", busy.id)), &self.done(busy)), false);
            }
            Say::Ask => self.ask(voice),
            Say::Torn => {
                if let Some(busy) = busy {
                    let receipt = voice.tear(&result(&busy.id, &self.done(busy)));
                    self.journal.answered(&busy.key, receipt, Said::Torn);
                }
            }
            Say::Die => voice.die(),
            Say::EndOutput => voice.end_output(),
            Say::StopReading => voice.stop_reading(),
            Say::Result | Say::Error | Say::WrongShape | Say::Both | Say::AskBack => {
                if let Some(busy) = busy {
                    self.answer(say, busy, voice);
                }
            }
        }
    }

    fn answer(&self, say: Say, busy: &Busy, voice: &Arc<dyn Voice>) {
        let asks = say == Say::AskBack && self.handshake.is_none() && !busy.later;
        let (said, message) = match say {
            Say::AskBack if asks => {
                self.journal.prolonged(busy.tag);
                let asked = json!({ "resultType": "input_required", "requestState": "s",
                    "inputRequests": { "r": { "method": "roots/list" } } });
                (Said::AskBack, result(&busy.id, &asked))
            }
            Say::Error => (Said::Error, refusal(&busy.id, -32603)),
            Say::WrongShape => (Said::Unreadable, result(&busy.id, &json!({ "content": 5 }))),
            Say::Both => {
                let id = &busy.id;
                let text = format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}},\"error\":{{\"code\":1,\"message\":\"\"}}}}"
                );
                (Said::Unreadable, text.into_bytes())
            }
            _ => (Said::Result, result(&busy.id, &self.done(busy))),
        };
        let receipt = voice.say(&message, true);
        self.journal.note("<-", busy.tag, format!("{said:?}").as_bytes());
        self.journal.answered(&busy.key, receipt, said);
    }

    fn done(&self, busy: &Busy) -> Value {
        let content = json!([{ "type": "text", "text": format!("tag:{};", busy.tag) }]);
        match self.handshake {
            None => json!({ "resultType": "complete", "content": content }),
            Some(_) => json!({ "content": content }),
        }
    }

    fn notify(token: &Id, progress: u64, voice: &Arc<dyn Voice>) {
        let params = format!("{{\"progressToken\":{token},\"progress\":{progress}}}");
        let text = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{params}}}");
        voice.tell(text.as_bytes(), false);
    }

    fn ask(&self, voice: &Arc<dyn Voice>) {
        let id = Id::from(format!("\"q{}\"", self.number()));
        let text = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"roots/list\"}}");
        let receipt = voice.say(text.as_bytes(), false);
        self.journal.note("asks", 0, id.as_bytes());
        self.journal.asked(&id, receipt);
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
    json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } })
}

fn initialized(revision: Revision) -> Value {
    let server = json!({ "name": "simulated", "version": "1" });
    json!({ "protocolVersion": revision.as_str(), "serverInfo": server, "capabilities": { "tools": {} } })
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
