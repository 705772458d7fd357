//! What may be made again (law L10): what was not sent, and what does no harm when it is made twice.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use steadfast_model::{CallToolParams, ListToolsResult, Tool};

use super::ending::{Loss, Lost};
use crate::error::Outcome;

/// How often one call was made, and whether it may be made again.
pub(super) struct Attempts {
    /// So often more.
    left: u32,
    /// It does no harm twice.
    harmless: bool,
    /// The server may have had it before.
    sent: bool,
    session_lost: bool,
}

impl Attempts {
    /// For a call that may be made so often again.
    pub(super) fn new(most: u32, harmless: bool) -> Self {
        Self { left: most, harmless, sent: false, session_lost: false }
    }

    /// Whether a call that was lost like this is made again. If so, that is one attempt.
    pub(super) fn allow(&mut self, loss: Loss) -> bool {
        self.sent |= loss.sent;
        let second_session = loss.of == Lost::Session && std::mem::replace(&mut self.session_lost, true);
        let allowed = self.left > 0 && (self.harmless || !loss.sent) && !second_session;
        if allowed {
            self.left -= 1;
        }
        allowed
    }

    /// What is known while it is not under way.
    pub(super) fn known(&self) -> Outcome {
        if self.sent { Outcome::Unknown } else { Outcome::NotSent }
    }
}

/// Tools that a trusted server has said may be called twice.
#[derive(Default)]
pub(super) struct Trusted(Mutex<BTreeSet<String>>);

/// Of more tools than this it is not remembered.
const MOST_TOOLS: usize = 10_000;

impl Trusted {
    /// Takes note of a result, if it is a list of tools.
    pub(super) fn note(&self, result: &dyn Any) {
        let Some(listed) = result.downcast_ref::<ListToolsResult>() else { return };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for tool in &listed.tools {
            if says_that_it_may_be_called_twice(tool) && known.len() < MOST_TOOLS {
                known.insert(tool.name.clone());
            } else {
                known.remove(&tool.name);
            }
        }
    }

    /// Whether these are the parameters of a call of one of them.
    pub(super) fn covers(&self, params: &dyn Any) -> bool {
        let Some(call) = params.downcast_ref::<CallToolParams>() else { return false };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&call.name)
    }
}

fn says_that_it_may_be_called_twice(tool: &Tool) -> bool {
    let annotations = tool.annotations.as_ref();
    annotations.is_some_and(|hints| hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Loss = Loss { sent: false, of: Lost::Link };

    #[test]
    fn what_was_not_sent_is_made_again_as_often_as_there_are_attempts() {
        let mut attempts = Attempts::new(2, false);
        assert!(attempts.allow(LINK) && attempts.allow(LINK) && !attempts.allow(LINK));
        assert_eq!(attempts.known(), Outcome::NotSent);
    }

    #[test]
    fn what_was_sent_is_made_again_only_if_it_does_no_harm() {
        let sent = Loss { sent: true, ..LINK };
        let (mut harmless, mut other) = (Attempts::new(2, true), Attempts::new(2, false));
        assert!(harmless.allow(sent) && !other.allow(sent));
        assert_eq!((harmless.known(), other.known()), (Outcome::Unknown, Outcome::Unknown));
    }

    #[test]
    fn a_session_is_opened_again_once() {
        let lost = Loss { sent: false, of: Lost::Session };
        let mut attempts = Attempts::new(5, false);
        assert!(attempts.allow(lost) && !attempts.allow(lost));
    }
}
