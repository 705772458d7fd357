//! Responses that are malformed, too many, or too late.

use serde_json::{Value, json};

use crate::check_context::CheckContext;
use crate::client_under_test::{ClientUnderTest, FaultyServerOptions};
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::limits::{CLIENT_PEAK_KIB, CLIENT_SHORT_MS};
use crate::process::memory::Memory;
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "client_bad_answers",
    fault: "the server answers twice, late, to nothing, with a wrong shape, with garbage bytes, with a line of 64 MiB",
    must: "the first answer counts; what belongs to no call harms none; a call whose answer cannot be read ends at once, with \
           the outcome that says what is known; memory stays bounded",
    checks: &[
        Check::new("twice", Era::BOTH, twice),
        Check::new("late", Era::BOTH, late),
        Check::new("to_nothing", Era::BOTH, to_nothing),
        Check::new("a_wrong_shape", Era::BOTH, wrong_shape),
        Check::new("an_error", Era::BOTH, error),
        Check::new("garbage_between_lines", Era::BOTH, garbage),
        Check::new("garbage_in_the_answer", Era::BOTH, garbage_in_the_answer),
        Check::new("a_huge_line", Era::BOTH, huge),
        Check::new("byte_by_byte", Era::BOTH, byte_by_byte),
    ],
};

/// A good answer to the call, with that text.
fn good(era: Era, text: &str) -> String {
    let kind = if era.is_stateless() { "\"resultType\":\"complete\"," } else { "" };
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":@,\"result\":{{{kind}\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}}}\n"
    )
}

/// Has the server say that in answer to a call.
fn say(client: &mut ClientUnderTest, connection: &str, text: &str) -> Verdict<String> {
    client.call(connection, "say", json!({ "front": text }))
}

fn twice(context: &mut CheckContext) -> Verdict {
    let mut client = ClientUnderTest::start(context)?;
    let connection = client.connect(&FaultyServerOptions::honest())?;
    for _ in 0..20 {
        let call = say(&mut client, &connection.name, &(good(context.era, "first") + &good(context.era, "second")))?;
        client.ended(&call)?.done("first")?;
        let refused = "{\"jsonrpc\":\"2.0\",\"id\":@,\"error\":{\"code\":1,\"message\":\"no\"}}\n";
        let call = say(&mut client, &connection.name, &(good(context.era, "first") + refused))?;
        client.ended(&call)?.done("first")?;
        client.works(&connection.name)?;
    }
    client.finish(context)
}

/// The answer comes when the client has given the call up.
fn late(context: &mut CheckContext) -> Verdict {
    let mut client = ClientUnderTest::start(context)?;
    let connection = client.connect(&FaultyServerOptions::honest())?;
    for _ in 0..3 {
        let call =
            client.call_with(&connection.name, "late", json!({}), &json!({ "deadline_ms": CLIENT_SHORT_MS / 2 }))?;
        let id = connection.journal.wait(&format!("called {call} "))?;
        client.ended(&call)?.is("Unknown", &["TimedOut"])?;
        // By then the late answer is written, and it comes before that of the next call.
        connection.journal.wait(&format!("cancelled {id}"))?;
        client.works(&connection.name)?;
    }
    client.finish(context)
}

fn to_nothing(context: &mut CheckContext) -> Verdict {
    const IDS: [&str; 9] = ["999999", "-1", "\"@\"", "\"unknown\"", "null", "18446744073709551616", "1.5", "[]", "{}"];
    let mut client = ClientUnderTest::start(context)?;
    let connection = client.connect(&FaultyServerOptions::honest())?;
    for id in IDS {
        let stray = good(context.era, "stray").replacen("\"id\":@", &format!("\"id\":{id}"), 1);
        let refusal =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32000,\"message\":\"stray\"}}}}\n");
        let text = stray + &refusal + &good(context.era, "mine");
        let call = say(&mut client, &connection.name, &text)?;
        client.ended(&call)?.done("mine").map_err(|failure| failure.at(id))?;
    }
    // Progress with an unknown token, cancellations of unknown ids, unknown notifications.
    let strays = [
        json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": 77, "progress": 1 } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 77 } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/unheard_of", "params": {} }),
        json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": [] }),
    ];
    for stray in strays {
        let call = say(&mut client, &connection.name, &format!("{stray}\n{}", good(context.era, "mine")))?;
        client.ended(&call)?.done("mine").map_err(|failure| failure.at(stray.to_string()))?;
    }
    client.works(&connection.name)?;
    client.finish(context)
}

/// A result came, so the server did it: what cannot be used is Answered. What may be no result at all is Unknown.
fn wrong_shape(context: &mut CheckContext) -> Verdict {
    let kind = if context.era.is_stateless() { "\"resultType\":\"complete\"," } else { "" };
    let results = [
        format!("{{{kind}\"content\":7}}"),
        format!("{{{kind}\"content\":[{{\"type\":\"text\"}}]}}"),
        format!("{{{kind}\"content\":[7]}}"),
        format!("{{{kind}\"content\":[],\"isError\":\"perhaps\"}}"),
    ];
    let mut client = ClientUnderTest::start(context)?;
    let connection = client.connect(&FaultyServerOptions::honest())?;
    for result in results {
        let call =
            say(&mut client, &connection.name, &format!("{{\"jsonrpc\":\"2.0\",\"id\":@,\"result\":{result}}}\n"))?;
        client.ended(&call)?.is("Answered", &["Decode"]).map_err(|failure| failure.at(&result))?;
        client.works(&connection.name)?;
    }
    let neither = [
        "\"result\":{},\"error\":{\"code\":1,\"message\":\"both\"}",
        "\"error\":{\"message\":\"no code\"}",
        "\"error\":\"no object\"",
        "\"error\":{\"code\":\"seven\",\"message\":\"no number\"}",
        "\"other\":1",
    ];
    for members in neither {
        let call = say(&mut client, &connection.name, &format!("{{\"jsonrpc\":\"2.0\",\"id\":@,{members}}}\n"))?;
        client.ended(&call)?.is("Unknown", &["Decode"]).map_err(|failure| failure.at(members))?;
        client.works(&connection.name)?;
    }
    for result in ["7", "null", "[]", "\"text\"", "true"] {
        let call =
            say(&mut client, &connection.name, &format!("{{\"jsonrpc\":\"2.0\",\"id\":@,\"result\":{result}}}\n"))?;
        let ended = client.ended(&call)?;
        let right = ended.kind == "Decode" && ["Answered", "Unknown"].contains(&ended.ends.as_str());
        ensure!(right, "a result {result}: {ended}");
        client.works(&connection.name)?;
    }
    if context.era.is_stateless() {
        let text = "{\"jsonrpc\":\"2.0\",\"id\":@,\"result\":{\"resultType\":\"unheard_of\",\"content\":[]}}\n";
        let call = say(&mut client, &connection.name, text)?;
        client.ended(&call)?.is("Unknown", &["Decode"])?;
    }
    client.finish(context)
}

fn error(context: &mut CheckContext) -> Verdict {
    let mut client = ClientUnderTest::start(context)?;
    let connection = client.connect(&FaultyServerOptions::honest())?;
    for error in
        [json!({ "code": -32602, "message": "no" }), json!({ "code": 7, "message": "", "data": { "deep": [1] } })]
    {
        let call =
            say(&mut client, &connection.name, &format!("{{\"jsonrpc\":\"2.0\",\"id\":@,\"error\":{error}}}\n"))?;
        client.ended(&call)?.is("Refused", &["Refused"])?;
    }
    client.works(&connection.name)?;
    client.finish(context)
}

/// Each is a line of its own before the answer. Characters up to U+00FF stand for one byte each.
fn garbage(context: &mut CheckContext) -> Verdict {
    const LINES: [&str; 12] = [
        "",
        "\r",
        "Listening on port 8080...",
        "\u{ff}\u{fe}\u{0}\u{80}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"data\":\"\u{c3}(\"}}",
        "{\"jsonrpc\":",
        "{}",
        "[]",
        "[1,2,3]",
        "null",
        "{\"jsonrpc\":\"1.0\",\"method\":\"x\"}",
        "\u{1b}[31mred\u{1b}[0m",
    ];
    let mut client = ClientUnderTest::start(context)?;
    let connection = client.connect(&FaultyServerOptions::honest())?;
    for garbage in LINES {
        let call = say(&mut client, &connection.name, &format!("{garbage}\n{}", good(context.era, "mine")))?;
        client.ended(&call)?.done("mine").map_err(|failure| failure.at(format!("{garbage:?}")))?;
    }
    let all = LINES.join("\n").repeat(50);
    let call = say(&mut client, &connection.name, &format!("{all}\n{}", good(context.era, "mine")))?;
    client.ended(&call)?.done("mine")?;
    // Nested so deeply that a recursive reader would overflow its stack.
    for bracket in ["[", "{\"a\":"] {
        let arguments = json!({ "front": "", "repeat": bracket, "times": 1024 * 64, "back": format!("\n{}", good(context.era, "mine")) });
        let call = client.call(&connection.name, "say", arguments)?;
        client.ended(&call)?.done("mine")?;
    }
    client.works(&connection.name)?;
    client.finish(context)
}

/// The id can be read, the rest cannot: the call does not wait for a response that has come.
fn garbage_in_the_answer(context: &mut CheckContext) -> Verdict {
    const RESULTS: [&str; 4] = [
        "{\"content\":[{\"type\":\"text\",\"text\":\"\u{ff}\u{fe}\"}]}",
        "{\"content\":[{\"type\":\"text\",\"text\":\"\u{c3}(\"}]}",
        "{\"content\":[}",
        "{\"content\":tru}",
    ];
    let mut client = ClientUnderTest::start(context)?;
    let connection = client.connect(&FaultyServerOptions::honest())?;
    for result in RESULTS {
        let call =
            say(&mut client, &connection.name, &format!("{{\"jsonrpc\":\"2.0\",\"id\":@,\"result\":{result}}}\n"))?;
        client.ended(&call)?.is("Unknown", &["Decode"]).map_err(|failure| failure.at(result))?;
        client.works(&connection.name)?;
    }
    client.finish(context)
}

/// 64 MiB where 16 are taken: with the id in front, and with none.
fn huge(context: &mut CheckContext) -> Verdict {
    let mut client = ClientUnderTest::start(context)?;
    let connection = client.connect(&FaultyServerOptions::honest())?;
    let before = client.baseline()?.resident;
    let beside = client.call(&connection.name, "hang", json!({}))?;
    let arguments = json!({ "front": "{\"jsonrpc\":\"2.0\",\"id\":@,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"",
        "repeat": "x", "times": 64 << 20, "back": "\"}]}}\n" });
    let call = client.call(&connection.name, "say", arguments)?;
    client.ended(&call)?.is("Unknown", &["Decode"])?;
    let arguments = json!({ "front": "", "repeat": "x", "times": 64 << 20,
        "back": format!("\n{}", good(context.era, "mine")) });
    let call = client.call(&connection.name, "say", arguments)?;
    client.ended(&call)?.done("mine")?;
    let peak = Memory::of(client.process())?.peak.saturating_sub(before);
    context.note_memory("peak", peak);
    ensure!(peak <= CLIENT_PEAK_KIB, "a peak of {peak} KiB, the bound is {CLIENT_PEAK_KIB} KiB");
    ensure!(!client.has_ended(&beside), "another call ended by it");
    client.drop_call(&beside)?;
    client.works(&connection.name)?;
    client.finish(context)
}

/// An answer in pieces, each a write of its own.
fn byte_by_byte(context: &mut CheckContext) -> Verdict {
    let mut client = ClientUnderTest::start(context)?;
    let connection = client.connect(&FaultyServerOptions::honest())?;
    let pieces: Vec<Value> =
        good(context.era, "\u{c3}\u{bc}").chars().map(|letter| Value::from(letter.to_string())).collect();
    let call = client.call(&connection.name, "say_in_pieces", json!({ "pieces": pieces }))?;
    client.ended(&call)?.done("ü")?;
    client.works(&connection.name)?;
    client.finish(context)
}
