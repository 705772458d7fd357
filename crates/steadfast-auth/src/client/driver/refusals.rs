//! Which questions for more scopes came to nothing, so that a user who said no is not asked again at the next call.
//!
//! A question is all the scopes that would be asked for. It is not put again to the user until they log in anew, or until a
//! while has passed. Whoever needs it meanwhile is told what came of it the last time. Other scopes are another question. The
//! memory is that of one authorizer: it is not in the store, and a new process may ask.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::Scopes;
use crate::client::Error;

/// How long nobody is asked again: a user may have said no by mistake, and may be waiting for the question.
const MEMORY: Duration = Duration::from_secs(10 * 60);
/// No more questions are remembered. A server that thinks of more is followed a few times per request.
const MOST: usize = 16;

/// Questions that came to nothing.
#[derive(Default)]
pub(super) struct Refusals(VecDeque<Refused>);

struct Refused {
    question: Scopes,
    answer: Error,
    at: Instant,
}

impl Refusals {
    /// What came of this question, if it was put a short while ago.
    pub(super) fn answer(&self, question: &Scopes, now: Instant) -> Option<Error> {
        let is_same = |refused: &&Refused| refused.question == *question;
        let refused = self.0.iter().rev().find(is_same)?;
        (now.duration_since(refused.at) < MEMORY).then(|| refused.answer.clone())
    }

    pub(super) fn note(&mut self, question: Scopes, answer: Error, now: Instant) {
        self.0.retain(|refused| refused.question != question);
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        self.0.push_back(Refused { question, answer, at: now });
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
        let (mut refusals, now) = (Refusals::default(), Instant::now());
        let question = |number: usize| Scopes::lenient([format!("s{number}").as_str()]);
        for number in 0..=MOST {
            refusals.note(question(number), Error::Rejected, now);
        }
        let remembered = (0..=MOST).filter(|number| refusals.answer(&question(*number), now).is_some());
        assert_eq!(remembered.collect::<Vec<_>>(), (1..=MOST).collect::<Vec<_>>());
    }
}
