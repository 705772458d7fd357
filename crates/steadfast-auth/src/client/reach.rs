//! Which URLs a server may send the client to.
//!
//! Metadata is written by servers that nobody vouches for, and the client asks whatever URL stands in it. So every URL is
//! encrypted or on this machine, and a server out on the internet cannot point at addresses inside: what a literal address or
//! the name `localhost` says is checked here. Where other names lead is for the HTTP client to see, which is told who named them
//! ([`NamedBy`](crate::NamedBy)).

use url::{Host, Url};

use super::Error;
use crate::place::Place;
pub(super) use crate::shown::shown;

/// How far inside a server may point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach(Place);

impl Reach {
    /// That of a server, which the user chose.
    pub(super) fn of(server: &Url) -> Result<Self, Error> {
        let reach = Self(place(server));
        reach.check_url(server)?;
        Ok(reach)
    }

    /// A URL that somebody wrote, if it may be asked.
    pub(super) fn check(self, text: &str) -> Result<Url, Error> {
        let url = Url::parse(text).map_err(|_| Error::UnsafeUrl(shown(text)))?;
        self.check_url(&url)?;
        Ok(url)
    }

    fn check_url(self, url: &Url) -> Result<(), Error> {
        let place = place(url);
        let encrypted = match url.scheme() {
            "https" => true,
            "http" => place == Place::ThisMachine,
            _ => false,
        };
        let plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none() && url.has_host();
        if encrypted && plain && place <= self.0 { Ok(()) } else { Err(Error::UnsafeUrl(shown(url.as_str()))) }
    }
}

/// Whether the URL is one of this machine.
pub(super) fn is_loopback(url: &Url) -> bool {
    place(url) == Place::ThisMachine
}

fn place(url: &Url) -> Place {
    match url.host() {
        Some(Host::Domain(name)) => Place::of_name(name),
        Some(Host::Ipv4(address)) => Place::of(address.into()),
        Some(Host::Ipv6(address)) => Place::of(address.into()),
        None => Place::Outside,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(server: &str) -> Reach {
        Reach::of(&Url::parse(server).unwrap()).unwrap()
    }

    #[test]
    fn urls_are_encrypted_or_on_this_machine() {
        let reach = reach("http://localhost:3000/mcp");
        for good in ["https://auth.example.com/token", "http://127.0.0.1:9/", "http://[::1]/", "http://a.localhost/"] {
            assert!(reach.check(good).is_ok(), "{good}");
        }
        for bad in
            ["http://auth.example.com/", "ftp://localhost/", "file:///etc/passwd", "javascript:alert(1)", "/token"]
        {
            assert!(reach.check(bad).is_err(), "{bad}");
        }
        assert!(Reach::of(&Url::parse("http://mcp.example.com/").unwrap()).is_err());
    }

    #[test]
    fn a_server_outside_cannot_point_inside() {
        let outside = reach("https://mcp.example.com/mcp");
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
            // An address inside, in the clothes of one outside: compatible, translated, tunnelled.
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
        let private = reach("https://10.0.0.5/mcp");
        assert!(private.check("https://10.0.0.1/").is_ok());
        assert!(private.check("https://127.0.0.1/").is_err());
    }

    #[test]
    fn urls_with_passwords_are_not_asked() {
        assert!(reach("https://a.example/").check("https://user:s3cr3t@a.example/").is_err());
    }
}
