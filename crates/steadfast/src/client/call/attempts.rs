//! What may be made again (law L10): what was not sent, and what does no harm when it is made twice.

use steadfast_proto::mutant;

use crate::error::Outcome;
use crate::runtime::connection::call_result::{CallLoss, LossKind};

/// How often one call was made, and whether it may be made again.
pub(crate) struct Attempts {
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
    pub(crate) fn new(most: u32, harmless: bool) -> Self {
        Self { left: most, harmless, sent: false, session_lost: false }
    }

    /// Whether a call that was lost like this is made again. If so, that is one attempt.
    pub(crate) fn allow(&mut self, loss: CallLoss) -> bool {
        self.sent |= loss.sent;
        let second_session = loss.kind == LossKind::Session && std::mem::replace(&mut self.session_lost, true);
        let allowed = self.left > 0 && (self.harmless || !loss.sent || mutant!(RepeatHarmful)) && !second_session;
        if allowed {
            self.left -= 1;
        }
        allowed
    }

    /// What is known while it is not under way.
    pub(crate) fn known(&self) -> Outcome {
        if self.sent { Outcome::Unknown } else { Outcome::NotSent }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: CallLoss = CallLoss { sent: false, kind: LossKind::Connection };

    #[test]
    fn what_was_not_sent_is_made_again_as_often_as_there_are_attempts() {
        let mut attempts = Attempts::new(2, false);
        assert!(attempts.allow(LINK) && attempts.allow(LINK) && !attempts.allow(LINK));
        assert_eq!(attempts.known(), Outcome::NotSent);
    }

    #[test]
    fn what_was_sent_is_made_again_only_if_it_does_no_harm() {
        let sent = CallLoss { sent: true, ..LINK };
        let (mut harmless, mut other) = (Attempts::new(2, true), Attempts::new(2, false));
        assert!(harmless.allow(sent) && !other.allow(sent));
        assert_eq!((harmless.known(), other.known()), (Outcome::Unknown, Outcome::Unknown));
    }

    #[test]
    fn a_session_is_opened_again_once() {
        let lost = CallLoss { sent: false, kind: LossKind::Session };
        let mut attempts = Attempts::new(5, false);
        assert!(attempts.allow(lost) && !attempts.allow(lost));
    }
}
