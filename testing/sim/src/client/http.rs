//! The server at a URL: each message of the client is a request of its own, and its response is cut, withheld, refused
//! or forgotten.

mod output;

mod body;
mod origin;
mod streams;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{HeaderMap, Method, Response, StatusCode};
use steadfast::transport::http::{
    Authorize, HttpTarget, OutgoingHttpRequest, RequestAuthorization, RequestAuthorizationFuture, TransportFetch,
    TransportFetchError, TransportFetchFuture, TransportFetchRequest, TransportFetchResponse,
};

use super::checks::LEAVING_HTTP;
use super::journal::{Fault, Journal, ResponseKind};
use super::script::{ResponseMode, Script};
use super::server::{Server, ServerOutput};
use crate::executor::Executor;
use crate::law::Law;
use crate::observation::json::Json;
use crate::observation::message::{Id, id_text};
use crate::script::rng::Random;
use body::{Body, RequestGuard};
use origin::Origin;
use output::{HttpReads, Reply};
use streams::{State, Stream};

/// The server's end of the web.
#[derive(Clone)]
pub(super) struct HttpServer {
    executor: Executor,
    journal: Arc<Journal>,
    server: Arc<Server>,
    modern: bool,
    returns: bool,
    state: Arc<Mutex<State>>,
}

impl HttpServer {
    pub(super) fn new(
        executor: &Executor,
        journal: &Arc<Journal>,
        server: &Arc<Server>,
        script: &Script,
    ) -> (Self, HttpTarget) {
        let state = Arc::new(Mutex::new(State::new(Random::new(script.seed, 35))));
        journal.set_transport(Arc::new(HttpReads(Arc::clone(&state))));
        let (executor, journal, server) = (executor.clone(), Arc::clone(journal), Arc::clone(server));
        let (modern, returns) = (script.handshake.is_none(), script.returns);
        let web = Self { executor, journal, server, modern, returns, state };
        let target = HttpTarget::new("http://localhost/mcp").fetch(SimulatedFetch(web.clone()));
        (web, if script.stubborn { target.authorize(AlwaysRetry) } else { target })
    }

    async fn respond(self, request: TransportFetchRequest, origin: Origin, gone: RequestGuard) -> FetchResult {
        let nap = self
            .draw(|random| if random.chance(50) { Duration::ZERO } else { random.delay(Duration::from_millis(50)) });
        self.executor.sleep(nap).await;
        if self.state().down {
            return self.fails(gone.id.as_ref(), Fault::Unsent);
        }
        if origin.in_session && origin.link < self.state().first_known {
            let now = self.executor.now();
            let lost_at = *self.state().lost.entry(origin.link).or_insert(now);
            if request.method == Method::DELETE && now > lost_at + LEAVING_HTTP {
                let what = "expected no DELETE for a session that was reported as lost, observed one";
                self.journal.facts().broken(Law::Closing, what);
            }
            self.journal.lose_session(origin.link);
            return Ok(self.status(404, gone));
        }
        let message = request.body.as_ref().and_then(|body| Json::read(body));
        match (&request.method, message) {
            (&Method::GET, _) => self.get(&request, origin, gone),
            (&Method::POST, Some(message)) if gone.id.is_some() => self.serve(&message, origin, gone).await,
            (&Method::DELETE, _) if self.draw(|random| random.chance(10)) => std::future::pending().await,
            _ => self.accept(&request, gone).await,
        }
    }

    /// Takes what wants no answer, mostly.
    async fn accept(&self, request: &TransportFetchRequest, gone: RequestGuard) -> FetchResult {
        match self.draw(|random| random.below(100)) {
            0..4 => self.fails(None, Fault::Unsent),
            4..8 => self.fails(None, Fault::Broken),
            8..12 => Ok(self.status(500, gone)),
            12..16 => {
                match request.timeout {
                    Some(most) => self.executor.sleep(most).await,
                    None => std::future::pending().await,
                }
                self.fails(None, Fault::Broken)
            }
            _ => Ok(self.status(202, gone)),
        }
    }

    /// Serves a request in the response mode that the script has for it.
    async fn serve(&self, message: &Json<'_>, origin: Origin, gone: RequestGuard) -> FetchResult {
        let tag = message["params"]["arguments"]["tag"].as_u64();
        let response_mode = tag.and_then(|tag| self.journal.facts().plans.get(&tag).map(|call| call.response_mode));
        match response_mode.unwrap_or_else(|| self.response_mode(message)) {
            ResponseMode::Unreachable => self.fails(gone.id.as_ref(), Fault::Unsent),
            ResponseMode::Broken { taken } => {
                if taken {
                    let stream = self.state().open(Stream::default());
                    self.take(message, origin, stream);
                }
                self.fails(gone.id.as_ref(), Fault::Broken)
            }
            ResponseMode::Status(status) => {
                if status == 404 && origin.in_session {
                    self.journal.lose_session(origin.link);
                }
                Ok(self.status(status, gone))
            }
            ResponseMode::Refused { named } => Ok(self.refuse(message, named, gone)),
            ResponseMode::Accepted => Ok(self.status(202, gone)),
            ResponseMode::Silent => std::future::pending().await,
            ResponseMode::Json => self.serve_json(message, origin, gone).await,
            ResponseMode::Events { cut, clean, named } => {
                let id = gone.id.clone();
                let stream = self.state().open(Stream { id, named, cut, clean, ..Stream::default() });
                self.take(message, origin, stream);
                Ok(self.events(stream, 0, gone))
            }
        }
    }

    /// How what is no call is responded to.
    fn response_mode(&self, message: &Json<'_>) -> ResponseMode {
        match message["method"].as_str() {
            Some("subscriptions/listen") => {
                let uris = message["params"]["notifications"]["resourceSubscriptions"].as_array();
                let plan = uris.into_iter().flatten().find_map(|uri| self.server.listening(uri.as_str()?));
                let (cut, clean) = (plan.and_then(|plan| plan.cut), self.draw(|random| random.chance(50)));
                ResponseMode::Events { cut, clean, named: false }
            }
            Some("tasks/get" | "tasks/update" | "tasks/cancel" | "resources/read") => {
                match self.draw(|random| random.below(100)) {
                    0..80 => ResponseMode::Json,
                    80..90 => ResponseMode::Events { cut: None, clean: false, named: false },
                    90..95 => ResponseMode::Unreachable,
                    _ => ResponseMode::Broken { taken: self.draw(|random| random.chance(50)) },
                }
            }
            _ => ResponseMode::Json,
        }
    }

    async fn serve_json(&self, message: &Json<'_>, origin: Origin, gone: RequestGuard) -> FetchResult {
        let id = gone.id.clone();
        let stream = self.state().open(Stream { id, json: true, ..Stream::default() });
        self.take(message, origin, stream);
        if !std::future::poll_fn(|cx| self.state().poll_answer(stream, cx)).await {
            return self.fails(gone.id.as_ref(), Fault::Broken);
        }
        let session = message["method"].as_str() == Some("initialize") && self.draw(|random| random.chance(80));
        let mut response = self.body(200, "application/json", stream, 0, gone);
        if session {
            let mut state = self.state();
            // A new one is remembered.
            state.first_known = state.first_known.min(origin.link);
            response.headers_mut().insert("mcp-session-id", http::HeaderValue::from(origin.link));
        }
        Ok(response)
    }

    fn take(&self, message: &Json<'_>, origin: Origin, stream: usize) {
        let output: Arc<dyn ServerOutput> = Arc::new(Reply { web: self.clone(), stream });
        self.server.take(origin.link, message, &output);
    }

    fn refuse(&self, message: &Json<'_>, named: bool, gone: RequestGuard) -> TransportFetchResponse {
        let Some(id) = gone.id.clone() else { return self.status(400, gone) };
        let shown = if named { message["id"].to_string() } else { "null".to_owned() };
        let text = format!("{{\"jsonrpc\":\"2.0\",\"id\":{shown},\"error\":{{\"code\":-32600,\"message\":\"no\"}}}}");
        let mut state = self.state();
        let stream = state.open(Stream { json: true, ..Stream::default() });
        let receipt = state.push(stream, text.as_bytes(), true);
        drop(state);
        self.journal.fault(Some(&id), Fault::Status(400));
        self.journal.answered(&id, receipt, ResponseKind::Error);
        self.body(400, "application/json", stream, 0, gone)
    }

    /// The stream on which the server speaks first, or the rest of another.
    fn get(&self, request: &TransportFetchRequest, origin: Origin, gone: RequestGuard) -> FetchResult {
        let Some(last) = request.headers.get("last-event-id").and_then(|id| id.to_str().ok()) else {
            if self.draw(|random| random.chance(40)) {
                return Ok(self.status(405, gone));
            }
            let cut = self.draw(|random| random.chance(50).then(|| 1 + random.index(300)));
            let mut state = self.state();
            let stream = state.open(Stream { named: true, cut, ..Stream::default() });
            (state.listening, state.listening_link) = (Some(stream), origin.link);
            drop(state);
            return Ok(self.events(stream, 0, gone));
        };
        let (stream, next) = State::after(last);
        let Some(whole) = self.state().whole(stream) else {
            self.journal
                .facts()
                .broken(Law::Identity, format!("expected a Last-Event-ID that was sent, observed {last}"));
            return self.fails(None, Fault::Broken);
        };
        if whole != next {
            let what =
                format!("expected a resumption after the {whole} events that were read, observed Last-Event-ID {last}");
            self.journal.facts().broken(Law::Order, what);
        }
        match self.draw(|random| random.below(100)) {
            0..5 => Ok(self.status(400, gone)),
            5..10 => Ok(self.status(503, gone)),
            10..15 => self.fails(None, Fault::Unsent),
            _ => {
                self.journal.facts().counts.resumed += 1;
                Ok(self.events(stream, next, gone))
            }
        }
    }

    fn fails(&self, id: Option<&Id>, fault: Fault) -> FetchResult {
        self.journal.fault(id, fault);
        Err(if fault == Fault::Unsent {
            TransportFetchError::not_sent("no way")
        } else {
            TransportFetchError::interrupted("cut")
        })
    }

    fn status(&self, status: u16, gone: RequestGuard) -> TransportFetchResponse {
        self.journal.fault(gone.id.as_ref(), Fault::Status(status));
        let stream = self.state().open(Stream { finished: true, ..Stream::default() });
        self.body(status, "text/plain", stream, 0, gone)
    }

    fn events(&self, stream: usize, from: usize, gone: RequestGuard) -> TransportFetchResponse {
        self.body(200, "text/event-stream; charset=utf-8", stream, from, gone)
    }

    fn body(
        &self,
        status: u16,
        content: &'static str,
        stream: usize,
        from: usize,
        gone: RequestGuard,
    ) -> TransportFetchResponse {
        let body =
            Body::new(self.executor.clone(), Arc::clone(&self.journal), Arc::clone(&self.state), stream, from, gone);
        let mut response = Response::new(Box::new(body) as Box<_>);
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
        response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(content));
        response
    }

    fn draw<T>(&self, body: impl FnOnce(&mut Random) -> T) -> T {
        self.server.draw(body)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends streams, and notes those whose requests are not answered.
    fn end(&self, which: impl Fn(usize) -> bool) {
        let (ended, wakers) = self.state().end(which);
        for id in ended {
            self.journal.fault(Some(&id), Fault::Broken);
        }
        wakers.into_iter().for_each(std::task::Waker::wake);
    }
}

type FetchResult = Result<TransportFetchResponse, TransportFetchError>;

/// Never gives in.
struct AlwaysRetry;

impl Authorize for AlwaysRetry {
    fn attempt(&self, _: &OutgoingHttpRequest<'_>) -> Box<dyn RequestAuthorization> {
        Box::new(Self)
    }
}

impl RequestAuthorization for AlwaysRetry {
    fn sign<'a>(&'a mut self, _: &'a mut HeaderMap) -> RequestAuthorizationFuture<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn answered<'a>(&'a mut self, _: StatusCode, _: &'a HeaderMap) -> RequestAuthorizationFuture<'a, bool> {
        Box::pin(async { Ok(true) })
    }
}

/// What the client calls.
struct SimulatedFetch(HttpServer);

impl TransportFetch for SimulatedFetch {
    fn fetch(&self, request: TransportFetchRequest) -> TransportFetchFuture {
        let web = self.0.clone();
        web.journal.note("fetch", 0, request.method.as_str().as_bytes());
        if web.modern && request.method != Method::POST && web.journal.facts().opened == Some(Ok(())) {
            let what = format!("expected only POST in 2026-07-28, observed {}", request.method);
            web.journal.facts().broken(Law::Silence, what);
        }
        let origin = web.origin(&request);
        let message = request.body.as_ref().and_then(|body| web.journal.wrote_message(origin.link, body));
        let asks = message.as_ref().filter(|message| message.get("method").is_some());
        let id = asks.and_then(|message| id_text(&message["id"])).map(|id| web.journal.key(origin.link, &id));
        let gone = RequestGuard::new(&web.journal, id);
        Box::pin(web.respond(request, origin, gone))
    }
}

impl Drop for SimulatedFetch {
    fn drop(&mut self) {
        self.0.state().dropped = true;
    }
}
