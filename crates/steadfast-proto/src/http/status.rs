//! The HTTP status of a response in stateless revisions: the only place that maps JSON-RPC error codes to HTTP statuses.

use steadfast_model::code;

use crate::json::JsonScanner;
use crate::salvage::LONGEST_ID;

/// The HTTP status of a JSON-RPC error response with this code.
///
/// A 4xx status means that the request cannot be served; 404 is reserved for unknown methods, so that clients can detect the
/// features of a server. A response with the error of a handler has status 200 like a result: a client that checks the status
/// first would drop the error, and a proxy would retry the request.
///
/// Once an event stream is open its HTTP status is 200, whatever the JSON-RPC response is.
pub const fn of_error(code: i64) -> u16 {
    match code {
        code::PARSE_ERROR
        | code::INVALID_REQUEST
        | code::INVALID_PARAMS
        | code::HEADER_MISMATCH
        | code::MISSING_CAPABILITY
        | code::UNSUPPORTED_VERSION => 400,
        code::METHOD_NOT_FOUND => 404,
        _ => 200,
    }
}

/// The HTTP status of a response that this crate has encoded: 200 for a result, and what [`of_error`] says for an error.
pub fn of_answer(body: &[u8]) -> u16 {
    error_code(body).map_or(200, of_error)
}

/// The error code of an encoded response, found without parsing results: this crate encodes members in a fixed order.
fn error_code(body: &[u8]) -> Option<i64> {
    let rest = body.strip_prefix(b"{\"jsonrpc\":\"2.0\",")?;
    let rest = match rest.strip_prefix(b"\"id\":") {
        Some(rest) => {
            let start = rest.get(..LONGEST_ID + 64).unwrap_or(rest);
            // The cut may be inside a character, after the id.
            let whole = std::str::from_utf8(start).map_or_else(|error| error.valid_up_to(), str::len);
            let text = std::str::from_utf8(start.get(..whole)?).ok()?;
            let id = JsonScanner::new(text, 1).value(0).ok()?;
            rest.get(id.end..)?.strip_prefix(b",")?
        }
        None => rest,
    };
    let digits = rest.strip_prefix(b"\"error\":{\"code\":")?;
    let end = digits.iter().position(|byte| !matches!(byte, b'-' | b'0'..=b'9'))?;
    std::str::from_utf8(digits.get(..end)?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_codes_of_the_specification_have_their_status() {
        for (code, status) in [(-32020, 400), (-32021, 400), (-32022, 400), (-32602, 400), (-32601, 404)] {
            assert_eq!(of_error(code), status, "{code}");
        }
    }

    #[test]
    fn an_error_response_has_the_status_of_its_code() {
        use crate::encode::{EncodedResponse, error_without_id};
        use steadfast_model::{ErrorObject, RequestId};
        for id in [RequestId::from(7), RequestId::from("a\"},\"error\":{\"code\":1"), RequestId::from("")] {
            let error = EncodedResponse::error(&id, &ErrorObject::method_not_found("x"));
            assert_eq!(of_answer(&error.into_bytes()), 404);
            assert_eq!(of_answer(&EncodedResponse::serialized(&id, &"x".repeat(9000)).into_bytes()), 200);
        }
        assert_eq!(of_answer(&error_without_id(&ErrorObject::parse_error("x"), true)), 400);
        assert_eq!(of_answer(&error_without_id(&ErrorObject::parse_error("x"), false)), 400);
    }

    #[test]
    fn the_error_of_a_handler_has_status_200() {
        for code in [code::INTERNAL_ERROR, code::RESOURCE_NOT_FOUND, 1, i64::MIN] {
            assert_eq!(of_error(code), 200, "{code}");
        }
    }
}
