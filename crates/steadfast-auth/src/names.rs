//! Where names may lead: no further inside than the server is that named them.
//!
//! A server out on the internet may write a name into its metadata that leads into a private network. What a URL says by itself
//! is checked before; here it is what its name is looked up to. The addresses that were checked are the ones that are
//! connected to, so that a name which leads elsewhere a moment later leads nowhere.
//!
//! Behind a proxy it is the proxy that looks names up, and nothing is known here.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Request;

use crate::place::Place;
use crate::{HttpError, NamedBy, Payload};

/// How long it may take to look a name up.
const PATIENCE: Duration = Duration::from_secs(5);

type Looked = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Looks names up, and knows where servers are.
pub(crate) struct Names {
    look_up: Box<dyn Fn(String) -> Looked + Send + Sync>,
    /// The most outside that each server was seen to be: one that moves inside later does not get further by it.
    servers: Mutex<HashMap<String, Place>>,
}

/// A name, and the only addresses that it may be connected to.
pub(crate) struct Pinned {
    pub(crate) name: String,
    pub(crate) addresses: Vec<SocketAddr>,
}

impl Names {
    /// With the names of the operating system.
    pub(crate) fn new() -> Arc<Self> {
        Self::looked_up(|name| {
            Box::pin(async move {
                let found = tokio::net::lookup_host((name, 0)).await?;
                Ok(found.map(|address| address.ip()).collect())
            })
        })
    }

    pub(crate) fn looked_up(look_up: impl Fn(String) -> Looked + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { look_up: Box::new(look_up), servers: Mutex::default() })
    }

    /// Which addresses a request may go to, if that is not left to its name alone.
    pub(crate) async fn pin(&self, request: &Request<Payload>) -> Result<Option<Pinned>, HttpError> {
        let Some(server) = request.extensions().get::<NamedBy>().map(NamedBy::host) else { return Ok(None) };
        let name = request.uri().host().unwrap_or_default();
        // An address was checked already, and the server itself is where it is.
        if address(name).is_some() || name.eq_ignore_ascii_case(server) {
            return Ok(None);
        }
        let most = self.place(server).await;
        if most == Place::ThisMachine {
            return Ok(None);
        }
        let found = self.addresses(name).await;
        let allowed: Vec<_> = found.iter().filter(|found| Place::of(**found) <= most).collect();
        if allowed.is_empty() && !found.is_empty() {
            let text = format!("{name} leads further inside than {server}, which named it");
            return Err(HttpError::new(text));
        }
        // If there are none it can be reached only through a proxy, which knows more.
        let addresses = allowed.into_iter().map(|address| SocketAddr::new(*address, 0)).collect();
        Ok(Some(Pinned { name: name.to_owned(), addresses }))
    }

    /// Where a server is. If nobody knows, it is outside.
    async fn place(&self, server: &str) -> Place {
        if let Some(address) = address(server) {
            return Place::of(address);
        }
        if Place::of_name(server) == Place::ThisMachine {
            return Place::ThisMachine;
        }
        let known = self.servers(|servers| servers.get(&server.to_ascii_lowercase()).copied());
        if known == Some(Place::Outside) {
            return Place::Outside;
        }
        let found = self.addresses(server).await;
        let found = found.into_iter().map(Place::of).min().unwrap_or(Place::Outside);
        self.servers(|servers| {
            let known = servers.entry(server.to_ascii_lowercase()).or_insert(found);
            *known = found.min(*known);
            *known
        })
    }

    fn servers<T>(&self, action: impl FnOnce(&mut HashMap<String, Place>) -> T) -> T {
        action(&mut self.servers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn addresses(&self, name: &str) -> Vec<IpAddr> {
        let found = tokio::time::timeout(PATIENCE, (self.look_up)(name.to_owned())).await;
        found.ok().and_then(Result::ok).unwrap_or_default()
    }
}

/// A host that is an address.
fn address(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names that lead to these addresses, one after the other at each look, and the last one from then on.
    fn names(table: &'static [(&'static str, &'static [&'static str])]) -> Arc<Names> {
        let looks = Mutex::new(HashMap::<String, usize>::new());
        Names::looked_up(move |name| {
            let mut looks = looks.lock().unwrap();
            let look = looks.entry(name.clone()).or_default();
            let answers = table.iter().find(|(known, _)| *known == name).map(|(_, answers)| *answers);
            let answer = answers.map(|answers| answers[(*look).min(answers.len() - 1)]);
            *look += 1;
            Box::pin(async move {
                let answer = answer.ok_or_else(|| io::Error::other("nobody knows it"))?;
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

    async fn pin(names: &Names, server: &str, url: &str) -> Result<Option<String>, HttpError> {
        let mut request = Request::get(url).body(Payload::default()).unwrap();
        request.extensions_mut().insert(NamedBy::new(server));
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
        let request = Request::get("https://office.example/").body(Payload::default()).unwrap();
        assert!(names(TABLE).pin(&request).await.unwrap().is_none());
    }
}
