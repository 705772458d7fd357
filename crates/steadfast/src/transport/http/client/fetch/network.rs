//! How a client connects to an HTTP server: trusted certificates, proxies, and redirects.

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

/// The maximum number of redirects that the client follows for one request; more count as a loop.
pub(crate) const REDIRECTS: usize = 5;

/// How long connecting to the server may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The settings of an `HttpTarget` for connections to its server: trusted certificates and the proxy.
#[derive(Clone, Default)]
pub(crate) struct ClientNetworkSettings {
    /// Certificates that are trusted in addition to those of the operating system.
    certificates: Vec<CertificateDer<'static>>,
    proxy: Proxy,
}

#[derive(Clone, Default)]
enum Proxy {
    /// The proxy that the environment variables name, except for servers on this machine.
    #[default]
    Environment,
    None,
    Through(Url),
}

impl ClientNetworkSettings {
    /// Trusts one certificate in DER, or any number in PEM.
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

    /// Connects to the server through `proxy`, even if the server is on this machine. The error does not show the URL
    /// of the proxy, which may hold a password.
    pub(crate) fn through(&mut self, proxy: &str) -> Result<(), String> {
        let url = Url::parse(proxy).map_err(|error| format!("the proxy is not a URL: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("unsupported proxy scheme `{}:`", url.scheme()));
        }
        self.proxy = Proxy::Through(url);
        Ok(())
    }

    /// Connects to the server without a proxy.
    pub(crate) fn directly(&mut self) {
        self.proxy = Proxy::None;
    }

    /// Whether the proxy or the trusted certificates differ from the default.
    pub(crate) fn is_customized(&self) -> bool {
        !self.certificates.is_empty() || !matches!(self.proxy, Proxy::Environment)
    }

    /// Creates a reqwest client for this server, with a pool of connections.
    pub(crate) fn client(&self, server: &Url) -> io::Result<reqwest::Client> {
        let builder = reqwest::Client::builder()
            .tls_backend_preconfigured(self.tls(server)?)
            // `HttpClientConnection` follows redirects, because each URL is authorized anew.
            .redirect(Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            // A decompressed body could exceed the limits. Another crate of the program may have enabled these features of reqwest.
            .no_gzip()
            .no_brotli()
            .no_deflate()
            .no_zstd();
        let builder = match &self.proxy {
            Proxy::Through(proxy) => builder.proxy(reqwest::Proxy::all(proxy.clone()).map_err(io::Error::other)?),
            _ if self.may_use_proxy(server) => builder,
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
        let builder = if plain && !self.may_use_proxy(server) {
            // No TLS: the system's certificates need not be read.
            builder.with_root_certificates(RootCertStore::empty())
        } else {
            match Verifier::new_with_extra_roots(self.certificates.iter().cloned(), provider) {
                Ok(verifier) => builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)),
                // A system without certificates can still connect to servers without TLS.
                Err(_) if plain => builder.with_root_certificates(RootCertStore::empty()),
                Err(error) => return Err(io::Error::other(error)),
            }
        };
        let mut tls = builder.with_no_client_auth();
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(tls)
    }

    fn may_use_proxy(&self, server: &Url) -> bool {
        match self.proxy {
            Proxy::Environment => !is_this_machine(server) && !exempts_everything(),
            Proxy::None => false,
            Proxy::Through(_) => true,
        }
    }
}

/// Whether `NO_PROXY` contains `*`, which reqwest applies to host names, but not to IP addresses.
fn exempts_everything() -> bool {
    let exceptions = std::env::var("NO_PROXY").or_else(|_| std::env::var("no_proxy")).unwrap_or_default();
    exceptions.split(',').any(|exception| exception.trim() == "*")
}

/// Whether the host of a URL is this machine: a proxy would look for such a server on the proxy's own machine.
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

/// The URL of a redirect, if it keeps the method and the body of the request and stays at the origin of `url`.
pub(crate) fn redirected(url: &Url, status: StatusCode, headers: &HeaderMap) -> Option<Url> {
    let same_request = matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let location = headers.get(LOCATION).filter(|_| same_request)?;
    let next = url.join(location.to_str().ok()?).ok()?;
    (next.origin() == url.origin()).then_some(next)
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
    fn a_malformed_certificate_is_refused() {
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for text in ["", "hello", "-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----\n", broken] {
            assert!(ClientNetworkSettings::default().trust(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_malformed_proxy_url_is_refused_without_showing_its_secrets() {
        for url in ["me:s3cret@nowhere", "ftp://me:s3cret@nowhere", "http://me:s3cret@:x"] {
            let refused = ClientNetworkSettings::default().through(url).unwrap_err();
            assert!(!refused.contains("s3cret"), "{refused}");
        }
    }
}
