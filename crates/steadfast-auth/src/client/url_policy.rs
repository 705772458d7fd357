//! Which URLs in a server's metadata the client may use.
//!
//! Metadata comes from untrusted servers, and the client sends requests to the URLs in it. Every URL in the metadata therefore
//! has to be encrypted or on this machine, and a server on the internet cannot refer to private addresses. Literal addresses
//! and the name `localhost` are checked in this module; what other host names resolve to is checked by the HTTP client, which
//! gets the host of the server with the request ([`MetadataSourceHost`](crate::MetadataSourceHost)).

use url::{Host, Url};

use super::Error;
use crate::network_zone::NetworkZone;
pub(super) use crate::redact::redact_url;

/// The rule which URLs the metadata of a server may refer to: those in the server's own network zone or a more public one.
#[derive(Clone, Copy, Debug)]
pub(super) struct UrlPolicy(NetworkZone);

impl UrlPolicy {
    /// The URL policy for the metadata of this MCP server, which the user chose.
    pub(super) fn for_server(server: &Url) -> Result<Self, Error> {
        let url_policy = Self(zone(server));
        url_policy.check_url(server)?;
        Ok(url_policy)
    }

    /// Parses a URL from a server's metadata and checks that the client may use it.
    pub(super) fn check(self, text: &str) -> Result<Url, Error> {
        let url = Url::parse(text).map_err(|_| Error::UnsafeUrl(redact_url(text)))?;
        self.check_url(&url)?;
        Ok(url)
    }

    fn check_url(self, url: &Url) -> Result<(), Error> {
        let zone = zone(url);
        let encrypted = match url.scheme() {
            "https" => true,
            "http" => zone == NetworkZone::Loopback,
            _ => false,
        };
        let plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none() && url.has_host();
        if encrypted && plain && zone <= self.0 { Ok(()) } else { Err(Error::UnsafeUrl(redact_url(url.as_str()))) }
    }
}

/// Whether the host of the URL is this machine.
pub(super) fn is_loopback(url: &Url) -> bool {
    zone(url) == NetworkZone::Loopback
}

fn zone(url: &Url) -> NetworkZone {
    match url.host() {
        Some(Host::Domain(name)) => NetworkZone::of_name(name),
        Some(Host::Ipv4(address)) => NetworkZone::of(address.into()),
        Some(Host::Ipv6(address)) => NetworkZone::of(address.into()),
        None => NetworkZone::Public,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url_policy(server: &str) -> UrlPolicy {
        UrlPolicy::for_server(&Url::parse(server).unwrap()).unwrap()
    }

    #[test]
    fn urls_are_encrypted_or_on_this_machine() {
        let url_policy = url_policy("http://localhost:3000/mcp");
        for good in ["https://auth.example.com/token", "http://127.0.0.1:9/", "http://[::1]/", "http://a.localhost/"] {
            assert!(url_policy.check(good).is_ok(), "{good}");
        }
        for bad in
            ["http://auth.example.com/", "ftp://localhost/", "file:///etc/passwd", "javascript:alert(1)", "/token"]
        {
            assert!(url_policy.check(bad).is_err(), "{bad}");
        }
        assert!(UrlPolicy::for_server(&Url::parse("http://mcp.example.com/").unwrap()).is_err());
    }

    #[test]
    fn a_server_outside_cannot_point_inside() {
        let outside = url_policy("https://mcp.example.com/mcp");
        for inside in [
            "https://127.0.0.1/",
            "https://localhost/",
            "https://10.0.0.1/",
            "https://169.254.169.254/latest",
            "https://[::1]/",
            "https://[::ffff:10.0.0.1]/",
            "https://[fd00::1]/",
            "https://100.64.0.1/",
            "https://0.0.0.0/",
            "https://2130706433/",
            // A private address written as a public one: compatible, translated, tunnelled.
            "https://[::127.0.0.1]/",
            "https://[64:ff9b::10.0.0.1]/",
            "https://[2002:a00:1::]/",
            "https://[fec0::1]/",
            "https://192.0.0.1/",
            "https://198.18.0.1/",
            "https://240.0.0.1/",
        ] {
            assert!(outside.check(inside).is_err(), "{inside}");
        }
        for other in ["https://8.8.8.8/", "https://192.0.78.24/", "https://[2606:4700::1111]/"] {
            assert!(outside.check(other).is_ok(), "{other}");
        }
        let private = url_policy("https://10.0.0.5/mcp");
        assert!(private.check("https://10.0.0.1/").is_ok());
        assert!(private.check("https://127.0.0.1/").is_err());
    }

    #[test]
    fn urls_with_passwords_are_not_asked() {
        assert!(url_policy("https://a.example/").check("https://user:s3cr3t@a.example/").is_err());
    }
}
