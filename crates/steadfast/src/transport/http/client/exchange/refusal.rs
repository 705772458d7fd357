//! How a call ends when the server refuses its HTTP request.

use http::StatusCode;
use http::header::LOCATION;
use serde_json::json;
use steadfast_model::{ErrorObject, Method, code};
use steadfast_proto::connection::{CallEnd, TransmitKind};
use steadfast_proto::envelope::{Envelope, Message, ResultOrError};

use super::{HttpClientDriverEvent, MessagePost, lost};
use crate::error::HTTP_STATUS;
use crate::transport::http::client::fetch::{TransportFetchResponse, read_body};

/// An HTTP response that is not a success, read to its end.
pub(crate) struct HttpErrorResponse {
    pub(crate) status: StatusCode,
    message: Box<Envelope>,
    /// Whether the body of the HTTP response is a JSON-RPC error with the id of the request.
    has_request_id: bool,
    /// The JSON-RPC error in the body of the HTTP response, whatever its id.
    pub(crate) error: Option<ErrorObject>,
    /// The origin to which the server redirects, if it is not the server's own origin.
    other_origin: Option<String>,
}

impl MessagePost {
    /// Ends the call: the server refused it with a JSON-RPC error, or with an HTTP status alone.
    pub(crate) async fn refused(&self, response: TransportFetchResponse) -> Result<(), CallEnd> {
        let refusal = self.read_refusal(response).await;
        self.end_refused(refusal).await
    }

    pub(crate) async fn read_refusal(&self, response: TransportFetchResponse) -> HttpErrorResponse {
        let status = response.status();
        let other_origin = self.other_origin(&response);
        // A body that is too long or breaks off counts as empty: the status is known all the same.
        let body = read_body(response, self.shared.max_message_bytes).await.unwrap_or_default();
        let message = self.shared.parse(body);
        let (has_request_id, error) = match (message.message(), &self.kind) {
            (Ok(Message::Response { id, body: ResultOrError::Error(error) }), kind) => {
                let error = serde_json::from_str(error).ok();
                (matches!(kind, TransmitKind::Request { id: request, .. } if id.as_ref() == Some(request)), error)
            }
            _ => (false, None),
        };
        HttpErrorResponse { status, message, has_request_id, error, other_origin }
    }

    pub(crate) async fn end_refused(&self, refusal: HttpErrorResponse) -> Result<(), CallEnd> {
        let HttpErrorResponse { status, message, has_request_id, error, other_origin } = refusal;
        if has_request_id {
            self.report(HttpClientDriverEvent::Message(message)).await;
            return Ok(());
        }
        // The server refused the request before it read its id; the error is about this request all the same.
        if let Some(error) = error {
            return Err(CallEnd::Refused(error));
        }
        let why = match other_origin {
            Some(origin) => {
                format!("the server redirects to another origin ({origin}), which is not followed: {status}")
            }
            None if self.may_need_legacy_sse(status) => format!(
                "the server responded with status {status}: if it supports HTTP+SSE only, the transport of 2024-11-05, enable \
                 the feature `legacy-sse` of the crate `steadfast`"
            ),
            None => format!("the server responded with status {status}"),
        };
        if status.is_client_error() {
            let error = ErrorObject::new(code::INTERNAL_ERROR, why).with_data(json!({ HTTP_STATUS: status.as_u16() }));
            return Err(CallEnd::Refused(error));
        }
        match status {
            // The server wants the same request at another URL: it has not begun, and a retry would be redirected again.
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => Err(CallEnd::Unsendable(why)),
            // A server error may come in the middle of the work, and 303 names where to look for what was done.
            _ => Err(lost(why)),
        }
    }

    /// Whether the server may support only HTTP+SSE, which this client cannot use because the feature `legacy-sse` is
    /// off.
    fn may_need_legacy_sse(&self, status: StatusCode) -> bool {
        let refuses =
            matches!(status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED);
        cfg!(not(feature = "legacy-sse")) && refuses && self.kind.method() == Some(Method::Initialize)
    }

    /// The origin of the redirect's target, if it differs from the origin of the MCP server.
    fn other_origin(&self, response: &TransportFetchResponse) -> Option<String> {
        let location = response.headers().get(LOCATION).filter(|_| response.status().is_redirection())?;
        let url = self.shared.url.join(location.to_str().ok()?).ok()?;
        (url.origin() != self.shared.url.origin()).then(|| url.origin().ascii_serialization())
    }
}
