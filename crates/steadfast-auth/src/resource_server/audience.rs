//! Compares the audience of an access token with the identifiers of this server.

/// Whether two audiences of access tokens are the same.
///
/// Audiences are compared as text, except that the scheme and the host of an HTTP URL are case-insensitive (RFC 3986, section
/// 6.2.2.1): some clients request tokens for a URL in capitals, and MCP requires that these tokens are accepted. Audiences are
/// not normalized otherwise: another path, port or trailing slash is another audience.
pub(super) fn is_same(ours: &str, theirs: &str) -> bool {
    if ours == theirs {
        return true;
    }
    let (Some(ours), Some(theirs)) = (UrlParts::of(ours), UrlParts::of(theirs)) else { return false };
    ours.scheme.eq_ignore_ascii_case(theirs.scheme)
        && ours.user == theirs.user
        && ours.host.eq_ignore_ascii_case(theirs.host)
        && ours.rest == theirs.rest
}

/// The parts of the HTTP URL of an audience. Only the scheme and the host of an audience are compared without regard to case.
struct UrlParts<'a> {
    scheme: &'a str,
    /// The part of the URL before the `@`, if any.
    user: Option<&'a str>,
    /// Host and port.
    host: &'a str,
    rest: &'a str,
}

impl<'a> UrlParts<'a> {
    fn of(url: &'a str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        if !scheme.eq_ignore_ascii_case("https") && !scheme.eq_ignore_ascii_case("http") {
            return None;
        }
        let (authority, rest) = rest.split_at_checked(rest.find(['/', '?', '#']).unwrap_or(rest.len()))?;
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        Some(Self { scheme, user, host, rest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scheme_and_host_may_be_in_capitals() {
        for same in [
            "HTTPS://mcp.example.com:8443/Mcp?a=B",
            "https://MCP.Example.COM:8443/Mcp?a=B",
            "Https://mcp.example.Com:8443/Mcp?a=B",
        ] {
            assert!(is_same("https://mcp.example.com:8443/Mcp?a=B", same), "{same}");
            assert!(is_same(same, "https://mcp.example.com:8443/Mcp?a=B"), "{same}");
        }
    }

    #[test]
    fn nothing_else_may_differ() {
        for other in [
            "https://mcp.example.com/MCP",
            "https://mcp.example.com/mcp/",
            "https://mcp.example.com/mcp?",
            "https://mcp.example.com:443/mcp",
            "http://mcp.example.com/mcp",
            "https://mcp.example.com.evil.example/mcp",
            "https://user@mcp.example.com/mcp",
            "https://evil.example/@mcp.example.com/mcp",
            "mcp.example.com/mcp",
            "",
        ] {
            assert!(!is_same("https://mcp.example.com/mcp", other), "{other}");
        }
        assert!(!is_same("https://A@mcp.example.com", "https://a@mcp.example.com"));
    }

    #[test]
    fn what_is_no_url_of_http_is_compared_as_text() {
        assert!(is_same("api://Files", "api://Files") && !is_same("api://Files", "api://files"));
        assert!(!is_same("files", "Files") && !is_same("urn:Files", "urn:files"));
    }
}
