//! Subscriptions of the older revisions: each resource is subscribed to, and taken back when nobody listens any more. They
//! belong to their connection, and are never made on another.

use std::sync::{Arc, Weak};
use std::time::Duration;

use steadfast_model::request::{self, Request};
use steadfast_model::{ResourceParams, SubscriptionFilter, era};
use steadfast_proto::mutant;
use tokio::sync::oneshot;

use super::told::{Failure, Listener};
use crate::client::ending::{Loss, result_of};
use crate::client::link::Link;
use crate::client::{Client, Inner};
use crate::error::{Error, Outcome};
use crate::runtime::waiting::{before, unless};
use crate::runtime::{CallEnding, CallOptions, PendingCall};

/// How long the server may take for each.
const SUBSCRIBING: Duration = Duration::from_secs(60);

/// How long the server may take for the stream on which it tells of changes.
const OPENING: Duration = Duration::from_secs(5);

/// Begins to listen on a connection.
pub(super) fn hear(client: &Client, link: &Arc<Link>, filter: SubscriptionFilter) -> Arc<Listener> {
    let (listener, gone) = Listener::new(filter);
    link.told.add(&listener);
    let subscriptions =
        Subscriptions { client: Arc::downgrade(&client.inner), link: Arc::downgrade(link), made: Vec::new() };
    let filter = listener.filter.clone();
    client.inner.runtime().spawn(Box::pin(subscriptions.keep(Arc::downgrade(&listener), filter, gone)));
    listener
}

/// It keeps nothing open: what nobody has any more ends, whatever the server is still to be told.
struct Subscriptions {
    client: Weak<Inner>,
    link: Weak<Link>,
    /// Those that the server may have.
    made: Vec<String>,
}

impl Subscriptions {
    /// Makes them, says so, and takes them back when nobody listens any more: at once, also while they are being made.
    async fn keep(mut self, listener: Weak<Listener>, filter: SubscriptionFilter, mut gone: oneshot::Receiver<()>) {
        // Nothing is ever sent: that it is dropped says so.
        if let Some(made) = unless(async { drop((&mut gone).await) }, self.make(&filter)).await {
            if let Some(listener) = listener.upgrade() {
                match made {
                    Ok(()) => listener.begin(),
                    Err(failure) => listener.fail(failure),
                }
            }
            let _ = gone.await;
        }
        self.take_back().await;
    }

    async fn make(&mut self, filter: &SubscriptionFilter) -> Result<(), Failure> {
        self.wait_for_the_stream().await;
        for uri in &filter.resource_subscriptions {
            self.made.push(uri.clone());
            let ending = self.ask::<request::Subscribe>(uri).await.map_err(|error| Failure { error, loss: None })?;
            let loss = Loss::of(&ending);
            if let Err(error) = result_of::<request::Subscribe>(ending) {
                // What was lost on the way back is there all the same.
                if matches!(error.outcome(), Outcome::NotSent | Outcome::Refused) || mutant!(ForgetLostSubscriptions) {
                    self.made.pop();
                }
                return Err(Failure { error, loss });
            }
        }
        Ok(())
    }

    /// What the server tells before its stream is open may be lost.
    async fn wait_for_the_stream(&self) {
        let (Some(client), Some(link)) = (self.client.upgrade(), self.link.upgrade()) else { return };
        let runtime = Arc::clone(client.runtime());
        drop(client);
        let end = runtime.now() + OPENING;
        // Some servers say nothing of the stream before there is something to tell.
        let _ = before(&*runtime, Some(end), link.is_audible()).await;
    }

    async fn take_back(mut self) {
        for uri in std::mem::take(&mut self.made) {
            // Others may still want to hear of it. If the server cannot be told, it tells for nothing.
            if self.link.upgrade().is_some_and(|link| !link.told.wants(&uri)) {
                let _ = self.ask::<request::Unsubscribe>(&uri).await;
            }
        }
    }

    async fn ask<R: Request<Params = ResourceParams>>(&self, uri: &str) -> Result<CallEnding, Error> {
        let (Some(client), Some(link)) = (self.client.upgrade(), self.link.upgrade()) else {
            return Err(Error::closed(Outcome::NotSent));
        };
        let mut text = Vec::new();
        let params = ResourceParams::new(uri);
        era::write_params(link.peer.revision, &params, &client.line.opener.decoration, &mut text)
            .map_err(Error::encode)?;
        let text = String::from_utf8(text).map_err(Error::encode)?;
        let options = CallOptions { timeout: Some(SUBSCRIBING), ..CallOptions::default() };
        let call = PendingCall::new(&link.mailbox, R::METHOD, Some(text.into()), options);
        let _held = mutant!(HoldWhileUnsubscribing).then_some((client, link));
        Ok(call.await)
    }
}
