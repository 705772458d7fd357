//! The server fails during the handshake.

use serde_json::json;

use crate::check_context::CheckContext;
use crate::client_under_test::{ClientUnderTest, FaultyServerOptions};
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::faulty_server::behavior;
use crate::limits::CLIENT_SHORT_MS;
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

fn ends(context: &mut CheckContext) -> Verdict {
    let mut client = ClientUnderTest::start(context)?;
    for _ in 0..5 {
        for behavior in [behavior::GONE_AT_ONCE, behavior::GONE_IN_OPENING, behavior::GONE_IN_OPENING_ANSWER] {
            let (_, ended) = client.fail_to_connect(&FaultyServerOptions::with(behavior))?;
            // Half an answer may be reported as unreadable. No call was made.
            let kinds: &[&str] = match behavior {
                behavior::GONE_IN_OPENING_ANSWER => &["Closed", "Decode", "Incompatible"],
                _ => &["Closed"],
            };
            ended.is("NotSent", kinds)?;
        }
    }
    client.finish(context)
}

fn never_answers(context: &mut CheckContext) -> Verdict {
    let mut client = ClientUnderTest::start(context)?;
    for deaf_to_term in [false, true] {
        let options = FaultyServerOptions {
            opening_ms: CLIENT_SHORT_MS,
            deaf_to_term,
            ..FaultyServerOptions::with(behavior::MUTE)
        };
        let (_, ended) = client.fail_to_connect(&options)?;
        ended.is("NotSent", &["TimedOut"])?;
    }
    client.finish(context)
}

fn wrong_shape(context: &mut CheckContext) -> Verdict {
    let mut client = ClientUnderTest::start(context)?;
    let (_, ended) = client.fail_to_connect(&FaultyServerOptions::with(behavior::WRONG))?;
    ensure!(["Decode", "Incompatible"].contains(&ended.kind.as_str()), "{ended}");
    client.finish(context)
}

fn among_garbage(context: &mut CheckContext) -> Verdict {
    let mut client = ClientUnderTest::start(context)?;
    let connection = client.connect(&FaultyServerOptions::with(behavior::NOISY))?;
    client.works(&connection.name)?;
    let call = client.call(&connection.name, "echo", json!({ "text": "still here" }))?;
    client.ended(&call)?.done("still here")?;
    client.finish(context)
}
