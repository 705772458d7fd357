//! Remembers the token requests for additional scopes that failed, so that a user who denied the scopes is not asked again by
//! the next HTTP request.
//!
//! Each entry has the whole set of scopes of one failed token request, and the error of that request. A set of scopes
//! whose token request failed is not requested again until the user logs in again, or until the entry of the set
//! expires; meanwhile the error of the failed request is returned. The entries exist only in the memory of one
//! authorizer, so a new process may ask the user again.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::Scopes;
use crate::client::Error;

/// Lifetime of an entry for denied scopes. The lifetime of an entry is limited because the user may have denied the
/// scopes by mistake.
const LIFETIME: Duration = Duration::from_secs(10 * 60);
/// Limit of entries for denied scopes. Beyond the limit, the oldest entry for denied scopes is removed, and the user
/// may be asked for those scopes again.
const MAX_ENTRIES: usize = 16;

/// The failed token requests for additional scopes that an authorizer remembers.
#[derive(Default)]
pub(super) struct DeniedScopes(VecDeque<DeniedScopeRequest>);

struct DeniedScopeRequest {
    scopes: Scopes,
    error: Error,
    at: Instant,
}

impl DeniedScopes {
    /// The error of the last token request for these scopes, if that request failed recently.
    pub(super) fn error_for(&self, scopes: &Scopes, now: Instant) -> Option<Error> {
        let is_same = |denied: &&DeniedScopeRequest| denied.scopes == *scopes;
        let denied = self.0.iter().rev().find(is_same)?;
        (now.duration_since(denied.at) < LIFETIME).then(|| denied.error.clone())
    }

    pub(super) fn insert(&mut self, scopes: Scopes, error: Error, now: Instant) {
        self.0.retain(|denied| denied.scopes != scopes);
        if self.0.len() >= MAX_ENTRIES {
            self.0.pop_front();
        }
        self.0.push_back(DeniedScopeRequest { scopes, error, at: now });
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_few_questions_are_remembered() {
        let (mut denied_scopes, now) = (DeniedScopes::default(), Instant::now());
        let scopes = |number: usize| Scopes::lenient([format!("s{number}").as_str()]);
        for number in 0..=MAX_ENTRIES {
            denied_scopes.insert(scopes(number), Error::TokenRejected, now);
        }
        let remembered = (0..=MAX_ENTRIES).filter(|number| denied_scopes.error_for(&scopes(*number), now).is_some());
        assert_eq!(remembered.collect::<Vec<_>>(), (1..=MAX_ENTRIES).collect::<Vec<_>>());
    }
}
