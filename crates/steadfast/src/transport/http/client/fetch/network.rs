//! How a server is reached: whom TLS trusts, which proxy is asked, and where a redirect may lead.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use http::header::LOCATION;
use http::{HeaderMap, StatusCode};
use reqwest::Url;
use reqwest::redirect::Policy;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;

/// More redirects than this are a loop.
pub(crate) const REDIRECTS: usize = 5;

/// How long it may take to reach the server.
const CONNECTING: Duration = Duration::from_secs(10);

/// What a target says of the way to its server.
#[derive(Clone, Default)]
pub(crate) struct Network {
    /// Those that are trusted beside the system's.
    certificates: Vec<CertificateDer<'static>>,
    proxy: Proxy,
}

#[derive(Clone, Default)]
enum Proxy {
    /// What the environment says, except for this machine.
    #[default]
    Environment,
    None,
    Through(Url),
}

impl Network {
    /// Trusts a certificate too: one in DER, or all of a text in PEM.
    pub(crate) fn trust(&mut self, certificate: &[u8]) -> Result<(), String> {
        let in_pem = CertificateDer::pem_slice_iter(certificate).collect::<Result<Vec<_>, _>>();
        let found = match in_pem {
            Ok(found) if !found.is_empty() => found,
            Ok(_) => vec![CertificateDer::from(certificate.to_vec())],
            Err(error) => return Err(format!("not a certificate: {error}")),
        };
        for certificate in &found {
            let readable = RootCertStore::empty().add(certificate.clone());
            readable.map_err(|error| format!("not a certificate: {error}"))?;
        }
        self.certificates.extend(found);
        Ok(())
    }

    /// Goes through this proxy, wherever the server is. What is wrong with it is said without its text, which may hold a
    /// password.
    pub(crate) fn through(&mut self, proxy: &str) -> Result<(), String> {
        let url = Url::parse(proxy).map_err(|error| format!("the proxy is not a URL: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("`{}:` is not a scheme of proxies", url.scheme()));
        }
        self.proxy = Proxy::Through(url);
        Ok(())
    }

    /// Goes through no proxy.
    pub(crate) fn directly(&mut self) {
        self.proxy = Proxy::None;
    }

    /// Whether anything was said of the way.
    pub(crate) fn is_said(&self) -> bool {
        !self.certificates.is_empty() || !matches!(self.proxy, Proxy::Environment)
    }

    /// Makes requests to that server, with a pool of connections.
    pub(crate) fn client(&self, server: &Url) -> io::Result<reqwest::Client> {
        let builder = reqwest::Client::builder()
            .tls_backend_preconfigured(self.tls(server)?)
            // Followed by `Shared`, which has the request authorized for each URL.
            .redirect(Policy::none())
            .connect_timeout(CONNECTING)
            .tcp_nodelay(true)
            // What is not unpacked cannot grow beyond its limits. Another part of the program may have given reqwest the
            // means to.
            .no_gzip()
            .no_brotli()
            .no_deflate()
            .no_zstd();
        let builder = match &self.proxy {
            Proxy::Through(proxy) => builder.proxy(reqwest::Proxy::all(proxy.clone()).map_err(io::Error::other)?),
            _ if self.may_meet_a_proxy(server) => builder,
            _ => builder.no_proxy(),
        };
        builder.build().map_err(io::Error::other)
    }

    fn tls(&self, server: &Url) -> io::Result<ClientConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?;
        let plain = server.scheme() == "http";
        let builder = if plain && !self.may_meet_a_proxy(server) {
            // Nobody has to be trusted, and the system's certificates need not be read.
            builder.with_root_certificates(RootCertStore::empty())
        } else {
            match Verifier::new_with_extra_roots(self.certificates.iter().cloned(), provider) {
                Ok(verifier) => builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)),
                // A system that trusts nobody can speak to servers without TLS all the same.
                Err(_) if plain => builder.with_root_certificates(RootCertStore::empty()),
                Err(error) => return Err(io::Error::other(error)),
            }
        };
        let mut tls = builder.with_no_client_auth();
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(tls)
    }

    fn may_meet_a_proxy(&self, server: &Url) -> bool {
        match self.proxy {
            Proxy::Environment => !is_this_machine(server) && !exempts_everything(),
            Proxy::None => false,
            Proxy::Through(_) => true,
        }
    }
}

/// Whether the environment wants no proxy for anything. For names reqwest sees to that, and for addresses it does not.
fn exempts_everything() -> bool {
    let exceptions = std::env::var("NO_PROXY").or_else(|_| std::env::var("no_proxy")).unwrap_or_default();
    exceptions.split(',').any(|exception| exception.trim() == "*")
}

/// Whether a URL leads to where this program runs: a proxy would look for the server at its own machine.
fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    name == "localhost"
        || name.ends_with(".localhost")
        || address.parse().is_ok_and(|address: Ipv4Addr| address.is_loopback())
        || address.parse().is_ok_and(|address: Ipv6Addr| {
            address.is_loopback() || address.to_ipv4_mapped().is_some_and(|address| address.is_loopback())
        })
}

/// Where a request that was answered like this is to be made again: only where the method and the body stay what they are, and
/// only at the origin that was asked.
pub(crate) fn redirected(asked: &Url, status: StatusCode, headers: &HeaderMap) -> Option<Url> {
    let same_request = matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let location = headers.get(LOCATION).filter(|_| same_request)?;
    let next = asked.join(location.to_str().ok()?).ok()?;
    (next.origin() == asked.origin()).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_many_names() {
        let here = ["localhost", "LOCALHOST.", "a.localhost", "127.0.0.1", "127.9.9.9", "[::1]", "[::ffff:127.0.0.1]"];
        for host in here {
            assert!(is_this_machine(&Url::parse(&format!("http://{host}:1/mcp")).unwrap()), "{host}");
        }
        for host in ["example.org", "localhost.example.org", "10.0.0.1", "[2001:db8::1]", "notlocalhost"] {
            assert!(!is_this_machine(&Url::parse(&format!("http://{host}:1/mcp")).unwrap()), "{host}");
        }
    }

    #[test]
    fn what_is_no_certificate_is_refused() {
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for text in ["", "hello", "-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----\n", broken] {
            assert!(Network::default().trust(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_no_proxy_is_refused_without_its_secrets() {
        for url in ["me:s3cret@nowhere", "ftp://me:s3cret@nowhere", "http://me:s3cret@:x"] {
            let refused = Network::default().through(url).unwrap_err();
            assert!(!refused.contains("s3cret"), "{refused}");
        }
    }
}
