//! The HTTP status of an answer in 2026-07-28: the one place where codes of errors become statuses.

use steadfast_model::code;

/// The status of an answer that is an error with this code.
///
/// A 4xx says that the request cannot be served as it is; 404 is kept for methods, which is how a client finds out what a
/// server has. What a handler fails with is an answer like any other, and 200: a client that looks at the status first
/// would drop its text, and a proxy would try the request again.
///
/// Once a stream is open its status is 200, whatever the answer is.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_specification_names_has_its_status() {
        for (code, status) in [(-32020, 400), (-32021, 400), (-32022, 400), (-32602, 400), (-32601, 404)] {
            assert_eq!(of_error(code), status, "{code}");
        }
    }

    #[test]
    fn what_a_handler_fails_with_is_an_answer() {
        for code in [code::INTERNAL_ERROR, code::RESOURCE_NOT_FOUND, 1, i64::MIN] {
            assert_eq!(of_error(code), 200, "{code}");
        }
    }
}
