//! The path of every request of a client, whatever its method and transport: the mirror image of `server::dispatch`.
//!
//! ```text
//!   CallFlow, ChangeStream, subscriptions, LogStream, tasks::cancel, ClientConnectionOpener
//!        |
//!   ClientOutboundRequestSender::send   1. layers: each may refuse the request, or add to its `_meta`
//!                         2. encode: the parameters for the revision of the connection
//!                         3. post:   to the driver                           (runtime/connection/calls.rs)
//!   core                  checks the revision, the capability of the server and the limits, and sends it
//! ```
//!
//! Only the `initialize` request is written by the protocol core itself. Sending a request does not wait for anything.

use std::borrow::Cow;
use std::sync::Arc;

use steadfast_model::request::Request;
use steadfast_model::wire::{self, PerMessageMembers};
use steadfast_model::{Method, Revision};
use tokio::sync::watch;

use crate::error::{Error, Outcome};
use crate::runtime::{DriverMailbox, OutboundCallOptions, PendingCall};

/// Why a client sends a request, which is either for a call of the program or for the client itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientRequestOrigin {
    /// The request belongs to a call of the program.
    Call,
    /// The client itself sends the request: to open or check a connection, for a subscription or a log level, or to
    /// cancel an MCP task.
    Client,
}

/// A request that the client is about to send, as interceptors see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientOutgoingRequestInfo {
    pub(crate) method: Method,
    pub(crate) revision: Revision,
    pub(crate) origin: ClientRequestOrigin,
}

/// An interceptor, which sees every request of a client before the request is encoded.
pub(crate) trait ClientRequestInterceptor: Send + Sync + 'static {
    /// Looks at a request of the client. The interceptor may add members to the request's `_meta`. If the interceptor
    /// returns an error, the request is not sent.
    fn on_request(
        &self,
        request: &ClientOutgoingRequestInfo,
        members: &mut Cow<'_, PerMessageMembers>,
    ) -> Result<(), Error>;
}

/// Refuses the calls of a client that is being closed, whose connection only sends requests that cancel something.
pub(crate) struct ClientCloseCheckInterceptor(pub(crate) watch::Receiver<bool>);

impl ClientRequestInterceptor for ClientCloseCheckInterceptor {
    fn on_request(&self, request: &ClientOutgoingRequestInfo, _: &mut Cow<'_, PerMessageMembers>) -> Result<(), Error> {
        let refused = request.origin == ClientRequestOrigin::Call && !request.method.is_teardown() && *self.0.borrow();
        if refused { Err(Error::closed(Outcome::NotSent)) } else { Ok(()) }
    }
}

/// The request interceptors of a client, in their order, and the members that the client adds to each request.
pub(crate) struct ClientRequestPipeline {
    pub(crate) common_members: PerMessageMembers,
    pub(crate) layers: Vec<Arc<dyn ClientRequestInterceptor>>,
}

/// Sends the requests of a client over one connection. The sender is cheap to clone, and does not keep the connection
/// open.
#[derive(Clone)]
pub(crate) struct ClientOutboundRequestSender {
    dispatch: Arc<ClientRequestPipeline>,
    mailbox: Arc<DriverMailbox>,
    revision: Revision,
}

impl ClientOutboundRequestSender {
    /// Creates a sender for a connection with a server of this revision.
    pub(crate) fn new(dispatch: &Arc<ClientRequestPipeline>, mailbox: &Arc<DriverMailbox>, revision: Revision) -> Self {
        Self { dispatch: Arc::clone(dispatch), mailbox: Arc::clone(mailbox), revision }
    }

    /// Sends a request that the client makes by itself, not for a call of the program.
    pub(crate) fn send<R: Request>(
        &self,
        params: &R::Params,
        options: OutboundCallOptions,
    ) -> Result<PendingCall, Error> {
        self.send_edited::<R>(ClientRequestOrigin::Client, params, options, Ok)
    }

    /// Sends a request. `edit` adds members to the encoded parameters that are not part of their type: the input
    /// responses, or the request for an MCP task. Every request of a client, except `initialize`, is sent by this
    /// function.
    pub(crate) fn send_edited<R: Request>(
        &self,
        origin: ClientRequestOrigin,
        params: &R::Params,
        options: OutboundCallOptions,
        edit: impl FnOnce(Box<str>) -> Result<Box<str>, Error>,
    ) -> Result<PendingCall, Error> {
        let request = ClientOutgoingRequestInfo { method: R::METHOD, revision: self.revision, origin };
        let mut members = Cow::Borrowed(&self.dispatch.common_members);
        for layer in &self.dispatch.layers {
            layer.on_request(&request, &mut members)?;
        }
        if let Some((token, _)) = &options.progress {
            members = Cow::Owned(members.into_owned().with_progress_token(token));
        }
        let text = wire::request_params::<R>(self.revision, params, &members).map_err(Error::encode)?;
        Ok(PendingCall::new(&self.mailbox, R::METHOD, Some(edit(text)?), options))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use steadfast_model::{EmptyParams, request};
    use steadfast_proto::connection::Limits;

    use super::*;
    use crate::runtime::DriverCommand;

    struct Recorder(Arc<Mutex<Vec<Method>>>);

    impl ClientRequestInterceptor for Recorder {
        fn on_request(
            &self,
            request: &ClientOutgoingRequestInfo,
            members: &mut Cow<'_, PerMessageMembers>,
        ) -> Result<(), Error> {
            self.0.lock().unwrap().push(request.method);
            *members = Cow::Owned(members.clone().into_owned().with_meta("com.example/trace", "7"));
            match request.method {
                Method::Discover => Ok(()),
                _ => Err(Error::usage("this layer refuses it")),
            }
        }
    }

    #[test]
    fn a_layer_adds_to_the_metadata_of_a_request_or_refuses_it_before_it_is_sent() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let layers: Vec<Arc<dyn ClientRequestInterceptor>> = vec![Arc::new(Recorder(Arc::clone(&seen)))];
        let dispatch = Arc::new(ClientRequestPipeline { common_members: PerMessageMembers::none(), layers });
        let mailbox = DriverMailbox::new(&Limits::default(), None);
        let sender = ClientOutboundRequestSender::new(&dispatch, &mailbox, Revision::LATEST);
        let call = sender.send::<request::Discover>(&EmptyParams::default(), OutboundCallOptions::default()).unwrap();
        let refused = sender.send::<request::Ping>(&EmptyParams::default(), OutboundCallOptions::default());
        assert_eq!(refused.err().map(|error| error.outcome()), Some(Outcome::NotSent));
        assert_eq!(*seen.lock().unwrap(), [Method::Discover, Method::Ping]);
        let mut commands = Vec::new();
        mailbox.take_commands(&mut commands);
        let [DriverCommand::Call { call: posted, .. }] = &commands[..] else { panic!("one request was posted") };
        assert!(posted.params.as_ref().unwrap().contains(r#""com.example/trace":"7""#), "{posted:?}");
        drop(call);
    }
}
