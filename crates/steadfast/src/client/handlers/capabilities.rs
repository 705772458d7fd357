//! The declared capabilities of a client, and what follows from them: the client declares only what it has a handler
//! for, refuses requests for what it has not declared, and checks that the results of its handlers fit the request.

use serde_json::Value;
use steadfast_model::{
    ClientCapabilities, CreateMessageParams, ElicitAction, ElicitParams, ElicitResult, FormSchema, JsonObject,
    ListRootsResult, Method,
};

use crate::error::Error;
use crate::validation::conversation::check_tool_uses;
use crate::validation::form::check as check_form;

/// Returns the capabilities that the client declares: those that the program has set, completed by those that its
/// handlers imply, without those that have no handler.
pub(crate) fn capabilities_to_declare(
    explicit: ClientCapabilities,
    implied: ClientCapabilities,
    has_handler: impl Fn(Method) -> bool,
) -> ClientCapabilities {
    let mut declared = explicit;
    declared.roots = declared.roots.or(implied.roots).filter(|_| has_handler(Method::ListRoots));
    declared.sampling = declared.sampling.or(implied.sampling).filter(|_| has_handler(Method::CreateMessage));
    declared.elicitation = declared.elicitation.or(implied.elicitation).filter(|_| has_handler(Method::Elicit));
    declared
}

/// How the client checks the result of a handler before the result is sent to the server.
pub(crate) enum ClientHandlerResultCheck {
    /// The content of the elicitation result has to fit the form that the server requested.
    Form(FormSchema),
    /// Every root has to be a `file://` URI.
    Roots,
    /// No check.
    None,
}

impl ClientHandlerResultCheck {
    /// Returns the check for the result of a request of the server. Returns an error if the request needs a capability
    /// that the client did not declare, or if the messages of a sampling request do not pair each tool use with a tool
    /// result.
    pub(crate) fn for_request(declared: &ClientCapabilities, method: Method, params: &str) -> Result<Self, Error> {
        let malformed = |error| Error::invalid_params(format!("{method}: {error}"));
        let undeclared =
            |what: &str| Err(Error::invalid_params(format!("{method}: the client did not declare {what}")));
        match method {
            Method::Elicit => match serde_json::from_str(params).map_err(malformed)? {
                ElicitParams::Form(_) if declared.elicitation.as_ref().is_some_and(|modes| !modes.has_form()) => {
                    undeclared("elicitation by a form")
                }
                ElicitParams::Url(_) if declared.elicitation.as_ref().is_none_or(|modes| !modes.has_url()) => {
                    undeclared("elicitation by a URL")
                }
                ElicitParams::Form(form) => Ok(Self::Form(form.requested_schema)),
                _ => Ok(Self::None),
            },
            Method::CreateMessage => {
                let request: CreateMessageParams = serde_json::from_str(params).map_err(malformed)?;
                let allows_tools = declared.sampling.as_ref().is_some_and(|sampling| sampling.tools.is_some());
                if !allows_tools && (!request.tools.is_empty() || request.tool_choice.is_some()) {
                    return undeclared("sampling with tools");
                }
                check_tool_uses(&request.messages).map_err(invalid_messages)?;
                Ok(Self::None)
            }
            Method::ListRoots => Ok(Self::Roots),
            _ => Ok(Self::None),
        }
    }

    /// Checks the encoded result of a client's handler.
    pub(crate) fn check(&self, encoded: &[u8]) -> Result<(), Error> {
        match self {
            Self::Form(form) => {
                let result: ElicitResult = serde_json::from_slice(encoded).map_err(Error::encode)?;
                if result.action != ElicitAction::Accept {
                    return Ok(());
                }
                let mut content = result.content.unwrap_or_default();
                check_form(form, &mut content).map_err(|why| {
                    Error::usage(format!(
                        "the content of the elicitation result does not match the requested schema: {why}"
                    ))
                })
            }
            Self::Roots => {
                let result: ListRootsResult = serde_json::from_slice(encoded).map_err(Error::encode)?;
                match result.roots.iter().find(|root| !root.uri.starts_with("file://")) {
                    Some(root) => {
                        Err(Error::usage(format!("the root {} is not a `file://` URI", Value::from(&*root.uri))))
                    }
                    None => Ok(()),
                }
            }
            Self::None => Ok(()),
        }
    }
}

fn invalid_messages(why: Error) -> Error {
    Error::invalid_params(format!("{}: {why}", Method::CreateMessage))
}

/// Checks the content of an elicitation result against the form, as servers do, and removes optional fields that are
/// `null`. `complete_form` is for programs that want to tell the user about errors before they return the result; a
/// client checks the results of its handlers in any case.
///
/// # Errors
///
/// Returns an error if the content does not match the form. The error message names the field.
pub fn complete_form(form: &FormSchema, mut content: JsonObject) -> Result<JsonObject, Error> {
    check_form(form, &mut content).map_err(Error::usage)?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_without_a_handler_are_not_declared() {
        let explicit = ClientCapabilities::new().with_roots(true).with_sampling_tools().with_elicitation_form();
        let implied = ClientCapabilities::new().with_roots(false).with_elicitation_url();
        let none = capabilities_to_declare(explicit.clone(), implied.clone(), |_| false);
        assert_eq!(none, ClientCapabilities::new());
        let roots = capabilities_to_declare(explicit.clone(), implied.clone(), |method| method == Method::ListRoots);
        assert_eq!(roots, ClientCapabilities::new().with_roots(true));
        // Explicit capabilities take precedence over implied ones.
        assert_eq!(capabilities_to_declare(explicit.clone(), implied.clone(), |_| true), explicit);
        assert_eq!(capabilities_to_declare(ClientCapabilities::new(), implied.clone(), |_| true), implied);
    }
}
