//! The server fails during the handshake.

use serde_json::json;

use crate::bench::Bench;
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::faulty_server::habit;
use crate::limits::CLIENT_SHORT_MS;
use crate::subject::{Play, Subject};
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "client_opening",
    fault: "the server ends before or while the conversation is opened, never answers, answers with a wrong shape, or among \
            garbage",
    must: "connecting fails with a clear error, by its own deadline at the latest, and ends the process; garbage is no reason \
           to fail",
    checks: &[
        Check::new("it_ends", Era::BOTH, ends),
        Check::new("it_never_answers", Era::BOTH, never_answers),
        Check::new("a_wrong_shape", Era::BOTH, wrong_shape),
        Check::new("among_garbage", Era::BOTH, among_garbage),
    ],
};

fn ends(bench: &mut Bench) -> Verdict {
    let mut subject = Subject::start(bench)?;
    for _ in 0..5 {
        for habit in [habit::GONE_AT_ONCE, habit::GONE_IN_OPENING, habit::GONE_IN_OPENING_ANSWER] {
            let (_, ended) = subject.fail_to_connect(&Play::with(habit))?;
            // Half an answer may be called unreadable. Nobody's call was made.
            let kinds: &[&str] = match habit {
                habit::GONE_IN_OPENING_ANSWER => &["Closed", "Decode", "Incompatible"],
                _ => &["Closed"],
            };
            ended.is("NotSent", kinds)?;
        }
    }
    subject.finish(bench)
}

fn never_answers(bench: &mut Bench) -> Verdict {
    let mut subject = Subject::start(bench)?;
    for deaf_to_term in [false, true] {
        let play = Play { opening_ms: CLIENT_SHORT_MS, deaf_to_term, ..Play::with(habit::MUTE) };
        let (_, ended) = subject.fail_to_connect(&play)?;
        ended.is("NotSent", &["TimedOut"])?;
    }
    subject.finish(bench)
}

fn wrong_shape(bench: &mut Bench) -> Verdict {
    let mut subject = Subject::start(bench)?;
    let (_, ended) = subject.fail_to_connect(&Play::with(habit::WRONG))?;
    ensure!(["Decode", "Incompatible"].contains(&ended.kind.as_str()), "{ended}");
    subject.finish(bench)
}

fn among_garbage(bench: &mut Bench) -> Verdict {
    let mut subject = Subject::start(bench)?;
    let line = subject.connect(&Play::with(habit::NOISY))?;
    subject.works(&line.name)?;
    let call = subject.call(&line.name, "echo", json!({ "text": "still here" }))?;
    subject.ended(&call)?.done("still here")?;
    subject.finish(bench)
}
