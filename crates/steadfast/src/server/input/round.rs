//! One round of a request that may take several rounds (2026-07-28): the request state and the answers that came with
//! the request, and the input-required result that ends the round.
//!
//! Only `tools/call`, `prompts/get` and `resources/read` may request input. The state at the end of a round is sealed
//! and carried by the client; it can be opened only for the same method with the same parameters from the same
//! principal.

use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use steadfast_model::wire;
use steadfast_model::{
    ClientCapabilities, ErrorObject, InputRequests, InputRequiredResult, JsonObject, Method, RequestId, Revision,
};
use steadfast_proto::connection::Request;
use steadfast_proto::encode::EncodedResponse;

use crate::runtime::{DriverMailbox, HandlerExecution, HandlerInputs, InputRoundState, InputRoundStore, Runtime};
use crate::server::Server;

/// Creates the execution of a request whose handler may request input from the client.
pub(crate) fn execution(
    server: &Server,
    request: &Request,
    mailbox: &Arc<DriverMailbox>,
    runtime: &Arc<dyn Runtime>,
) -> Arc<HandlerExecution> {
    let input_rounds = may_take_rounds(request).then(|| {
        let store = SealedRoundStore {
            server: server.clone(),
            id: request.id.clone(),
            method: request.method,
            revision: request.peer.revision,
            params: request.params.text().into(),
            principal: mailbox.owner().map(Into::into),
            resumed: is_resumed(request),
        };
        Box::new(HandlerInputs::new(Box::new(store)))
    });
    HandlerExecution::with_input_rounds(request, Arc::clone(mailbox), Arc::clone(runtime), input_rounds)
}

const STATE: &str = "requestState";
const RESPONSES: &str = "inputResponses";

/// Whether the request could end with input requests. If a request cannot end with input requests, its parameters need
/// not be kept for sealing the request state.
fn may_take_rounds(request: &Request) -> bool {
    let can_answer = |client: &ClientCapabilities| {
        client.elicitation.is_some() || client.sampling.is_some() || client.roots.is_some()
    };
    request.method.is_deferrable_in(request.peer.revision)
        && (can_answer(&request.peer.client_capabilities) || is_resumed(request))
}

/// Whether the request has the state or the answers of an earlier round.
fn is_resumed(request: &Request) -> bool {
    has_member(request, STATE) || has_member(request, RESPONSES)
}

fn has_member(request: &Request, member: &str) -> bool {
    request.params.get(member).is_some()
}

/// Lets the client carry the state of a round to the next round, sealed.
struct SealedRoundStore {
    server: Server,
    id: RequestId,
    method: Method,
    revision: Revision,
    /// The JSON text of all parameters of the request.
    params: Box<str>,
    principal: Option<Box<str>>,
    /// Whether the parameters contain the request state or the input responses of an earlier round.
    resumed: bool,
}

impl InputRoundStore for SealedRoundStore {
    fn open(&self) -> Result<(InputRoundState, JsonObject), ErrorObject> {
        if !self.resumed {
            return Ok((InputRoundState::default(), JsonObject::new()));
        }
        let mut params = self.params()?;
        let responses = match params.shift_remove(RESPONSES) {
            None | Some(Value::Null) => JsonObject::new(),
            Some(Value::Object(responses)) => responses,
            Some(_) => return Err(ErrorObject::invalid_params("params.inputResponses must be an object")),
        };
        let memory = match params.shift_remove(STATE) {
            None | Some(Value::Null) => InputRoundState::default(),
            Some(Value::String(sealed)) => {
                let opened = self.server.state_keys().open(&self.binding(params), &sealed);
                let opened = opened.map_err(|why| ErrorObject::invalid_params(why.to_string()))?;
                // It was opened with our key, so this server wrote it, perhaps in another version.
                let read = std::str::from_utf8(&opened).ok().and_then(|text| serde_json::from_str(text).ok());
                read.ok_or_else(|| {
                    ErrorObject::invalid_params("params.requestState was written by another version of this server")
                })?
            }
            Some(_) => return Err(ErrorObject::invalid_params("params.requestState must be a string")),
        };
        Ok((memory, responses))
    }

    fn is_resumed(&self) -> bool {
        self.resumed
    }

    fn suspend(&self, requests: InputRequests, memory: &InputRoundState) -> EncodedResponse {
        let state = match self.seal(memory) {
            Ok(state) => state,
            Err(error) => return EncodedResponse::error(&self.id, &error),
        };
        let result = InputRequiredResult::new().with_input_requests(requests).with_request_state(state);
        EncodedResponse::result(&self.id, |out| {
            wire::write_result(self.revision, &result, self.server.common_members(), out)
        })
    }
}

impl SealedRoundStore {
    fn params(&self) -> Result<JsonObject, ErrorObject> {
        serde_json::from_str(&self.params)
            .map_err(|error| ErrorObject::invalid_params(format!("params could not be decoded: {error}")))
    }

    fn seal(&self, memory: &InputRoundState) -> Result<String, ErrorObject> {
        let written = serde_json::to_vec(memory).map_err(|error| ErrorObject::internal(error.to_string()))?;
        let sealed = self.server.state_keys().seal(&self.binding(self.params()?), &written);
        sealed.map_err(|why| ErrorObject::internal(why.to_string()))
    }

    /// A hash of what a sealed request state is bound to: the method and parameters of the request, independent of the
    /// order of members, and its principal.
    fn binding(&self, mut params: JsonObject) -> [u8; 32] {
        for passing in [STATE, RESPONSES, "_meta"] {
            params.shift_remove(passing);
        }
        let mut canonical = Value::Object(params);
        canonical.sort_all_objects();
        let principal = self.principal.as_deref();
        let mut hash = Sha256::new();
        // The parts cannot run into each other: neither a method nor JSON text contains a zero byte.
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

    fn store(method: Method, params: Value, principal: Option<&str>) -> SealedRoundStore {
        SealedRoundStore {
            server: Server::builder("s", "1").state_keys(crate::server::StateKeys::new([3; 32])).build(),
            id: RequestId::from(1),
            method,
            revision: Revision::LATEST,
            params: params.to_string().into(),
            principal: principal.map(Into::into),
            resumed: true,
        }
    }

    fn sealed() -> String {
        store(Method::CallTool, json!({"name": "t", "arguments": {"a": 1, "b": {"c": 2, "d": 3}}}), Some("ann"))
            .seal(&InputRoundState::default())
            .unwrap()
    }

    #[test]
    fn the_same_request_opens_it_however_it_is_written() {
        let params = json!({
            "requestState": sealed(), "inputResponses": {"k": 1}, "_meta": {"x": 1},
            "arguments": {"b": {"d": 3, "c": 2}, "a": 1}, "name": "t",
        });
        let (_, responses) = store(Method::CallTool, params, Some("ann")).open().unwrap();
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
            let error = store(method, params, principal).open().unwrap_err();
            assert_eq!(error.code, steadfast_model::code::INVALID_PARAMS);
        }
    }

    #[test]
    fn what_is_no_state_and_no_answers_is_refused() {
        for params in [json!({"requestState": 7}), json!({"inputResponses": [1]}), json!({"requestState": ""})] {
            let error = store(Method::CallTool, params, None).open().unwrap_err();
            assert_eq!(error.code, steadfast_model::code::INVALID_PARAMS);
        }
        let nothing = json!({"requestState": null, "inputResponses": null});
        assert!(store(Method::CallTool, nothing, None).open().is_ok());
    }
}
