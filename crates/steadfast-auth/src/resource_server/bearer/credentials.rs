//! Extracts the access token of an inbound HTTP request, and recognizes malformed credentials.

use http::header::AUTHORIZATION;
use http::request::Parts;

use crate::resource_server::AccessToken;

/// The credentials of an inbound HTTP request.
#[derive(Debug)]
pub(super) enum InboundRequestCredentials {
    /// The request has no `Authorization` header, or one of another scheme than `Bearer`.
    Absent,
    /// The request has one well-formed bearer token.
    Bearer(AccessToken),
    /// The request has an `Authorization` header of the scheme `Bearer` without a well-formed token.
    Malformed,
    /// The request has more than one token, or a token in a place where none is allowed.
    Misplaced(&'static str),
}

/// Removes the credentials from an inbound HTTP request, and returns them. The request never keeps an `Authorization` header,
/// so no inner service can pass the token on or log it.
pub(super) fn take(parts: &mut Parts) -> InboundRequestCredentials {
    let credentials = read(parts);
    parts.headers.remove(AUTHORIZATION);
    credentials
}

fn read(parts: &Parts) -> InboundRequestCredentials {
    if has_token_in_query(parts) {
        return InboundRequestCredentials::Misplaced("an access token must not be in the query of the URL");
    }
    let mut headers = parts.headers.get_all(AUTHORIZATION).iter();
    let (Some(header), more) = (headers.next(), headers.next()) else { return InboundRequestCredentials::Absent };
    if more.is_some() {
        return InboundRequestCredentials::Misplaced("more than one Authorization header");
    }
    let Ok(header) = header.to_str() else { return InboundRequestCredentials::Malformed };
    let (scheme, rest) = header.split_once(' ').unwrap_or((header, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return InboundRequestCredentials::Absent;
    }
    match AccessToken::parse(rest.trim_matches(' ')) {
        Some(token) => InboundRequestCredentials::Bearer(token),
        None => InboundRequestCredentials::Malformed,
    }
}

/// Whether the request has an access token in its query. Queries end up in logs and browser histories, so a token in the query
/// is rejected even if the `Authorization` header has a valid one.
fn has_token_in_query(parts: &Parts) -> bool {
    let query = parts.uri.query().unwrap_or_default();
    form_urlencoded::parse(query.as_bytes()).any(|(name, _)| name == "access_token")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(uri: &str, headers: &[&str]) -> InboundRequestCredentials {
        let mut request = http::Request::builder().uri(uri);
        for header in headers {
            request = request.header(AUTHORIZATION, *header);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        let credentials = take(&mut parts);
        assert!(!parts.headers.contains_key(AUTHORIZATION), "the header is taken out whatever it holds");
        credentials
    }

    #[test]
    fn one_bearer_header_is_a_token_whatever_the_case_of_its_scheme() {
        for header in ["Bearer abc", "bearer abc", "BEARER   abc"] {
            assert!(
                matches!(taken("/mcp", &[header]), InboundRequestCredentials::Bearer(token) if token.expose() == "abc"),
                "{header}"
            );
        }
    }

    #[test]
    fn other_schemes_are_no_token() {
        for header in ["Basic YTpi", "DPoP abc", "Bearerabc", "abc"] {
            assert!(matches!(taken("/mcp", &[header]), InboundRequestCredentials::Absent), "{header}");
        }
        assert!(matches!(taken("/mcp", &[]), InboundRequestCredentials::Absent));
    }

    #[test]
    fn a_bearer_header_without_a_token_is_malformed() {
        for header in ["Bearer", "Bearer ", "Bearer a b", "Bearer a,b", "Bearer a, Bearer b"] {
            assert!(matches!(taken("/mcp", &[header]), InboundRequestCredentials::Malformed), "{header}");
        }
    }

    #[test]
    fn two_headers_are_refused_even_when_they_agree() {
        assert!(matches!(taken("/mcp", &["Bearer abc", "Bearer abc"]), InboundRequestCredentials::Misplaced(_)));
        assert!(matches!(taken("/mcp", &["Basic YTpi", "Bearer abc"]), InboundRequestCredentials::Misplaced(_)));
    }

    #[test]
    fn a_token_in_the_query_is_refused_however_it_is_spelled() {
        for uri in ["/mcp?access_token=abc", "/mcp?x=1&access%5Ftoken=abc", "/mcp?access_token"] {
            assert!(matches!(taken(uri, &["Bearer abc"]), InboundRequestCredentials::Misplaced(_)), "{uri}");
        }
        assert!(matches!(taken("/mcp?token=abc", &["Bearer abc"]), InboundRequestCredentials::Bearer(_)));
    }
}
