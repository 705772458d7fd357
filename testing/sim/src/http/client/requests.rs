//! Requests of the clients, from the request to the end of the response.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steadfast_proto::frame::sse::{SseDecoder, SseDecoderOutput};
use tower_service::Service;

use super::{Clients, Outcome, PLAIN, PreparedRequest, ROUNDS, nth};
use crate::executor::TaskId;
use crate::http::journal::Purpose;
use crate::http::script::{Call, ClientBehavior, Hang, Upload};
use crate::http::wire::{ArrivalObserver, RequestParts, ResponseReader};
use crate::observation::json::Json;
use crate::script::rng::Random;

/// What clients of 2026-07-28 add to `_meta`.
const MODERN: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"client","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"roots":{},"sampling":{},"elicitation":{"form":{}}}"#;

/// A request, with these members of `_meta` after its parameters.
fn request_text(number: u64, method: &str, params: &Value, meta: &[String]) -> String {
    let params = params.to_string();
    let members = params.strip_prefix('{').and_then(|params| params.strip_suffix('}')).unwrap_or_default();
    let meta = if meta.is_empty() { String::new() } else { format!("\"_meta\":{{{}}}", meta.join(",")) };
    let comma = if members.is_empty() || meta.is_empty() { "" } else { "," };
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{number},\"method\":\"{method}\",\"params\":{{{members}{comma}{meta}}}}}")
}

/// Requests.
impl Clients {
    pub(super) fn call(self: &Arc<Self>, client: usize, call: &Call, behavior: ClientBehavior) {
        let params = json!({ "name": call.kind.tool(), "arguments": { "tag": call.tag } });
        self.request(client, call.tag, Some(call), "tools/call", params, behavior, 0);
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn request(
        self: &Arc<Self>,
        client: usize,
        number: u64,
        call: Option<&Call>,
        method: &str,
        params: Value,
        behavior: ClientBehavior,
        round: usize,
    ) {
        let mut meta = Vec::new();
        if call.is_some_and(|call| call.token) {
            meta.push(format!("\"progressToken\":\"t{number}\""));
        }
        let modern = self.revisions.get(client).is_none_or(Option::is_none);
        if modern {
            meta.push(MODERN.to_owned());
            if call.is_some_and(|call| call.logs) {
                meta.push("\"io.modelcontextprotocol/logLevel\":\"debug\"".to_owned());
            }
        }
        let name = params["name"].as_str().map(str::to_owned);
        let mut asked = RequestParts::post(request_text(number, method, &params, &meta));
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
    pub(super) fn again(self: &Arc<Self>, client: usize, back: usize) {
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
    pub(super) fn send(self: &Arc<Self>, request: PreparedRequest) -> Option<TaskId> {
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
    pub(super) async fn run(self: &Arc<Self>, request: PreparedRequest) -> Outcome {
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
                let mut input = &*piece;
                while let Some(decoded) = decoder.next(&mut input) {
                    let SseDecoderOutput::Message(message) = decoded else { continue };
                    self.hear(client, session, message.id.as_deref(), &message.data, round);
                }
            } else {
                body.extend_from_slice(&piece);
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
        let Some(message) = Json::read(data) else { return };
        if let (Some(method), Some(_)) = (message["method"].as_str(), message.get("id")) {
            self.answer(client, method, &message["id"]);
        } else if message["result"]["resultType"].as_str() == Some("input_required") && round < ROUNDS {
            self.answer_in_next_round(client, &message, round + 1);
        }
    }

    fn place(&self, session: Option<usize>, id: &str) -> Option<(usize, usize)> {
        self.journal.facts().sessions.get(session?)?.places.get(id).copied()
    }

    /// Answers a question, perhaps.
    fn answer(self: &Arc<Self>, client: usize, method: &str, id: &Json<'_>) {
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
    fn answer_in_next_round(self: &Arc<Self>, client: usize, message: &Json<'_>, round: usize) {
        let tag = message["id"].as_u64().and_then(|number| {
            let facts = self.journal.facts();
            facts.requests.get(&number).and_then(|request| request.tag)
        });
        let Some(call) = tag.and_then(|tag| self.journal.call(tag)) else { return };
        if self.state().random.chance(self.silent) {
            return;
        }
        let questions = message["result"]["inputRequests"].as_object().unwrap_or_default();
        let answers: serde_json::Map<String, Value> = questions
            .iter()
            .map(|(key, question)| (key.to_string(), self.reply(question["method"].as_str().unwrap_or_default())))
            .collect();
        let params = json!({
            "name": call.kind.tool(), "arguments": { "tag": call.tag },
            "inputResponses": answers, "requestState": message["result"]["requestState"],
        });
        let number = 10_000_000 + call.tag * 10 + u64::try_from(round).unwrap_or(0);
        self.request(client, number, Some(&call), "tools/call", params, PLAIN, round);
    }
}
