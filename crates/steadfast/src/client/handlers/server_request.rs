//! The requests of a server that a client can have a handler for.

use steadfast_model::request::{self, Request};
use steadfast_model::wire::Encode;
use steadfast_model::{ClientCapabilities, ElicitAction, ElicitParams, ElicitResult, FormSchema};

/// A request that servers send to clients: which capabilities a handler for it implies, and how its results are completed.
///
/// `ping` is not one of them: the client responds to it without a handler.
pub(crate) trait ServerToClientRequest: Request<Result: Encode> {
    /// The part of the server's request that completes the handler's result: for elicitation the form, for its defaults.
    type Completion: Send + 'static;

    /// Adds the capabilities that a client with a handler for this request declares by default.
    fn declare(capabilities: ClientCapabilities) -> ClientCapabilities;

    fn completion(params: &Self::Params) -> Self::Completion;

    /// Completes the result of a handler.
    fn complete(completion: Self::Completion, result: Self::Result) -> Self::Result;
}

impl ServerToClientRequest for request::ListRoots {
    type Completion = ();

    fn declare(capabilities: ClientCapabilities) -> ClientCapabilities {
        capabilities.with_roots(false)
    }

    fn completion(_: &Self::Params) {}

    fn complete((): (), result: Self::Result) -> Self::Result {
        result
    }
}

impl ServerToClientRequest for request::CreateMessage {
    type Completion = ();

    fn declare(capabilities: ClientCapabilities) -> ClientCapabilities {
        capabilities.with_sampling()
    }

    fn completion(_: &Self::Params) {}

    fn complete((): (), result: Self::Result) -> Self::Result {
        result
    }
}

impl ServerToClientRequest for request::Elicit {
    type Completion = Option<FormSchema>;

    fn declare(capabilities: ClientCapabilities) -> ClientCapabilities {
        capabilities.with_elicitation_form().with_elicitation_url()
    }

    fn completion(params: &ElicitParams) -> Option<FormSchema> {
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
