//! The requests of a server that a client can have a handler for.

use steadfast_model::request::{self, Request};
use steadfast_model::wire::Encode;
use steadfast_model::{ClientCapabilities, ElicitAction, ElicitParams, ElicitResult, FormSchema};

/// A request that servers send to clients: which capabilities a handler for the request implies, and how the handler's
/// results are completed.
///
/// `ping` does not implement this trait: the client responds to a `ping` without a handler.
pub(crate) trait ServerToClientRequest: Request<Result: Encode> {
    /// The part of the server's request that completes the handler's result: for elicitation the form, because it has
    /// default values.
    type Completion: Send + 'static;

    /// Adds the capabilities that a client with a handler for this request declares by default.
    fn declare(capabilities: ClientCapabilities) -> ClientCapabilities;

    fn completion(params: &Self::Params) -> Self::Completion;

    /// Completes the result of the client's handler with values from the server's request.
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
