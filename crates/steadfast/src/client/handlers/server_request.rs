//! The requests of a server that a client can have a handler for.

use steadfast_model::request::{self, Request};

/// A request that servers send to clients, for which a client can have a handler: see
/// [`ConnectBuilder::on`](crate::client::ConnectBuilder::on).
///
/// `ping` is not one of them: the client responds to it without a handler.
#[diagnostic::on_unimplemented(
    message = "servers never send `{Self}` to a client",
    label = "a handler for this request would never be called",
    note = "servers send `request::ListRoots`, `request::CreateMessage` and `request::Elicit`; the client responds to pings without a handler",
    note = "to send a request to the server, connect and use `Client::call`"
)]
pub trait ServerRequest: Request + sealed::Sealed {}

impl ServerRequest for request::ListRoots {}
impl ServerRequest for request::CreateMessage {}
impl ServerRequest for request::Elicit {}

pub(crate) mod sealed {
    use steadfast_model::request::{self, Request};
    use steadfast_model::wire::Encode;
    use steadfast_model::{ClientCapabilities, ElicitAction, ElicitParams, ElicitResult, FormSchema};

    /// What a handler for this request implies, and how its results are completed.
    pub trait Sealed: Request<Result: Encode> {
        /// The part of the request that is needed to complete the result.
        type Context: Send + 'static;

        /// Adds the capabilities that a client with a handler for this request declares by default.
        fn declare(capabilities: ClientCapabilities) -> ClientCapabilities;

        fn context(params: &Self::Params) -> Self::Context;

        /// Completes the result of a handler.
        fn complete(context: Self::Context, result: Self::Result) -> Self::Result;
    }

    impl Sealed for request::ListRoots {
        type Context = ();

        fn declare(capabilities: ClientCapabilities) -> ClientCapabilities {
            capabilities.with_roots(false)
        }

        fn context(_: &Self::Params) {}

        fn complete((): (), result: Self::Result) -> Self::Result {
            result
        }
    }

    impl Sealed for request::CreateMessage {
        type Context = ();

        fn declare(capabilities: ClientCapabilities) -> ClientCapabilities {
            capabilities.with_sampling()
        }

        fn context(_: &Self::Params) {}

        fn complete((): (), result: Self::Result) -> Self::Result {
            result
        }
    }

    impl Sealed for request::Elicit {
        type Context = Option<FormSchema>;

        fn declare(capabilities: ClientCapabilities) -> ClientCapabilities {
            capabilities.with_elicitation_form().with_elicitation_url()
        }

        fn context(params: &ElicitParams) -> Option<FormSchema> {
            match params {
                ElicitParams::Form(form) => Some(form.requested_schema.clone()),
                _ => None,
            }
        }

        /// Adds the defaults of the form for the fields that the handler left out.
        fn complete(form: Option<FormSchema>, mut result: ElicitResult) -> ElicitResult {
            if let (Some(form), ElicitAction::Accept) = (form, result.action) {
                form.fill_in_defaults(result.content.get_or_insert_default());
            }
            result
        }
    }
}
