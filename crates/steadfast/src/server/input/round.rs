//! One round of a request that may take several (2026-07-28): what came with it, and what goes out with its questions.
//!
//! Only `tools/call`, `prompts/get` and `resources/read` may ask. What is known at the end of a round is sealed and carried by
//! the client; it opens only for the same method with the same parameters by the same principal.

use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use steadfast_model::era;
use steadfast_model::{
    ClientCapabilities, ErrorObject, InputRequests, InputRequiredResult, JsonObject, Method, RequestId,
};
use steadfast_proto::connection::Request;
use steadfast_proto::encode::Answer;

use crate::runtime::{Execution, InputRounds, Mailbox, RoundState, RoundStore, Runtime};
use crate::server::Server;

/// The execution of a request that may ask its client.
pub(crate) fn execution(
    server: &Server,
    request: &Request,
    mailbox: &Arc<Mailbox>,
    runtime: &Arc<dyn Runtime>,
) -> Arc<Execution> {
    let input_rounds = may_take_rounds(request).then(|| {
        let carrier = SealedRoundStore {
            server: server.clone(),
            id: request.id.clone(),
            method: request.method,
            params: request.params.text().into(),
            principal: mailbox.owner().map(Into::into),
            resumed: is_resumed(request),
        };
        Box::new(InputRounds::new(Box::new(carrier)))
    });
    Execution::asking(request, Arc::clone(mailbox), Arc::clone(runtime), input_rounds)
}

const STATE: &str = "requestState";
const RESPONSES: &str = "inputResponses";

/// Whether the request could end with questions. If not, it need not keep what questions are bound to.
fn may_take_rounds(request: &Request) -> bool {
    let can_answer = |client: &ClientCapabilities| {
        client.elicitation.is_some() || client.sampling.is_some() || client.roots.is_some()
    };
    request.method.may_ask_back_in(request.peer.revision)
        && (can_answer(&request.peer.client_capabilities) || is_resumed(request))
}

/// Whether something of an earlier round came with it.
pub(crate) fn is_resumed(request: &Request) -> bool {
    came_with(request, STATE) || came_with(request, RESPONSES)
}

fn came_with(request: &Request, member: &str) -> bool {
    request.params.get(member).is_some()
}

/// Has the client carry what is known.
struct SealedRoundStore {
    server: Server,
    id: RequestId,
    method: Method,
    /// The text of all parameters.
    params: Box<str>,
    principal: Option<Box<str>>,
    /// Something of an earlier round is among them.
    resumed: bool,
}

impl RoundStore for SealedRoundStore {
    fn open(&self) -> Result<(RoundState, JsonObject), ErrorObject> {
        if !self.resumed {
            return Ok((RoundState::default(), JsonObject::new()));
        }
        let mut params = self.params()?;
        let responses = match params.shift_remove(RESPONSES) {
            None | Some(Value::Null) => JsonObject::new(),
            Some(Value::Object(responses)) => responses,
            Some(_) => return Err(ErrorObject::invalid_params("params.inputResponses must be an object")),
        };
        let memory = match params.shift_remove(STATE) {
            None | Some(Value::Null) => RoundState::default(),
            Some(Value::String(sealed)) => {
                let opened = self.server.state_keys().open(&self.binding(params), &sealed);
                let opened = opened.map_err(|why| ErrorObject::invalid_params(why.to_string()))?;
                // It opened, so it was written here: by another version perhaps.
                let read = std::str::from_utf8(&opened).ok().and_then(|text| serde_json::from_str(text).ok());
                read.ok_or_else(|| {
                    ErrorObject::invalid_params("params.requestState is of another version of this server")
                })?
            }
            Some(_) => return Err(ErrorObject::invalid_params("params.requestState must be a string")),
        };
        Ok((memory, responses))
    }

    fn suspend(&self, requests: InputRequests, memory: &RoundState) -> Answer {
        let state = match self.seal(memory) {
            Ok(state) => state,
            Err(error) => return Answer::error(&self.id, &error),
        };
        let result = InputRequiredResult::new().with_input_requests(requests).with_request_state(state);
        let revision = steadfast_model::Revision::LATEST;
        Answer::result(&self.id, |out| era::write_result(revision, &result, self.server.decoration(), out))
    }
}

impl SealedRoundStore {
    fn params(&self) -> Result<JsonObject, ErrorObject> {
        serde_json::from_str(&self.params)
            .map_err(|error| ErrorObject::invalid_params(format!("the parameters could not be read: {error}")))
    }

    fn seal(&self, memory: &RoundState) -> Result<String, ErrorObject> {
        let written = serde_json::to_vec(memory).map_err(|error| ErrorObject::internal(error.to_string()))?;
        let sealed = self.server.state_keys().seal(&self.binding(self.params()?), &written);
        sealed.map_err(|why| ErrorObject::internal(why.to_string()))
    }

    /// What a state is bound to: the request, whatever the order in which its members were written, and who makes it.
    fn binding(&self, mut params: JsonObject) -> [u8; 32] {
        for passing in [STATE, RESPONSES, "_meta"] {
            params.shift_remove(passing);
        }
        let mut canonical = Value::Object(params);
        canonical.sort_all_objects();
        let principal = self.principal.as_deref();
        let mut hash = Sha256::new();
        // The parts cannot run into each other: a method has no zero byte, and neither has JSON.
        hash.update(self.method.name());
        hash.update([0]);
        hash.update(canonical.to_string());
        hash.update([0, u8::from(principal.is_some())]);
        hash.update(principal.unwrap_or_default());
        hash.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn carrier(method: Method, params: Value, principal: Option<&str>) -> SealedRoundStore {
        SealedRoundStore {
            server: Server::builder("s", "1").state_keys(crate::server::StateKeys::new([3; 32])).build(),
            id: RequestId::from(1),
            method,
            params: params.to_string().into(),
            principal: principal.map(Into::into),
            resumed: true,
        }
    }

    fn sealed() -> String {
        carrier(Method::CallTool, json!({"name": "t", "arguments": {"a": 1, "b": {"c": 2, "d": 3}}}), Some("ann"))
            .seal(&RoundState::default())
            .unwrap()
    }

    #[test]
    fn the_same_request_opens_it_however_it_is_written() {
        let params = json!({
            "requestState": sealed(), "inputResponses": {"k": 1}, "_meta": {"x": 1},
            "arguments": {"b": {"d": 3, "c": 2}, "a": 1}, "name": "t",
        });
        let (_, responses) = carrier(Method::CallTool, params, Some("ann")).open().unwrap();
        assert_eq!(Value::Object(responses), json!({"k": 1}));
    }

    #[test]
    fn another_method_argument_or_principal_does_not_open_it() {
        let arguments = json!({"a": 1, "b": {"c": 2, "d": 3}});
        for (method, arguments, principal) in [
            (Method::GetPrompt, arguments.clone(), Some("ann")),
            (Method::CallTool, json!({"a": 2, "b": {"c": 2, "d": 3}}), Some("ann")),
            (Method::CallTool, arguments.clone(), Some("bob")),
            (Method::CallTool, arguments, None),
        ] {
            let params = json!({"name": "t", "arguments": arguments, "requestState": sealed()});
            let error = carrier(method, params, principal).open().unwrap_err();
            assert_eq!(error.code, steadfast_model::code::INVALID_PARAMS);
        }
    }

    #[test]
    fn what_is_no_state_and_no_answers_is_refused() {
        for params in [json!({"requestState": 7}), json!({"inputResponses": [1]}), json!({"requestState": ""})] {
            let error = carrier(Method::CallTool, params, None).open().unwrap_err();
            assert_eq!(error.code, steadfast_model::code::INVALID_PARAMS);
        }
        let nothing = json!({"requestState": null, "inputResponses": null});
        assert!(carrier(Method::CallTool, nothing, None).open().is_ok());
    }
}
