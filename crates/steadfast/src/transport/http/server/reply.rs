//! Builds the HTTP responses of the server: status, headers and body of each outcome.

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use steadfast_model::{ErrorObject, RequestId};
use steadfast_proto::encode::{self, EncodedResponse};

use super::body::HttpServiceBody;

const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// An HTTP response with a JSON-RPC message as JSON.
pub(crate) fn json(status: StatusCode, body: Vec<u8>) -> Response<HttpServiceBody> {
    let mut response = Response::new(HttpServiceBody::full(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// An HTTP response that is an event stream.
pub(crate) fn events(body: HttpServiceBody) -> Response<HttpServiceBody> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Tells proxies such as nginx not to buffer events.
    headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

/// An HTTP response with a status and no body.
pub(crate) fn empty(status: StatusCode) -> Response<HttpServiceBody> {
    let mut response = Response::new(HttpServiceBody::empty());
    *response.status_mut() = status;
    response
}

/// An HTTP response with a JSON-RPC error, and with the id of the request if it is known.
pub(crate) fn error(status: StatusCode, id: Option<&RequestId>, error: &ErrorObject) -> Response<HttpServiceBody> {
    let body = match id {
        Some(id) => EncodedResponse::error(id, error).into_bytes(),
        None => encode::error_without_id(error, false),
    };
    json(status, body)
}

/// An HTTP response that refuses a request that is not valid.
pub(crate) fn refuse(status: StatusCode, message: &'static str) -> Response<HttpServiceBody> {
    error(status, None, &ErrorObject::invalid_request(message))
}

/// An HTTP response that refuses an HTTP method that the endpoint does not have.
pub(crate) fn not_allowed(allowed: &'static str) -> Response<HttpServiceBody> {
    let mut response = refuse(StatusCode::METHOD_NOT_ALLOWED, "this endpoint does not support that HTTP method");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

/// An HTTP response that refuses a request with status 503 and `Retry-After`, because a limit is reached or the server
/// shuts down.
pub(crate) fn overloaded(message: &'static str) -> Response<HttpServiceBody> {
    let error_object = ErrorObject::internal(message).with_data(serde_json::json!({ "retryable": true }));
    let mut response = error(StatusCode::SERVICE_UNAVAILABLE, None, &error_object);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}
