//! Notifications of changes: streams since 2026-07-28, subscriptions before.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Server, ServerOutput, notification, refusal, result};
use crate::client::checks::changes as checks;
use crate::client::journal::ResponseKind;
use crate::client::script::{AcknowledgeMode, Action, Listening, StreamEnd};
use crate::observation::json::Json;
use crate::observation::message::Id;

/// A stream of changes (2026-07-28).
pub(super) struct Subscription {
    listener: u64,
    resource: u8,
    id: Id,
    /// What its request is called in the journal.
    key: Id,
    output: Arc<dyn ServerOutput>,
    /// It is notified of changes.
    begun: bool,
}

impl Server {
    /// Nothing more is notified.
    pub(in crate::client) fn forget_subscriptions(&self) {
        let subscriptions = std::mem::take(&mut self.state().subscriptions);
        drop(subscriptions);
    }

    /// A resource changes: its subscribers are notified.
    pub(in crate::client) fn change(&self, resource: u8, output: &Arc<dyn ServerOutput>) {
        let serial = self.journal.facts().cache.change(resource);
        self.journal.note("changes", serial, &[b'0' + resource]);
        if self.handshake.is_some() {
            return self.tell_everyone(resource, serial, output);
        }
        let subscribers: Vec<(u64, Id, Id, Arc<dyn ServerOutput>)> = {
            let state = self.state();
            let subscribers = state.subscriptions.iter().filter(|one| one.begun && one.resource == resource);
            subscribers.map(|one| (one.listener, one.id.clone(), one.key.clone(), Arc::clone(&one.output))).collect()
        };
        for (listener, id, key, output) in subscribers {
            self.tell(serial, resource, (listener, &id, &key), &output);
        }
    }

    /// Tells one stream of a change.
    fn tell(&self, serial: u64, resource: u8, (listener, id, key): (u64, &Id, &Id), output: &Arc<dyn ServerOutput>) {
        let uri = format!("{}/{serial}", checks::shared(resource));
        let params = format!("{{\"uri\":\"{uri}\",\"_meta\":{}}}", of(id));
        let receipt = output.say(&notification("notifications/resources/updated", &params), false);
        checks::at_told(&mut self.journal.facts(), listener, key, serial, receipt);
    }

    /// Tells a client of the older revisions, if it has asked for it.
    fn tell_everyone(&self, resource: u8, serial: u64, output: &Arc<dyn ServerOutput>) {
        let (uri, link) = (checks::shared(resource), output.link());
        if !self.journal.facts().subscribed.contains(&(link, uri.clone())) {
            return;
        }
        let params = format!("{{\"uri\":\"{uri}/{serial}\"}}");
        let receipt = output.say(&notification("notifications/resources/updated", &params), false);
        let mut facts = self.journal.facts();
        for (listener, key) in checks::listeners_on(&facts, link, resource) {
            checks::at_told(&mut facts, listener, &key, serial, receipt);
        }
    }

    /// One who wants to listen, since 2026-07-28.
    pub(super) fn listen(self: &Arc<Self>, link: usize, id: Id, params: &Json<'_>, output: &Arc<dyn ServerOutput>) {
        let key = self.journal.key(link, &id);
        let wanted = &params["notifications"];
        let uris = wanted["resourceSubscriptions"].as_array().into_iter().flatten();
        let Some(plan) = uris.into_iter().find_map(|uri| self.listening(uri.as_str()?)) else { return };
        let subscription = Subscription {
            listener: plan.number,
            resource: plan.resource,
            id: id.clone(),
            key: key.clone(),
            output: Arc::clone(output),
            begun: false,
        };
        self.state().subscriptions.push(subscription);
        let acknowledgement = notification(
            "notifications/subscriptions/acknowledged",
            &format!("{{\"notifications\":{wanted},\"_meta\":{}}}", of(&id)),
        );
        let (server, output) = (Arc::clone(self), Arc::clone(output));
        self.executor.spawn_harness_task(async move {
            match plan.acknowledged {
                AcknowledgeMode::Refused => return server.end_stream(&plan, &id, &key, StreamEnd::Error, &output),
                AcknowledgeMode::Late(delay) => server.executor.sleep(delay).await,
                AcknowledgeMode::Behind => {
                    let serial = server.journal.facts().cache.change(plan.resource);
                    server.tell(serial, plan.resource, (plan.number, &id, &key), &output);
                }
                AcknowledgeMode::Once | AcknowledgeMode::Twice | AcknowledgeMode::Never => {}
            }
            let times = match plan.acknowledged {
                AcknowledgeMode::Never => 0,
                AcknowledgeMode::Twice => 2,
                _ => 1,
            };
            for _ in 0..times {
                checks::at_acknowledgement(&mut server.journal.facts(), plan.number, &key);
                output.tell(&acknowledgement, false);
            }
            server.set_begun(&key, times > 0);
            if let Some((delay, end)) = plan.end {
                server.executor.sleep(delay).await;
                server.end_stream(&plan, &id, &key, end, &output);
            }
        });
    }

    fn set_begun(&self, key: &Id, begun: bool) {
        let mut state = self.state();
        state.subscriptions.iter_mut().filter(|one| one.key == *key).for_each(|one| one.begun = begun);
    }

    /// Ends a stream.
    fn end_stream(&self, plan: &Listening, id: &Id, key: &Id, end: StreamEnd, output: &Arc<dyn ServerOutput>) {
        self.set_begun(key, false);
        self.journal.note("ends", plan.number, format!("{end:?}").as_bytes());
        let (said, message) = match end {
            StreamEnd::Result => {
                let meta: Value = serde_json::from_str(&of(id)).unwrap_or_default();
                (ResponseKind::Result, result(id, &json!({ "resultType": "complete", "_meta": meta })))
            }
            StreamEnd::Error => (ResponseKind::Error, refusal(id, -32603)),
            StreamEnd::Cancelled => {
                (ResponseKind::Result, notification("notifications/cancelled", &format!("{{\"requestId\":{id}}}")))
            }
            StreamEnd::Broken => return output.break_off(),
        };
        let receipt = output.say(&message, end != StreamEnd::Cancelled);
        self.journal.answered(key, receipt, said);
    }

    /// A subscription to a resource in the older revisions.
    pub(super) fn subscribe(self: &Arc<Self>, link: usize, id: Id, params: &Json<'_>, output: &Arc<dyn ServerOutput>) {
        let (uri, key) = (params["uri"].as_str().unwrap_or_default().to_owned(), self.journal.key(link, &id));
        let plan = self.listening(&uri);
        let acknowledged = plan.map_or(AcknowledgeMode::Once, |plan| plan.acknowledged);
        if acknowledged != AcknowledgeMode::Refused {
            self.journal.facts().subscribed.insert((link, uri));
        }
        let (server, output) = (Arc::clone(self), Arc::clone(output));
        self.executor.spawn_harness_task(async move {
            let (said, message) = match acknowledged {
                AcknowledgeMode::Never => return,
                AcknowledgeMode::Refused => (ResponseKind::Error, refusal(&id, -32602)),
                _ => (ResponseKind::Result, result(&id, &json!({}))),
            };
            if let AcknowledgeMode::Late(delay) = acknowledged {
                server.executor.sleep(delay).await;
            }
            let receipt = output.say(&message, true);
            server.journal.answered(&key, receipt, said);
            if acknowledged == AcknowledgeMode::Twice {
                output.tell(&message, true);
            }
        });
    }

    pub(super) fn unsubscribe(&self, link: usize, id: &Id, params: &Json<'_>, output: &Arc<dyn ServerOutput>) {
        let (uri, key) = (params["uri"].as_str().unwrap_or_default().to_owned(), self.journal.key(link, id));
        self.journal.facts().subscribed.remove(&(link, uri));
        if self.draw(|random| random.chance(25)) {
            return;
        }
        let receipt = output.say(&result(id, &json!({})), true);
        self.journal.answered(&key, receipt, ResponseKind::Result);
    }

    /// What the script has for the listener whom that name belongs to.
    pub(in crate::client) fn listening(&self, uri: &str) -> Option<Listening> {
        let number = checks::whose(uri)?;
        self.listenings.iter().find_map(|action| match action {
            Action::Listen(plan) if plan.number == number => Some(plan.clone()),
            _ => None,
        })
    }
}

fn of(id: &Id) -> String {
    format!("{{\"io.modelcontextprotocol/subscriptionId\":{id}}}")
}
