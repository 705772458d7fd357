//! URLs that users are asked to visit: what is one, and which of them travel in the open.
//!
//! It reads as much of a URL as these questions need. Who takes the URL apart is the client.

use crate::error::Error;

/// Refuses what is no URL. One that is not encrypted is let through, for development, and logged.
pub(crate) fn check(url: &str) -> Result<(), Error> {
    if !is_url(url) {
        return Err(Error::usage("a user can be asked to visit a URL only: `https://` and where to go"));
    }
    if is_open(url) {
        tracing::warn!("a user is asked to visit a URL that is not https: what is sent there can be read on the way");
    }
    Ok(())
}

/// A scheme and what it leads to, in characters that a URL may have; on the web, a host.
fn is_url(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once(':') else { return false };
    let begins = scheme.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
    let is_scheme = begins && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let is_written = rest.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>\"{}|\\^`".contains(&byte));
    let leads = if is_web(scheme) { host(rest).is_some() } else { !rest.is_empty() };
    is_scheme && is_written && leads
}

/// Whether it goes over the network in the open: not to this machine, and not encrypted.
fn is_open(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once(':') else { return false };
    let is_here = |host: &str| matches!(&*host.to_ascii_lowercase(), "localhost" | "127.0.0.1" | "[::1]");
    scheme.eq_ignore_ascii_case("http") && !host(rest).is_some_and(is_here)
}

fn is_web(scheme: &str) -> bool {
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

/// The host in what follows the scheme.
fn host(rest: &str) -> Option<&str> {
    let authority = rest.strip_prefix("//")?.split(['/', '?', '#']).next()?;
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    // The colons of an address stand in brackets.
    let host = match place.split_once(']') {
        Some((address, _)) => place.get(..=address.len())?,
        None => place.split(':').next()?,
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
            assert!(is_open(url), "{url}");
        }
        for url in [
            "https://a.example",
            "http://localhost:8080/",
            "http://LOCALHOST",
            "http://u@127.0.0.1",
            "http://[::1]/",
            "app:x",
        ] {
            assert!(!is_open(url), "{url}");
        }
    }
}
