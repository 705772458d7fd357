//! Which scopes to ask for: no more than is needed, and never fewer than before.

use crate::Scopes;

/// Asks for a refresh token.
pub(super) const OFFLINE_ACCESS: &str = "offline_access";

/// What is known about scopes when an authorization begins.
pub(super) struct Known<'a> {
    /// What the challenge asks for.
    pub(super) challenged: Option<&'a Scopes>,
    /// What the resource says that it needs at least.
    pub(super) resource: Option<&'a Scopes>,
    /// What was asked for before, from the same authorization server.
    pub(super) before: Option<&'a Scopes>,
    /// What the caller wants besides.
    pub(super) wanted: Option<&'a Scopes>,
    /// Whether `offline_access` may be added: the server has it and the client can use it.
    pub(super) offline: bool,
}

impl Known<'_> {
    /// The scopes to ask for. None leaves the choice to the authorization server.
    pub(super) fn choose(&self) -> Option<Scopes> {
        let named = [self.challenged.or(self.resource), self.before, self.wanted];
        let chosen = named.into_iter().flatten().cloned().reduce(Scopes::union)?;
        if chosen.is_empty() {
            return None;
        }
        // Alone it would take away what a server gives to those who ask for nothing.
        let offline = if self.offline { Scopes::lenient([OFFLINE_ACCESS]) } else { Scopes::none() };
        Some(chosen.union(offline))
    }
}

/// Whether asking again could help: the challenge names something that was not asked for yet.
pub(super) fn is_step_up(challenged: Option<&Scopes>, before: Option<&Scopes>) -> bool {
    challenged.is_some_and(|wanted| wanted.iter().any(|scope| before.is_none_or(|before| !before.contains(scope))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes(text: &str) -> Scopes {
        text.parse().unwrap()
    }

    const NOTHING: Known<'static> =
        Known { challenged: None, resource: None, before: None, wanted: None, offline: false };

    #[test]
    fn the_challenge_is_followed_before_the_metadata() {
        let (challenged, resource) = (scopes("basic"), scopes("read write"));
        let known = Known { resource: Some(&resource), ..NOTHING };
        assert_eq!(known.choose(), Some(scopes("read write")));
        let known = Known { challenged: Some(&challenged), ..known };
        assert_eq!(known.choose(), Some(scopes("basic")));
    }

    #[test]
    fn nothing_is_asked_for_when_nothing_is_named() {
        assert_eq!(NOTHING.choose(), None);
        assert_eq!(Known { offline: true, ..NOTHING }.choose(), None);
        assert_eq!(Known { resource: Some(&Scopes::none()), ..NOTHING }.choose(), None);
    }

    #[test]
    fn a_step_up_keeps_what_was_asked_before() {
        let (challenged, before, resource) = (scopes("write"), scopes("basic"), scopes("profile"));
        let known =
            Known { challenged: Some(&challenged), before: Some(&before), resource: Some(&resource), ..NOTHING };
        assert_eq!(known.choose(), Some(scopes("basic write")));
    }

    #[test]
    fn offline_access_comes_along_where_it_is_offered() {
        let challenged = scopes("read");
        let known = Known { challenged: Some(&challenged), offline: true, ..NOTHING };
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
