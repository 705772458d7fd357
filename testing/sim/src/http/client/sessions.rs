//! Sessions of the clients: opening, notifications, cancellations and resumed streams.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Clients, PLAIN, PreparedRequest, TRIES, nth};
use crate::http::journal::Purpose;
use crate::http::script::{Action, ClientBehavior, Hang, ResumeFrom, Upload};
use crate::http::wire::RequestParts;
use crate::law::Law;

/// Sessions.
impl Clients {
    /// Opens a session if there is none, and the action needs one.
    pub(super) async fn have_session(self: &Arc<Self>, client: usize, action: &Action) {
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
    pub(super) fn in_session(&self, client: usize, asked: RequestParts) -> Option<(usize, RequestParts)> {
        let (number, id) = self.state().clients[client].session.clone()?;
        Some((number, asked.with("mcp-session-id", id)))
    }

    pub(super) fn notify(self: &Arc<Self>, client: usize, message: &Value) {
        if let Some((session, asked)) = self.in_session(client, RequestParts::post(message)) {
            let purpose = Purpose::Notification;
            self.send(PreparedRequest { client, session: Some(session), purpose, asked, behavior: PLAIN, round: 0 });
        }
    }

    pub(super) fn cancel(self: &Arc<Self>, client: usize, back: usize) {
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

    pub(super) fn resume(self: &Arc<Self>, client: usize, back: usize, from: ResumeFrom, behavior: ClientBehavior) {
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

    /// Resumes every stream until it has all events, and then once more.
    pub(super) async fn collect(self: &Arc<Self>, client: usize) {
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

    /// A client that resumed often enough has every event once and in order, and the answer (L2, L9).
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
            let what = format!("request {:?}: expected its answer on a resumed stream, observed none", given.request);
            facts.broken(Law::Answer, what);
        } else if !same {
            let what = format!("stream {stream}: expected every event after resuming, observed {seen:?}");
            facts.broken(Law::Order, what);
        }
    }
}
