//! Checks `Origin` and `Host`: which browser pages may send requests to this server, and which host names these requests may
//! use.
//!
//! A page in a user's browser can send requests to a server on the user's machine, and with DNS rebinding it can even read the
//! responses. The requests of a page still carry the page's origin and the host name that it used, so both are compared with
//! allow lists.

use super::{Headers, SingleHeader};

/// The origins and host names that a server allows. Requests with other origins or host names are refused.
///
/// ```
/// use steadfast_proto::http::origin_policy::OriginPolicy;
/// let guard = OriginPolicy::loopback().allow_origin("https://app.example.com");
/// assert!(guard.allows_origin("http://localhost:5173"));
/// assert!(guard.allows_origin("https://app.example.com"));
/// assert!(!guard.allows_origin("https://evil.example.com"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginPolicy {
    origins: AllowList,
    hosts: AllowList,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct AllowList {
    any: bool,
    loopback: bool,
    named: Vec<String>,
}

/// Why an HTTP request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OriginRejection {
    /// The origin of the request is not allowed: status 403.
    Origin,
    /// The host that the request names is not allowed: status 403, or 400 if the request names no host.
    Host,
}

impl OriginPolicy {
    /// The policy for a server on the loopback interface: allows origins and host names of this machine, on any port.
    pub fn loopback() -> Self {
        let list = AllowList { any: false, loopback: true, named: Vec::new() };
        Self { origins: list.clone(), hosts: list }
    }

    /// The policy for a public server: allows no browser pages, and any host name.
    pub fn public() -> Self {
        Self {
            origins: AllowList { any: false, loopback: false, named: Vec::new() },
            hosts: AllowList { any: true, loopback: false, named: Vec::new() },
        }
    }

    /// Allows browser pages of this origin, such as `https://app.example.com`.
    pub fn allow_origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.named.push(origin.into());
        self
    }

    /// Allows browser pages of every origin. A server should allow every origin only if its data is public.
    pub fn allow_any_origin(mut self) -> Self {
        self.origins.any = true;
        self
    }

    /// Allows requests whose `Host` header names `host`, such as `mcp.example.com` (any port) or
    /// `mcp.example.com:8443`.
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.named.push(host.into());
        self
    }

    /// Allows requests for every host name in `Host`.
    pub fn allow_any_host(mut self) -> Self {
        self.hosts.any = true;
        self
    }

    /// Whether the origin and host of a request are allowed. The parameter `authority` is the HTTP/2 counterpart of `Host`.
    pub fn check(&self, headers: &(impl Headers + ?Sized), authority: Option<&str>) -> Result<(), OriginRejection> {
        match SingleHeader::of(headers, "origin") {
            SingleHeader::Absent => {}
            SingleHeader::Value(origin) if self.allows_origin(origin) => {}
            _ => return Err(OriginRejection::Origin),
        }
        let host = SingleHeader::of(headers, "host");
        let agree = match (host, authority) {
            (SingleHeader::Value(host), Some(authority)) => host.eq_ignore_ascii_case(authority),
            (SingleHeader::Value(_) | SingleHeader::Absent, _) => true,
            _ => false,
        };
        let host = if let SingleHeader::Value(host) = host { Some(host) } else { authority };
        if agree && (self.hosts.any || host.is_some_and(|host| self.allows_host(host))) {
            return Ok(());
        }
        Err(OriginRejection::Host)
    }

    /// Whether browser pages of this origin are allowed.
    pub fn allows_origin(&self, origin: &str) -> bool {
        let list = &self.origins;
        if list.any || list.named.iter().any(|named| named.eq_ignore_ascii_case(origin)) {
            return true;
        }
        let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        list.loopback && rest.is_some_and(is_loopback)
    }

    /// Whether the server allows requests whose `Host` header names `host`.
    pub fn allows_host(&self, host: &str) -> bool {
        let list = &self.hosts;
        let name = split_port(host).map(|(name, _)| name);
        let named = |known: &String| {
            known.eq_ignore_ascii_case(host) || name.is_some_and(|name| known.eq_ignore_ascii_case(name))
        };
        list.any || list.named.iter().any(named) || (list.loopback && is_loopback(host))
    }
}

fn is_loopback(authority: &str) -> bool {
    let Some((name, _)) = split_port(authority) else { return false };
    name.eq_ignore_ascii_case("localhost") || name == "127.0.0.1" || name == "[::1]"
}

/// The host name and the port of a URI authority; `None` if the text is not an authority.
fn split_port(authority: &str) -> Option<(&str, Option<&str>)> {
    let end_of_name = authority.rfind(']').map_or(0, |bracket| bracket + 1);
    let (name, port) = match authority.get(end_of_name..)?.find(':') {
        Some(colon) => authority.split_at_checked(end_of_name + colon).map(|(name, port)| (name, port.get(1..)))?,
        None => (authority, None),
    };
    let digits = port.is_none_or(|port| port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit()));
    let clean = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._[]:".contains(&byte));
    (digits && clean && !name.is_empty()).then_some((name, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(guard: &OriginPolicy, origin: Option<&str>, host: Option<&str>) -> Result<(), OriginRejection> {
        let headers: Vec<(&str, &str)> =
            [("origin", origin), ("host", host)].into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        guard.check(headers.as_slice(), None)
    }

    #[test]
    fn a_rebound_name_is_refused_on_loopback() {
        let guard = OriginPolicy::loopback();
        assert_eq!(check(&guard, None, Some("evil.example.com")), Err(OriginRejection::Host));
        assert_eq!(
            check(&guard, Some("http://evil.example.com"), Some("localhost:3210")),
            Err(OriginRejection::Origin)
        );
        assert_eq!(check(&guard, None, None), Err(OriginRejection::Host));
    }

    #[test]
    fn loopback_names_are_allowed_on_any_port() {
        for host in ["localhost", "localhost:3210", "LOCALHOST:1", "127.0.0.1:3210", "[::1]", "[::1]:80"] {
            assert_eq!(check(&OriginPolicy::loopback(), Some(&format!("http://{host}")), Some(host)), Ok(()), "{host}");
        }
    }

    #[test]
    fn names_that_resemble_loopback_are_refused() {
        for host in [
            "localhost.evil.com",
            "127.0.0.1.evil.com",
            "localhost:80@evil.com",
            "localhost:x",
            "",
            ":80",
            "[::1",
            "[::1]x:80",
        ] {
            assert!(!OriginPolicy::loopback().allows_host(host), "{host}");
            assert!(!OriginPolicy::loopback().allows_origin(&format!("http://{host}")), "{host}");
        }
        assert!(!OriginPolicy::loopback().allows_origin("null"));
        assert!(!OriginPolicy::loopback().allows_origin("file://localhost"));
    }

    #[test]
    fn a_public_server_allows_any_host_and_only_listed_origins() {
        let guard = OriginPolicy::public().allow_origin("https://app.example.com");
        assert_eq!(check(&guard, None, Some("mcp.example.com")), Ok(()));
        assert_eq!(check(&guard, Some("https://app.example.com"), Some("mcp.example.com")), Ok(()));
        assert_eq!(check(&guard, Some("https://app.example.com.evil.com"), None), Err(OriginRejection::Origin));
        assert_eq!(check(&guard, Some("http://localhost"), None), Err(OriginRejection::Origin));
    }

    #[test]
    fn a_named_host_passes_on_the_ports_that_were_named() {
        let guard = OriginPolicy::loopback().allow_host("a.example").allow_host("b.example:8443");
        assert!(
            guard.allows_host("a.example") && guard.allows_host("A.example:81") && guard.allows_host("b.example:8443")
        );
        assert!(!guard.allows_host("b.example:81") && !guard.allows_host("b.example"));
    }

    #[test]
    fn two_hosts_or_two_origins_are_refused() {
        let twice = [("host", "localhost"), ("host", "localhost")];
        assert_eq!(OriginPolicy::loopback().check(twice.as_slice(), None), Err(OriginRejection::Host));
        let twice = [("origin", "http://localhost"), ("origin", "http://localhost"), ("host", "localhost")];
        assert_eq!(OriginPolicy::loopback().check(twice.as_slice(), None), Err(OriginRejection::Origin));
        let differ = [("host", "localhost")];
        assert_eq!(
            OriginPolicy::loopback().check(differ.as_slice(), Some("evil.example.com")),
            Err(OriginRejection::Host)
        );
        assert_eq!(OriginPolicy::loopback().check([].as_slice(), Some("localhost:1")), Ok(()));
    }
}
