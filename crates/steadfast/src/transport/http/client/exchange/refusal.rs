//! What it means for a call that the server says no, or that it cannot be reached.

use http::StatusCode;
use http::header::LOCATION;
use serde_json::json;
use steadfast_model::{ErrorObject, code};
use steadfast_proto::connection::CallEnd;
use steadfast_proto::envelope::{self, Message, ResponseBody};
use steadfast_proto::mutant;

use super::{DriverEvent, MessagePost};
use crate::error::HTTP_STATUS;
use crate::transport::http::client::fetch::{FetchResponse, body_of};
use crate::transport::http::client::request::NoResponse;

/// A refusal that was read to its end.
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    body: Vec<u8>,
    /// Whether the body is an error under the request's own id.
    is_under_its_id: bool,
    /// The error in the body, whatever its id.
    pub(crate) error: Option<ErrorObject>,
    /// Where the server points to, if that is not one of its own places.
    elsewhere: Option<String>,
}

impl MessagePost {
    /// The server says no, in its own words or with a bare status.
    pub(crate) async fn refused(&self, response: FetchResponse) -> Result<(), CallEnd> {
        let refusal = self.read_refusal(response).await;
        self.end_refused(refusal).await
    }

    pub(crate) async fn read_refusal(&self, response: FetchResponse) -> Refusal {
        let status = response.status();
        let elsewhere = self.elsewhere(&response);
        // If it is too long, or breaks off, there is still the status.
        let body = body_of(response, self.shared.longest).await.unwrap_or_default();
        let (is_under_its_id, error) = match envelope::read(&body, self.shared.depth) {
            Ok(Message::Response { id, body: ResponseBody::Error(error) }) => {
                (id.is_some() && id == self.outgoing.id, serde_json::from_str(error).ok())
            }
            _ => (false, None),
        };
        Refusal { status, body, is_under_its_id, error, elsewhere }
    }

    pub(crate) async fn end_refused(&self, refusal: Refusal) -> Result<(), CallEnd> {
        let Refusal { status, body, is_under_its_id, error, elsewhere } = refusal;
        if is_under_its_id {
            self.tell(DriverEvent::Message(body)).await;
            return Ok(());
        }
        // It was refused before its id was read; but it is the answer to this request.
        if let Some(error) = error {
            return Err(CallEnd::Refused(error));
        }
        let why = match elsewhere {
            Some(origin) => format!("the server points to another origin ({origin}), where nothing is sent: {status}"),
            None => format!("the server answered with status {status}"),
        };
        if status.is_client_error() {
            let error = ErrorObject::new(code::INTERNAL_ERROR, why).with_data(json!({ HTTP_STATUS: status.as_u16() }));
            return Err(CallEnd::Refused(error));
        }
        match status {
            // A server that wants the same request made elsewhere has not begun, and would say so again.
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => Err(CallEnd::Unsendable(why)),
            // One that fails may have failed in the middle of it, and 303 says where to look for what was done.
            _ => Err(lost(why)),
        }
    }

    /// The origin that a redirect leads to, if it is another one.
    fn elsewhere(&self, response: &FetchResponse) -> Option<String> {
        let location = response.headers().get(LOCATION).filter(|_| response.status().is_redirection())?;
        let url = self.shared.url.join(location.to_str().ok()?).ok()?;
        (url.origin() != self.shared.url.origin()).then(|| url.origin().ascii_serialization())
    }
}

/// What becomes of a message that there is no response to.
pub(crate) fn unanswered(why: NoResponse) -> CallEnd {
    match why {
        // Whoever authorizes has tried what there is to try.
        NoResponse::Unauthorized(why) => CallEnd::Unsendable(format!("not authorized: {why}")),
        NoResponse::Failed(error) if error.is_unwritable() => CallEnd::Unsendable(error.to_string()),
        NoResponse::Failed(error) => {
            CallEnd::Lost { sent: error.is_sent() && !mutant!(BrokenIsUnsent), why: error.to_string() }
        }
    }
}

/// It was sent, and nobody knows what became of it.
pub(crate) fn lost(why: String) -> CallEnd {
    CallEnd::Lost { sent: true, why }
}
