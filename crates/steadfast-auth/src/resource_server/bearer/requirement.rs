//! Which scopes an HTTP request requires, and whether the scopes of its token are sufficient.

use std::fmt;
use std::sync::Arc;

use http::request::Parts;
use steadfast_model::Revision;

use crate::resource_server::{InvalidScope, Scopes};

type RequestScopesFn = Arc<dyn Fn(&Parts) -> Scopes + Send + Sync>;
type ScopeImplicationFn = Arc<dyn Fn(&str, &str) -> bool + Send + Sync>;

/// The scopes that HTTP requests to the resource server require.
#[derive(Clone, Default)]
pub(super) struct ScopeRequirement {
    pub(super) always: Scopes,
    pub(super) by_request: Option<RequestScopesFn>,
    pub(super) broader: Option<ScopeImplicationFn>,
}

impl ScopeRequirement {
    /// All scopes that an HTTP request requires, so that one challenge lists all of them.
    pub(super) fn of(&self, parts: &Parts) -> Scopes {
        match &self.by_request {
            Some(by_request) => by_request(parts).union(self.always.clone()),
            None => self.always.clone(),
        }
    }

    /// Whether the granted scopes include or imply each required one.
    pub(super) fn is_met(&self, granted: &Scopes, needed: &Scopes) -> bool {
        let implied =
            |scope: &str| self.broader.as_ref().is_some_and(|broader| granted.iter().any(|g| broader(g, scope)));
        needed.iter().all(|scope| granted.contains(scope) || implied(scope))
    }
}

impl fmt::Debug for ScopeRequirement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ScopeRequirement")
            .field("always", &self.always)
            .field("by_request", &self.by_request.is_some())
            .field("broader", &self.broader.is_some())
            .finish()
    }
}

/// A table of the scopes that each MCP method requires, for [`BearerLayer::scopes_by`](super::BearerLayer::scopes_by).
///
/// Before the body is read, the MCP method is known only from the `Mcp-Method` header, which can be trusted since revision
/// 2026-07-28: in that revision the transport rejects a request whose header differs from its body. Requests of older clients,
/// requests without the header or with two, and methods that are not in the table require the scopes of [`MethodScopes::new`],
/// which should thus be those of the most powerful method.
///
/// ```
/// use steadfast_auth::resource_server::MethodScopes;
///
/// let scopes = MethodScopes::new("mcp:all")?.method("tools/list", "mcp:read")?.method("resources/read", "mcp:read files:read")?;
/// # let _ = scopes;
/// # Ok::<(), steadfast_auth::resource_server::InvalidScope>(())
/// ```
#[derive(Clone, Debug)]
pub struct MethodScopes {
    otherwise: Scopes,
    methods: Vec<(Box<str>, Scopes)>,
}

impl MethodScopes {
    /// Creates a table that requires these scopes unless the MCP method of a request is known and in the table.
    pub fn new(otherwise: &str) -> Result<Self, InvalidScope> {
        Ok(Self { otherwise: otherwise.parse()?, methods: Vec::new() })
    }

    /// Requires these scopes for this MCP method, instead of the scopes of [`MethodScopes::new`].
    pub fn method(mut self, method: &str, scopes: &str) -> Result<Self, InvalidScope> {
        self.methods.push((method.into(), scopes.parse()?));
        Ok(self)
    }

    /// The scopes that an HTTP request requires, according to its MCP method.
    pub fn of(&self, parts: &Parts) -> Scopes {
        let is_trusted = single(parts, "mcp-protocol-version").is_some_and(is_checked);
        let method = single(parts, "mcp-method").filter(|_| is_trusted);
        let found = method.and_then(|method| self.methods.iter().find(|(name, _)| **name == *method));
        found.map_or(&self.otherwise, |(_, scopes)| scopes).clone()
    }
}

/// The value of a header that occurs exactly once.
fn single<'a>(parts: &'a Parts, name: &str) -> Option<&'a str> {
    let mut values = parts.headers.get_all(name).iter();
    let (value, more) = (values.next()?, values.next());
    value.to_str().ok().filter(|_| more.is_none())
}

/// Whether the transport compares the `Mcp-Method` header with the body, as it does since revision 2026-07-28. The transport
/// does not compare the header with the body for unknown revisions.
fn is_checked(revision: &str) -> bool {
    Revision::parse(revision).is_some_and(Revision::is_stateless)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(headers: &[(&str, &str)]) -> Parts {
        let mut request = http::Request::builder();
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn asked(headers: &[(&str, &str)]) -> String {
        MethodScopes::new("all").unwrap().method("tools/list", "read").unwrap().of(&parts(headers)).to_string()
    }

    #[test]
    fn a_method_is_believed_where_the_transport_checks_it() {
        assert_eq!(asked(&[("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")]), "read");
    }

    #[test]
    fn a_method_that_nobody_checks_asks_for_everything() {
        let method = ("mcp-method", "tools/list");
        for headers in [
            vec![method],
            vec![("mcp-protocol-version", "2025-11-25"), method],
            vec![("mcp-protocol-version", "zzzz-zz-zz"), method],
            vec![("mcp-protocol-version", "2027-01-01"), method],
            vec![("mcp-protocol-version", "2026-07-28"), method, ("mcp-method", "tools/call")],
            vec![("mcp-protocol-version", "2026-07-28"), ("mcp-protocol-version", "2025-11-25"), method],
            vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call")],
            vec![("mcp-protocol-version", "2026-07-28")],
        ] {
            assert_eq!(asked(&headers), "all", "{headers:?}");
        }
    }

    #[test]
    fn a_broader_scope_is_enough_if_it_is_said_to_be() {
        let granted = "files".parse().unwrap();
        let needed = "files:read files:write".parse().unwrap();
        let exact = ScopeRequirement::default();
        let hierarchy = ScopeRequirement {
            broader: Some(Arc::new(|granted, needed| {
                needed.split_once(':').is_some_and(|(parent, _)| parent == granted)
            })),
            ..ScopeRequirement::default()
        };
        assert!(!exact.is_met(&granted, &needed));
        assert!(hierarchy.is_met(&granted, &needed));
    }
}
