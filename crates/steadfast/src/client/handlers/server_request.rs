//! What a server may ask its client: the requests that a client can have a handler for.

use steadfast_model::request::{self, Request};

/// A request that servers make of their clients, and that a handler answers: [`Connecting::on`](crate::client::Connecting::on).
///
/// Pings are not among them: every client answers those by itself.
#[diagnostic::on_unimplemented(
    message = "no server asks its client for `{Self}`",
    label = "a handler for this would never be called",
    note = "servers ask for `request::ListRoots`, `request::CreateMessage` and `request::Elicit`; pings are answered without a handler",
    note = "to ask the server for something, connect and use `Client::call`"
)]
pub trait ServerRequest: Request + sealed::Sealed {}

impl ServerRequest for request::ListRoots {}
impl ServerRequest for request::CreateMessage {}
impl ServerRequest for request::Elicit {}

pub(crate) mod sealed {
    use steadfast_model::request::{self, Request};
    use steadfast_model::{ClientCapabilities, ElicitAction, ElicitParams, ElicitResult, FormSchema};

    /// What follows from a handler for it, and what its answers are completed by.
    pub trait Sealed: Request {
        /// What of the question is needed to complete an answer.
        type Rest: Send + 'static;

        /// What a client declares that has a handler for it and says nothing itself.
        fn imply(capabilities: ClientCapabilities) -> ClientCapabilities;

        fn rest(params: &Self::Params) -> Self::Rest;

        /// Completes an answer.
        fn complete(rest: Self::Rest, answer: Self::Result) -> Self::Result;
    }

    impl Sealed for request::ListRoots {
        type Rest = ();

        fn imply(capabilities: ClientCapabilities) -> ClientCapabilities {
            capabilities.with_roots(false)
        }

        fn rest(_: &Self::Params) {}

        fn complete((): (), answer: Self::Result) -> Self::Result {
            answer
        }
    }

    impl Sealed for request::CreateMessage {
        type Rest = ();

        fn imply(capabilities: ClientCapabilities) -> ClientCapabilities {
            capabilities.with_sampling()
        }

        fn rest(_: &Self::Params) {}

        fn complete((): (), answer: Self::Result) -> Self::Result {
            answer
        }
    }

    impl Sealed for request::Elicit {
        type Rest = Option<FormSchema>;

        fn imply(capabilities: ClientCapabilities) -> ClientCapabilities {
            capabilities.with_elicitation_form().with_elicitation_url()
        }

        fn rest(params: &ElicitParams) -> Option<FormSchema> {
            match params {
                ElicitParams::Form(form) => Some(form.requested_schema.clone()),
                _ => None,
            }
        }

        /// What the form has defaults for need not be in the answer.
        fn complete(form: Option<FormSchema>, mut answer: ElicitResult) -> ElicitResult {
            if let (Some(form), ElicitAction::Accept) = (form, answer.action) {
                form.fill_in_defaults(answer.content.get_or_insert_default());
            }
            answer
        }
    }
}
