//! A client of one server, in one era: it writes requests, counts them, and waits for responses.
//!
//! It never reads by itself (the thread in `output` does) and judges only what holds in every check: each line is
//! JSON-RPC, no id is answered more often than it was asked, progress grows and ends with its answer.

pub(crate) mod expect;
pub(crate) mod message;
pub(crate) mod orphan;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::message::{Body, Id, Message};
use crate::era::Era;
use crate::failure::{Failure, Verdict, ensure, fail};
use crate::limits::{CHECK_TIMEOUT, ENDING_ACCEPTED};
use crate::process::launch::Launch;
use crate::process::server::{Exit, Server};
use crate::process::standard_error::crash_line;

/// The member of `_meta` that makes a request a stateless one.
pub(crate) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const INFO_KEY: &str = "io.modelcontextprotocol/clientInfo";
/// The member of `_meta` with what the client can do.
pub(crate) const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

/// Time for a handler that was taken in to be given a worker, on a machine that is busy.
const BEGINNING: Duration = Duration::from_millis(15);

pub(crate) struct Client {
    pub(crate) server: Server,
    pub(crate) era: Era,
    /// A tool panics in this check, so the word may stand on standard error.
    pub(crate) panics_expected: bool,
    next: u64,
    /// How often each id was sent by [`Client::send_request`] and its kin.
    asked: HashMap<Id, usize>,
    /// For each progress token the request that it belongs to.
    tokens: HashMap<Id, Id>,
}

impl Client {
    /// Starts a server and says nothing yet.
    pub(crate) fn start(launch: &Launch, era: Era) -> Verdict<Self> {
        // Far from the small numbers that checks use as ids of their own, and from those that a server counts with.
        Ok(Self {
            server: Server::start(launch)?,
            era,
            panics_expected: false,
            next: 100_000,
            asked: HashMap::new(),
            tokens: HashMap::new(),
        })
    }

    /// Opens the conversation as the era does it, and waits for the answer.
    pub(crate) fn open(&mut self) -> Verdict {
        let id = self.fresh_id();
        let line = self.opening_line(&id);
        self.send_request(&id, &line)?;
        let answer = self.answer(&id)?;
        let result = expect::result(&answer)?;
        if !self.era.is_stateless() {
            let agreed = result.get("protocolVersion").and_then(Value::as_str);
            ensure!(agreed == Some(self.era.revision()), "asked for {}, got {agreed:?}", self.era);
            self.send(initialized_line())?;
        }
        Ok(())
    }

    /// `initialize` or `server/discover`.
    pub(crate) fn opening_line(&self, id: &Id) -> String {
        if self.era.is_stateless() {
            return self.request_line(id, "server/discover", json!({}));
        }
        initialize_line(id, self.era.revision())
    }

    pub(crate) fn fresh_id(&mut self) -> Id {
        self.next += 1;
        Id::number(self.next)
    }

    // Lines.

    /// A request in the form of the era.
    pub(crate) fn request_line(&self, id: &Id, method: &str, params: Value) -> String {
        self.request_line_with(id, method, params, None)
    }

    fn request_line_with(&self, id: &Id, method: &str, mut params: Value, token: Option<&Id>) -> String {
        let mut meta = if self.era.is_stateless() { stateless_meta(self.era.revision()) } else { json!({}) };
        if let Some(token) = token {
            meta["progressToken"] = serde_json::from_str(token.as_json()).unwrap_or(Value::Null);
        }
        if meta.as_object().is_some_and(|meta| !meta.is_empty()) {
            params["_meta"] = meta;
        }
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n")
    }

    /// A call of a tool.
    pub(crate) fn call_line(&self, id: &Id, tool: &str, arguments: Value) -> String {
        self.request_line(id, "tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    // Sending.

    pub(crate) fn send(&self, bytes: impl AsRef<[u8]>) -> Verdict {
        self.server.write(bytes.as_ref())
    }

    /// Counts a request that the check writes itself.
    pub(crate) fn count(&mut self, id: &Id) {
        *self.asked.entry(id.clone()).or_default() += 1;
    }

    pub(crate) fn send_request(&mut self, id: &Id, line: &str) -> Verdict {
        self.count(id);
        self.send(line)
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Verdict<Id> {
        let id = self.fresh_id();
        self.call_as(&id, tool, arguments)?;
        Ok(id)
    }

    pub(crate) fn call_as(&mut self, id: &Id, tool: &str, arguments: Value) -> Verdict {
        let line = self.call_line(id, tool, arguments);
        self.send_request(id, &line)
    }

    /// A call with a progress token. Gives the line and the id; the token is a string made from the id.
    pub(crate) fn progress_call_line(&mut self, tool: &str, arguments: Value) -> (Id, Id, String) {
        let id = self.fresh_id();
        let token = token_of(&id);
        self.tokens.insert(token.clone(), id.clone());
        self.count(&id);
        let params = json!({ "name": tool, "arguments": arguments });
        let line = self.request_line_with(&id, "tools/call", params, Some(&token));
        (id, token, line)
    }

    pub(crate) fn cancel(&self, id: &Id) -> Verdict {
        self.send(cancel_line(id))
    }

    // Waiting.

    /// The first answer to an id.
    pub(crate) fn answer(&self, id: &Id) -> Verdict<Message> {
        self.answer_within(id, CHECK_TIMEOUT)
    }

    pub(crate) fn answer_within(&self, id: &Id, time: Duration) -> Verdict<Message> {
        self.server
            .output
            .transcript
            .wait(time, |seen| seen.answer(id).map(|(_, message)| message.clone()))
            .ok_or_else(|| Failure(format!("no answer to {id} within {time:?}")))
    }

    /// Where in the transcript the first answer to an id stands.
    pub(crate) fn answer_place(&self, id: &Id) -> Verdict<usize> {
        self.server
            .output
            .transcript
            .wait(CHECK_TIMEOUT, |seen| seen.answer(id).map(|(place, _)| place))
            .ok_or_else(|| Failure(format!("no answer to {id} within {CHECK_TIMEOUT:?}")))
    }

    /// Waits for a successful answer and gives its text.
    pub(crate) fn text(&self, id: &Id) -> Verdict<String> {
        expect::text(&self.answer(id)?, self.era).map_err(|failure| failure.at(format!("the answer to {id}")))
    }

    pub(crate) fn answer_count(&self, id: &Id) -> usize {
        self.server.output.transcript.state().answer_count(id)
    }

    /// How many lines came so far.
    pub(crate) fn place(&self) -> usize {
        self.server.output.transcript.state().messages.len()
    }

    /// The lines from `start` up to, not including, `end`.
    pub(crate) fn between(&self, start: usize, end: usize) -> Vec<Message> {
        self.server.output.transcript.state().messages.get(start..end).unwrap_or_default().to_vec()
    }

    /// The ids of the requests of that method that the server sent, once there are that many.
    pub(crate) fn requests_from_server(&self, method: &str, count: usize) -> Verdict<Vec<Id>> {
        let transcript = &self.server.output.transcript;
        transcript
            .wait(CHECK_TIMEOUT, |seen| {
                let ids: Vec<Id> = seen.messages.iter().filter_map(|message| request_id(message, method)).collect();
                (ids.len() >= count).then_some(ids)
            })
            .ok_or_else(|| Failure(format!("the server did not send {count} of {method}")))
    }

    // Steps that many checks take.

    /// An `echo` there and back. Once its answer is here, everything written before it was taken in. Gives the place of
    /// the answer in the transcript and the time that it took.
    pub(crate) fn round_trip(&mut self) -> Verdict<(usize, Duration)> {
        let word = format!("round trip {}", self.next);
        let start = Instant::now();
        let id = self.call("echo", json!({ "text": word }))?;
        let text = self.text(&id)?;
        ensure!(text == word, "echo of {word:?} gave {text:?}");
        Ok((self.answer_place(&id)?, start.elapsed()))
    }

    /// Waits until the calls made so far really run. That they were taken in does not say so: a handler may still wait
    /// for its turn on a worker, and one that never began has nothing to clean up.
    pub(crate) fn let_them_run(&mut self) -> Verdict {
        self.round_trip()?;
        std::thread::sleep(BEGINNING);
        self.round_trip().map(drop)
    }

    /// A round trip by `tools/list`, which needs no worker.
    pub(crate) fn fence_without_worker(&mut self) -> Verdict<(usize, Duration)> {
        let start = Instant::now();
        let id = self.fresh_id();
        let line = self.request_line(&id, "tools/list", json!({}));
        self.send_request(&id, &line)?;
        expect::result(&self.answer(&id)?)?;
        Ok((self.answer_place(&id)?, start.elapsed()))
    }

    /// After the round trip at `place` nothing about that request may have come.
    pub(crate) fn silent_since(&self, id: &Id, place: usize) -> Verdict {
        let seen = self.server.output.transcript.state();
        let answers = seen.answers.get(id).map(Vec::as_slice).unwrap_or_default();
        let late = answers.iter().find(|answer| **answer >= place);
        ensure!(late.is_none(), "{id} was answered on line {late:?}, after the round trip on line {place}");
        let token = token_of(id);
        if self.tokens.contains_key(&token) {
            let lines = seen.messages.iter().skip(place);
            let late = lines.filter(|line| line.progress.as_ref().is_some_and(|(its, _)| *its == token)).count();
            ensure!(late == 0, "{late} times progress of {id} after line {place}");
        }
        Ok(())
    }

    // Endings.

    /// Closes the input; the server has to end with code 0, on time, without a word that looks like a crash.
    pub(crate) fn finish(&mut self) -> Verdict<Exit> {
        self.server.close_input();
        self.ended(ENDING_ACCEPTED)
    }

    /// The server has to end by itself with code 0, on time, without a word that looks like a crash.
    pub(crate) fn ended(&mut self, time: Duration) -> Verdict<Exit> {
        let ending = self.ended_somehow(time)?;
        ensure!(ending.status.code() == Some(0), "ended with {} instead of exit code 0", ending.status);
        Ok(ending)
    }

    /// As [`Client::ended`], with any exit code but that of a panic, and no signal.
    pub(crate) fn ended_somehow(&mut self, time: Duration) -> Verdict<Exit> {
        let ending = self.server.wait(time)?;
        if self.server.output.is_reading() {
            self.server.output.wait_for_end(CHECK_TIMEOUT)?;
        }
        self.server.errors.finish();
        if let Some(line) = crash_line(&self.server.errors.text()).filter(|_| !self.panics_expected) {
            fail!("standard error looks like a crash: {line}");
        }
        match ending.status.code() {
            None => fail!("ended by {}", ending.status),
            Some(101 | 134) => fail!("ended with {}, as a panic does", ending.status),
            Some(_) => {}
        }
        self.judge_transcript()?;
        Ok(ending)
    }

    /// What holds in every check.
    pub(crate) fn judge_transcript(&self) -> Verdict {
        let seen = self.server.output.transcript.state();
        for (line, message) in seen.messages.iter().enumerate() {
            if let Body::Garbage(why) = &message.body {
                fail!("line {line} of standard output is not protocol ({why}): {}", message.opening);
            }
        }
        for (id, places) in &seen.answers {
            let asked = self.asked.get(id).copied().unwrap_or(1);
            ensure!(places.len() <= asked, "{id} was asked {asked} times and answered on lines {places:?}");
        }
        let mut last: HashMap<&Id, f64> = HashMap::new();
        for (line, message) in seen.messages.iter().enumerate() {
            let Some((token, value)) = &message.progress else {
                continue;
            };
            let Some(request) = self.tokens.get(token) else { fail!("progress on line {line} for no token of ours") };
            let ended = seen.answer(request).is_some_and(|(place, _)| place < line);
            ensure!(!ended, "progress on line {line} after the answer to {request}");
            let before = last.insert(token, *value);
            ensure!(before.is_none_or(|before| before < *value), "progress on line {line}: {before:?}, then {value}");
        }
        Ok(())
    }
}

/// The progress token of a request.
fn token_of(id: &Id) -> Id {
    Id::string(&format!("token-{id}"))
}

fn request_id(message: &Message, wanted: &str) -> Option<Id> {
    match (&message.id, &message.body) {
        (crate::client::message::Identity::Of(id), Body::Request { method }) if method == wanted => Some(id.clone()),
        _ => None,
    }
}

pub(crate) fn initialize_line(id: &Id, revision: &str) -> String {
    let params = json!({
        "protocolVersion": revision,
        "capabilities": { "roots": { "listChanged": true } },
        "clientInfo": { "name": "faults", "version": "1" },
    });
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"initialize\",\"params\":{params}}}\n")
}

pub(crate) fn initialized_line() -> String {
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n".to_owned()
}

pub(crate) fn cancel_line(id: &Id) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{id}}}}}\n")
}

/// What a stateless request carries.
pub(crate) fn stateless_meta(revision: &str) -> Value {
    json!({
        VERSION_KEY: revision,
        INFO_KEY: { "name": "faults", "version": "1" },
        CAPABILITIES_KEY: { "roots": {} },
    })
}
