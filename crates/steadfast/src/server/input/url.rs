//! URLs that users are asked to visit: whether they are valid, and whether they are unencrypted.
//!
//! Before a server asks a user to visit a URL, it parses only the scheme, the host and the characters of the URL. The MCP client
//! that opens the URL parses it completely.

use crate::error::Error;

/// Rejects an invalid URL that a user is asked to visit. A URL whose traffic is not encrypted is accepted, for
/// development, and logged.
pub(crate) fn check(url: &str) -> Result<(), Error> {
    if !is_url(url) {
        return Err(Error::usage(
            "the URL for the user to visit is invalid: it needs a scheme and a host, as in `https://example.com`",
        ));
    }
    if is_unencrypted(url) {
        tracing::warn!("a user is asked to visit a URL that is not https: its traffic can be read on the network");
    }
    Ok(())
}

/// Whether the text is a URL: a scheme and something after it, in allowed characters; http and https need a host.
fn is_url(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once(':') else { return false };
    let starts_with_letter = scheme.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
    let is_scheme =
        starts_with_letter && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let has_valid_characters = rest.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>\"{}|\\^`".contains(&byte));
    let has_target = if is_web(scheme) { host(rest).is_some() } else { !rest.is_empty() };
    is_scheme && has_valid_characters && has_target
}

/// Whether the traffic to a URL goes over the network unencrypted: http, and not to this machine.
fn is_unencrypted(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once(':') else { return false };
    let is_local = |host: &str| matches!(&*host.to_ascii_lowercase(), "localhost" | "127.0.0.1" | "[::1]");
    scheme.eq_ignore_ascii_case("http") && !host(rest).is_some_and(is_local)
}

fn is_web(scheme: &str) -> bool {
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

/// Returns the host in the part of a URL after the scheme.
fn host(rest: &str) -> Option<&str> {
    let authority = rest.strip_prefix("//")?.split(['/', '?', '#']).next()?;
    let host_and_port = authority.rsplit_once('@').map_or(authority, |(_, host_and_port)| host_and_port);
    // The colons of an IPv6 address are in brackets.
    let host = match host_and_port.split_once(']') {
        Some((address, _)) => host_and_port.get(..=address.len())?,
        None => host_and_port.split(':').next()?,
    };
    (!host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_scheme_and_leads_somewhere() {
        for url in
            ["https://a.example", "http://[::1]:80/x?y#z", "HTTPS://u@a.example:1", "mailto:a@b.example", "x+y:z"]
        {
            assert!(is_url(url), "{url}");
        }
        for other in ["", "a", ":a", "1a:b", "https:", "https:a", "https://", "https://:80", "https://?x", "a:", "a: b"]
        {
            assert!(!is_url(other), "{other}");
        }
        assert!(!is_url("https://a.example/<script>") && !is_url("https://ä.example"));
    }

    #[test]
    fn what_goes_over_the_network_in_the_open_is_told_from_what_does_not() {
        for url in [
            "http://a.example",
            "HTTP://localhost.a.example",
            "http://localhost@a.example/",
            "http://127.0.0.1.a.example",
        ] {
            assert!(is_unencrypted(url), "{url}");
        }
        for url in [
            "https://a.example",
            "http://localhost:8080/",
            "http://LOCALHOST",
            "http://u@127.0.0.1",
            "http://[::1]/",
            "app:x",
        ] {
            assert!(!is_unencrypted(url), "{url}");
        }
    }
}
