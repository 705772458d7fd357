//! Protection against server-side request forgery by DNS: the addresses of a host name are checked before a request is sent.
//!
//! A server on the internet may put a URL into its metadata whose host name resolves to a private address. The URL itself is
//! checked elsewhere (`url_policy`); this module checks the addresses that the host name resolves to. The connection is then
//! made to exactly the checked addresses, so that a second lookup with another result (DNS rebinding) has no effect.
//!
//! If the client uses a proxy, the proxy resolves host names, and their addresses cannot be checked in this module.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Request;

use crate::network_zone::NetworkZone;
use crate::{HttpClientBody, HttpClientError, MetadataSourceHost};

/// Timeout of a DNS lookup.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

type DnsLookupFuture = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Resolves host names, checks the network zones of their addresses, and remembers the zones of MCP servers.
pub(crate) struct PinningResolver {
    look_up: Box<dyn Fn(String) -> DnsLookupFuture + Send + Sync>,
    /// The most public network zone in which each MCP server was seen: a server whose name later resolves to a private address
    /// gains nothing.
    servers: Mutex<HashMap<String, NetworkZone>>,
}

/// A host name and the only addresses that the HTTP client may connect to for it.
pub(crate) struct PinnedHost {
    pub(crate) name: String,
    pub(crate) addresses: Vec<SocketAddr>,
}

impl PinningResolver {
    /// Creates a resolver that uses the DNS resolver of the operating system.
    pub(crate) fn new() -> Arc<Self> {
        Self::with_lookup(|name| {
            Box::pin(async move {
                let found = tokio::net::lookup_host((name, 0)).await?;
                Ok(found.map(|address| address.ip()).collect())
            })
        })
    }

    pub(crate) fn with_lookup(look_up: impl Fn(String) -> DnsLookupFuture + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { look_up: Box::new(look_up), servers: Mutex::default() })
    }

    /// The addresses that a request may connect to; `None` if there is no restriction.
    pub(crate) async fn pin(&self, request: &Request<HttpClientBody>) -> Result<Option<PinnedHost>, HttpClientError> {
        let Some(server) = request.extensions().get::<MetadataSourceHost>().map(MetadataSourceHost::host) else {
            return Ok(None);
        };
        let name = request.uri().host().unwrap_or_default();
        // A literal address was checked already, and the server may always refer to itself.
        if address(name).is_some() || name.eq_ignore_ascii_case(server) {
            return Ok(None);
        }
        let max_zone = self.zone(server).await;
        if max_zone == NetworkZone::Loopback {
            return Ok(None);
        }
        let found = self.addresses(name).await;
        let allowed: Vec<_> = found.iter().filter(|found| NetworkZone::of(**found) <= max_zone).collect();
        if allowed.is_empty() && !found.is_empty() {
            let text = format!("{name} resolves to a more private network than {server}, which referred to it");
            return Err(HttpClientError::new(text));
        }
        // Without an address the host is reachable only through a proxy, which resolves it.
        let addresses = allowed.into_iter().map(|address| SocketAddr::new(*address, 0)).collect();
        Ok(Some(PinnedHost { name: name.to_owned(), addresses }))
    }

    /// The network zone of an MCP server: public if its host name cannot be resolved.
    async fn zone(&self, server: &str) -> NetworkZone {
        if let Some(address) = address(server) {
            return NetworkZone::of(address);
        }
        if NetworkZone::of_name(server) == NetworkZone::Loopback {
            return NetworkZone::Loopback;
        }
        let known = self.servers(|servers| servers.get(&server.to_ascii_lowercase()).copied());
        if known == Some(NetworkZone::Public) {
            return NetworkZone::Public;
        }
        let found = self.addresses(server).await;
        let found = found.into_iter().map(NetworkZone::of).min().unwrap_or(NetworkZone::Public);
        self.servers(|servers| {
            let known = servers.entry(server.to_ascii_lowercase()).or_insert(found);
            *known = found.min(*known);
            *known
        })
    }

    fn servers<T>(&self, action: impl FnOnce(&mut HashMap<String, NetworkZone>) -> T) -> T {
        action(&mut self.servers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn addresses(&self, name: &str) -> Vec<IpAddr> {
        let found = tokio::time::timeout(LOOKUP_TIMEOUT, (self.look_up)(name.to_owned())).await;
        found.ok().and_then(Result::ok).unwrap_or_default()
    }
}

/// Parses the host as an IP address; `None` if it is a host name.
fn address(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A resolver with this table: each lookup of a name returns its next entry, and the last one from then on.
    fn names(table: &'static [(&'static str, &'static [&'static str])]) -> Arc<PinningResolver> {
        let looks = Mutex::new(HashMap::<String, usize>::new());
        PinningResolver::with_lookup(move |name| {
            let mut looks = looks.lock().unwrap();
            let look = looks.entry(name.clone()).or_default();
            let answers = table.iter().find(|(known, _)| *known == name).map(|(_, answers)| *answers);
            let answer = answers.map(|answers| answers[(*look).min(answers.len() - 1)]);
            *look += 1;
            Box::pin(async move {
                let answer = answer.ok_or_else(|| io::Error::other("unknown host"))?;
                Ok(answer.split(' ').map(|address| address.parse().unwrap()).collect())
            })
        })
    }

    const TABLE: &[(&str, &[&str])] = &[
        ("public.example", &["192.0.2.1"]),
        ("office.example", &["10.0.0.1"]),
        ("home.example", &["127.0.0.1"]),
        ("both.example", &["192.0.2.2 10.0.0.2"]),
        ("metadata.example", &["169.254.169.254"]),
        ("moving.example", &["192.0.2.3", "10.0.0.3"]),
    ];

    async fn pin(names: &PinningResolver, server: &str, url: &str) -> Result<Option<String>, HttpClientError> {
        let mut request = Request::get(url).body(HttpClientBody::default()).unwrap();
        request.extensions_mut().insert(MetadataSourceHost::new(server));
        let pinned = names.pin(&request).await?;
        let shown = |address: &SocketAddr| address.ip().to_string();
        Ok(pinned.map(|pinned| pinned.addresses.iter().map(shown).collect::<Vec<_>>().join(" ")))
    }

    #[tokio::test]
    async fn a_name_leads_no_further_inside_than_the_server_that_wrote_it() {
        let names = names(TABLE);
        for (server, url, expected) in [
            ("public.example", "https://office.example/", None),
            ("public.example", "https://home.example/", None),
            ("public.example", "https://metadata.example/", None),
            ("office.example", "https://home.example/", None),
            ("both.example", "https://office.example/", None),
            ("public.example", "https://both.example/", Some("192.0.2.2")),
            ("office.example", "https://metadata.example/", Some("169.254.169.254")),
            ("10.0.0.9", "https://office.example/", Some("10.0.0.1")),
            ("office.example", "https://public.example/", Some("192.0.2.1")),
        ] {
            let pinned = pin(&names, server, url).await.ok().flatten();
            assert_eq!(pinned.as_deref(), expected, "{server} names {url}");
        }
    }

    #[tokio::test]
    async fn what_a_server_on_this_machine_names_is_left_alone() {
        let names = names(TABLE);
        for server in ["127.0.0.1", "[::1]", "localhost", "a.LOCALHOST.", "home.example"] {
            assert_eq!(pin(&names, server, "https://office.example/").await, Ok(None), "{server}");
        }
        assert_eq!(pin(&names, "office.example", "https://OFFICE.example/").await, Ok(None), "the server itself");
    }

    #[tokio::test]
    async fn a_server_that_moves_inside_gets_no_further_by_it() {
        let names = names(TABLE);
        for _ in 0..2 {
            assert!(pin(&names, "moving.example", "https://office.example/").await.is_err());
        }
    }

    #[tokio::test]
    async fn a_name_that_nobody_knows_leads_nowhere_but_to_a_proxy() {
        assert_eq!(pin(&names(TABLE), "public.example", "https://unknown.example/").await, Ok(Some(String::new())));
    }

    #[tokio::test]
    async fn what_no_server_named_is_left_alone() {
        let request = Request::get("https://office.example/").body(HttpClientBody::default()).unwrap();
        assert!(names(TABLE).pin(&request).await.unwrap().is_none());
    }
}
