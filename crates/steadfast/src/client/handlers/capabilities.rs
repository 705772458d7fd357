//! What a client has declared, and what follows from it: what it is declared to do has a handler, what it did not declare is
//! refused, and what its handlers answer is what was asked for.

use serde_json::Value;
use steadfast_model::{
    ClientCapabilities, CreateMessageParams, ElicitAction, ElicitParams, ElicitResult, FormSchema, ListRootsResult,
    Method,
};

use crate::error::Error;
use crate::validation::conversation::check_tool_uses;
use crate::validation::form::check as check_form;

/// What to declare: what was said and what the handlers stand for, without what no handler answers.
pub(crate) fn declared(
    said: ClientCapabilities,
    implied: ClientCapabilities,
    has_handler: impl Fn(Method) -> bool,
) -> ClientCapabilities {
    let mut declared = said;
    declared.roots = declared.roots.or(implied.roots).filter(|_| has_handler(Method::ListRoots));
    declared.sampling = declared.sampling.or(implied.sampling).filter(|_| has_handler(Method::CreateMessage));
    declared.elicitation = declared.elicitation.or(implied.elicitation).filter(|_| has_handler(Method::Elicit));
    declared
}

/// What a server has asked, as far as it decides which answers fit.
pub(crate) enum RequestedInput {
    /// To fill in a form.
    Form(FormSchema),
    /// For the roots.
    Roots,
    /// For something whose answers are not looked at.
    Anything,
}

impl RequestedInput {
    /// Reads a question. One that needs what was not declared is refused; so is a conversation that no model takes.
    pub(crate) fn read(declared: &ClientCapabilities, method: Method, params: &str) -> Result<Self, Error> {
        let unreadable = |error| Error::invalid_params(format!("{method}: {error}"));
        let undeclared =
            |what: &str| Err(Error::invalid_params(format!("{method}: this client did not declare {what}")));
        match method {
            Method::Elicit => match serde_json::from_str(params).map_err(unreadable)? {
                ElicitParams::Form(_) if declared.elicitation.as_ref().is_some_and(|modes| !modes.has_form()) => {
                    undeclared("elicitation by a form")
                }
                ElicitParams::Url(_) if declared.elicitation.as_ref().is_none_or(|modes| !modes.has_url()) => {
                    undeclared("elicitation by a URL")
                }
                ElicitParams::Form(form) => Ok(Self::Form(form.requested_schema)),
                _ => Ok(Self::Anything),
            },
            Method::CreateMessage => {
                let asked: CreateMessageParams = serde_json::from_str(params).map_err(unreadable)?;
                let takes_tools = declared.sampling.as_ref().is_some_and(|sampling| sampling.tools.is_some());
                if !takes_tools && (!asked.tools.is_empty() || asked.tool_choice.is_some()) {
                    return undeclared("sampling with tools");
                }
                check_tool_uses(&asked.messages).map_err(unreadable_conversation)?;
                Ok(Self::Anything)
            }
            Method::ListRoots => Ok(Self::Roots),
            _ => Ok(Self::Anything),
        }
    }

    /// Looks at what a handler answered.
    pub(crate) fn check(&self, written: &[u8]) -> Result<(), Error> {
        match self {
            Self::Form(form) => {
                let answer: ElicitResult = serde_json::from_slice(written).map_err(Error::encode)?;
                if answer.action != ElicitAction::Accept {
                    return Ok(());
                }
                let mut content = answer.content.unwrap_or_default();
                check_form(form, &mut content)
                    .map_err(|why| Error::usage(format!("the answer does not fit the form: {why}")))
            }
            Self::Roots => {
                let answer: ListRootsResult = serde_json::from_slice(written).map_err(Error::encode)?;
                match answer.roots.iter().find(|root| !root.uri.starts_with("file://")) {
                    Some(root) => {
                        Err(Error::usage(format!("a root is a file, and {} is none", Value::from(&*root.uri))))
                    }
                    None => Ok(()),
                }
            }
            Self::Anything => Ok(()),
        }
    }
}

fn unreadable_conversation(why: Error) -> Error {
    Error::invalid_params(format!("{}: {why}", Method::CreateMessage))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_handler_answers_is_not_declared() {
        let said = ClientCapabilities::new().with_roots(true).with_sampling_tools().with_elicitation_form();
        let implied = ClientCapabilities::new().with_roots(false).with_elicitation_url();
        let none = declared(said.clone(), implied.clone(), |_| false);
        assert_eq!(none, ClientCapabilities::new());
        let roots = declared(said.clone(), implied.clone(), |method| method == Method::ListRoots);
        assert_eq!(roots, ClientCapabilities::new().with_roots(true));
        // What is said goes before what the handlers stand for.
        assert_eq!(declared(said.clone(), implied.clone(), |_| true), said);
        assert_eq!(declared(ClientCapabilities::new(), implied.clone(), |_| true), implied);
    }
}
