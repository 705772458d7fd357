//! The server hangs.

use serde_json::json;

use crate::check_context::CheckContext;
use crate::client_under_test::{ClientUnderTest, FaultyServerOptions};
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::faulty_server::behavior;
use crate::limits::CLIENT_SHORT_MS;
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "client_server_hangs",
    fault: "the server takes a call and never answers; the caller's deadline passes, or the caller takes the call back; and it \
            does not leave when it should",
    must: "the call ends by its own deadline as Unknown; the server is notified; other calls work all the while; closing ends the \
           process",
    checks: &[
        Check::new("the_deadline_passes", Era::BOTH, deadline_passes),
        Check::new("the_call_is_taken_back", Era::BOTH, taken_back),
        Check::new("many_at_once", Era::BOTH, many_at_once),
        Check::new("it_does_not_leave", Era::BOTH, does_not_leave),
    ],
};

fn deadline_passes(context: &mut CheckContext) -> Verdict {
    let mut client = ClientUnderTest::start(context)?;
    let connection = client.connect(&FaultyServerOptions::honest())?;
    for _ in 0..3 {
        let call = client.call_with(&connection.name, "hang", json!({}), &json!({ "deadline_ms": CLIENT_SHORT_MS }))?;
        client.works(&connection.name)?;
        let id = connection.journal.wait(&format!("called {call} "))?;
        client.ended(&call)?.is("Unknown", &["TimedOut"])?;
        connection.journal.wait(&format!("cancelled {id}"))?;
        client.works(&connection.name)?;
    }
    client.finish(context)
}

fn taken_back(context: &mut CheckContext) -> Verdict {
    let mut client = ClientUnderTest::start(context)?;
    let connection = client.connect(&FaultyServerOptions::honest())?;
    for _ in 0..20 {
        let call = client.call(&connection.name, "hang", json!({}))?;
        let id = connection.journal.wait(&format!("called {call} "))?;
        client.drop_call(&call)?;
        connection.journal.wait(&format!("cancelled {id}"))?;
        client.works(&connection.name)?;
    }
    client.finish(context)
}

/// Each is reported once.
fn many_at_once(context: &mut CheckContext) -> Verdict {
    const CALLS: usize = 500;
    let mut client = ClientUnderTest::start(context)?;
    let connection = client.connect(&FaultyServerOptions::honest())?;
    let mut calls = Vec::new();
    for _ in 0..CALLS {
        calls.push(client.call_with(
            &connection.name,
            "hang",
            json!({}),
            &json!({ "deadline_ms": 4 * CLIENT_SHORT_MS }),
        )?);
    }
    client.works(&connection.name)?;
    for call in &calls {
        // One that was not even written within its deadline, on a machine that is busy, was not sent.
        let ended = client.ended(call)?;
        ensure!(ended.kind == "TimedOut" && ["Unknown", "NotSent"].contains(&ended.ends.as_str()), "{ended}");
    }
    client.works(&connection.name)?;
    let (called, cancelled) = (connection.journal.count("called call-") - 2, connection.journal.count("cancelled "));
    context.note(format!("{called} hung"));
    ensure!(called == cancelled, "{called} calls came, and {cancelled} cancellations");
    client.finish(context)
}

/// It neither ends when its input does, nor by SIGTERM.
fn does_not_leave(context: &mut CheckContext) -> Verdict {
    let mut client = ClientUnderTest::start(context)?;
    for deaf_to_term in [false, true] {
        let connection =
            client.connect(&FaultyServerOptions { deaf_to_term, ..FaultyServerOptions::with(behavior::STUBBORN) })?;
        let call = client.call(&connection.name, "hang", json!({}))?;
        connection.journal.wait(&format!("called {call} "))?;
        client.close(&connection.name)?;
        let ended = client.ended(&call)?;
        ensure!(ended.ends == "Unknown", "{ended}");
        connection.journal.wait("end of input")?;
    }
    client.finish(context)
}
