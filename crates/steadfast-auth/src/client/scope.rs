//! Decides which scopes the client requests: no more than needed, and never fewer than before.

use crate::Scopes;

/// The OAuth scope that requests a refresh token.
pub(super) const OFFLINE_ACCESS: &str = "offline_access";

/// The scopes from each source that the client takes into account when it requests an authorization.
pub(super) struct ScopeSources<'a> {
    /// The scopes that the MCP server's challenge requires.
    pub(super) challenged: Option<&'a Scopes>,
    /// The scopes listed in the protected resource metadata of the MCP server.
    pub(super) resource: Option<&'a Scopes>,
    /// The scopes of earlier authorizations at the same authorization server, so that none is lost.
    pub(super) before: Option<&'a Scopes>,
    /// The scopes that the application configured in `OAuthClientSettings`.
    pub(super) wanted: Option<&'a Scopes>,
    /// Whether to add the scope `offline_access`: the authorization server supports it and the client can use it.
    pub(super) offline: bool,
}

impl ScopeSources<'_> {
    /// The scopes to request from the authorization server. `None` leaves the choice of the scopes to the
    /// authorization server.
    pub(super) fn choose(&self) -> Option<Scopes> {
        let named = [self.challenged.or(self.resource), self.before, self.wanted];
        let chosen = named.into_iter().flatten().cloned().reduce(Scopes::union)?;
        if chosen.is_empty() {
            return None;
        }
        // Alone it would replace the default scopes of the authorization server.
        let offline = if self.offline { Scopes::lenient([OFFLINE_ACCESS]) } else { Scopes::none() };
        Some(chosen.union(offline))
    }
}

/// Whether the challenge has a scope that was not requested yet, so that another token request could help.
pub(super) fn is_step_up(challenged: Option<&Scopes>, before: Option<&Scopes>) -> bool {
    challenged.is_some_and(|wanted| wanted.iter().any(|scope| before.is_none_or(|before| !before.contains(scope))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes(text: &str) -> Scopes {
        text.parse().unwrap()
    }

    const NOTHING: ScopeSources<'static> =
        ScopeSources { challenged: None, resource: None, before: None, wanted: None, offline: false };

    #[test]
    fn the_challenge_is_followed_before_the_metadata() {
        let (challenged, resource) = (scopes("basic"), scopes("read write"));
        let known = ScopeSources { resource: Some(&resource), ..NOTHING };
        assert_eq!(known.choose(), Some(scopes("read write")));
        let known = ScopeSources { challenged: Some(&challenged), ..known };
        assert_eq!(known.choose(), Some(scopes("basic")));
    }

    #[test]
    fn nothing_is_asked_for_when_nothing_is_named() {
        assert_eq!(NOTHING.choose(), None);
        assert_eq!(ScopeSources { offline: true, ..NOTHING }.choose(), None);
        assert_eq!(ScopeSources { resource: Some(&Scopes::none()), ..NOTHING }.choose(), None);
    }

    #[test]
    fn a_step_up_keeps_what_was_asked_before() {
        let (challenged, before, resource) = (scopes("write"), scopes("basic"), scopes("profile"));
        let known =
            ScopeSources { challenged: Some(&challenged), before: Some(&before), resource: Some(&resource), ..NOTHING };
        assert_eq!(known.choose(), Some(scopes("basic write")));
    }

    #[test]
    fn offline_access_comes_along_where_it_is_offered() {
        let challenged = scopes("read");
        let known = ScopeSources { challenged: Some(&challenged), offline: true, ..NOTHING };
        assert_eq!(known.choose(), Some(scopes("offline_access read")));
    }

    #[test]
    fn asking_again_for_the_same_is_no_step_up() {
        assert!(is_step_up(Some(&scopes("write")), Some(&scopes("basic"))));
        assert!(is_step_up(Some(&scopes("write")), None));
        assert!(!is_step_up(Some(&scopes("write")), Some(&scopes("basic write"))));
        assert!(!is_step_up(None, Some(&scopes("basic"))));
    }
}
