//! Responses that are malformed, too many, or too late.

use serde_json::{Value, json};

use crate::bench::Bench;
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::limits::{CLIENT_PEAK_KIB, CLIENT_SHORT_MS};
use crate::process::memory::Memory;
use crate::subject::{Play, Subject};
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
fn say(subject: &mut Subject, connection: &str, text: &str) -> Verdict<String> {
    subject.call(connection, "say", json!({ "front": text }))
}

fn twice(bench: &mut Bench) -> Verdict {
    let mut subject = Subject::start(bench)?;
    let line = subject.connect(&Play::honest())?;
    for _ in 0..20 {
        let call = say(&mut subject, &line.name, &(good(bench.era, "first") + &good(bench.era, "second")))?;
        subject.ended(&call)?.done("first")?;
        let refused = "{\"jsonrpc\":\"2.0\",\"id\":@,\"error\":{\"code\":1,\"message\":\"no\"}}\n";
        let call = say(&mut subject, &line.name, &(good(bench.era, "first") + refused))?;
        subject.ended(&call)?.done("first")?;
        subject.works(&line.name)?;
    }
    subject.finish(bench)
}

/// The answer comes when the client has given the call up.
fn late(bench: &mut Bench) -> Verdict {
    let mut subject = Subject::start(bench)?;
    let line = subject.connect(&Play::honest())?;
    for _ in 0..3 {
        let call = subject.call_with(&line.name, "late", json!({}), &json!({ "deadline_ms": CLIENT_SHORT_MS / 2 }))?;
        let id = line.journal.wait(&format!("called {call} "))?;
        subject.ended(&call)?.is("Unknown", &["TimedOut"])?;
        // By then the late answer is written, and it comes before that of the next call.
        line.journal.wait(&format!("cancelled {id}"))?;
        subject.works(&line.name)?;
    }
    subject.finish(bench)
}

fn to_nothing(bench: &mut Bench) -> Verdict {
    const IDS: [&str; 9] = ["999999", "-1", "\"@\"", "\"unknown\"", "null", "18446744073709551616", "1.5", "[]", "{}"];
    let mut subject = Subject::start(bench)?;
    let line = subject.connect(&Play::honest())?;
    for id in IDS {
        let stray = good(bench.era, "stray").replacen("\"id\":@", &format!("\"id\":{id}"), 1);
        let refusal =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32000,\"message\":\"stray\"}}}}\n");
        let text = stray + &refusal + &good(bench.era, "mine");
        let call = say(&mut subject, &line.name, &text)?;
        subject.ended(&call)?.done("mine").map_err(|failure| failure.at(id))?;
    }
    // Progress with an unknown token, cancellations of unknown ids, unknown notifications.
    let strays = [
        json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": 77, "progress": 1 } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 77 } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/unheard_of", "params": {} }),
        json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": [] }),
    ];
    for stray in strays {
        let call = say(&mut subject, &line.name, &format!("{stray}\n{}", good(bench.era, "mine")))?;
        subject.ended(&call)?.done("mine").map_err(|failure| failure.at(stray.to_string()))?;
    }
    subject.works(&line.name)?;
    subject.finish(bench)
}

/// A result came, so the server did it: what cannot be used is Answered. What may be no result at all is Unknown.
fn wrong_shape(bench: &mut Bench) -> Verdict {
    let kind = if bench.era.is_stateless() { "\"resultType\":\"complete\"," } else { "" };
    let results = [
        format!("{{{kind}\"content\":7}}"),
        format!("{{{kind}\"content\":[{{\"type\":\"text\"}}]}}"),
        format!("{{{kind}\"content\":[7]}}"),
        format!("{{{kind}\"content\":[],\"isError\":\"perhaps\"}}"),
    ];
    let mut subject = Subject::start(bench)?;
    let line = subject.connect(&Play::honest())?;
    for result in results {
        let call = say(&mut subject, &line.name, &format!("{{\"jsonrpc\":\"2.0\",\"id\":@,\"result\":{result}}}\n"))?;
        subject.ended(&call)?.is("Answered", &["Decode"]).map_err(|failure| failure.at(&result))?;
        subject.works(&line.name)?;
    }
    let neither = [
        "\"result\":{},\"error\":{\"code\":1,\"message\":\"both\"}",
        "\"error\":{\"message\":\"no code\"}",
        "\"error\":\"no object\"",
        "\"error\":{\"code\":\"seven\",\"message\":\"no number\"}",
        "\"other\":1",
    ];
    for members in neither {
        let call = say(&mut subject, &line.name, &format!("{{\"jsonrpc\":\"2.0\",\"id\":@,{members}}}\n"))?;
        subject.ended(&call)?.is("Unknown", &["Decode"]).map_err(|failure| failure.at(members))?;
        subject.works(&line.name)?;
    }
    for result in ["7", "null", "[]", "\"text\"", "true"] {
        let call = say(&mut subject, &line.name, &format!("{{\"jsonrpc\":\"2.0\",\"id\":@,\"result\":{result}}}\n"))?;
        let ended = subject.ended(&call)?;
        let right = ended.kind == "Decode" && ["Answered", "Unknown"].contains(&ended.ends.as_str());
        ensure!(right, "a result {result}: {ended}");
        subject.works(&line.name)?;
    }
    if bench.era.is_stateless() {
        let text = "{\"jsonrpc\":\"2.0\",\"id\":@,\"result\":{\"resultType\":\"unheard_of\",\"content\":[]}}\n";
        let call = say(&mut subject, &line.name, text)?;
        subject.ended(&call)?.is("Unknown", &["Decode"])?;
    }
    subject.finish(bench)
}

fn error(bench: &mut Bench) -> Verdict {
    let mut subject = Subject::start(bench)?;
    let line = subject.connect(&Play::honest())?;
    for error in
        [json!({ "code": -32602, "message": "no" }), json!({ "code": 7, "message": "", "data": { "deep": [1] } })]
    {
        let call = say(&mut subject, &line.name, &format!("{{\"jsonrpc\":\"2.0\",\"id\":@,\"error\":{error}}}\n"))?;
        subject.ended(&call)?.is("Refused", &["Refused"])?;
    }
    subject.works(&line.name)?;
    subject.finish(bench)
}

/// Each is a line of its own before the answer. Characters up to U+00FF stand for one byte each.
fn garbage(bench: &mut Bench) -> Verdict {
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
    let mut subject = Subject::start(bench)?;
    let line = subject.connect(&Play::honest())?;
    for garbage in LINES {
        let call = say(&mut subject, &line.name, &format!("{garbage}\n{}", good(bench.era, "mine")))?;
        subject.ended(&call)?.done("mine").map_err(|failure| failure.at(format!("{garbage:?}")))?;
    }
    let all = LINES.join("\n").repeat(50);
    let call = say(&mut subject, &line.name, &format!("{all}\n{}", good(bench.era, "mine")))?;
    subject.ended(&call)?.done("mine")?;
    // Nested so deeply that a recursive reader would overflow its stack.
    for bracket in ["[", "{\"a\":"] {
        let arguments = json!({ "front": "", "repeat": bracket, "times": 1024 * 64, "back": format!("\n{}", good(bench.era, "mine")) });
        let call = subject.call(&line.name, "say", arguments)?;
        subject.ended(&call)?.done("mine")?;
    }
    subject.works(&line.name)?;
    subject.finish(bench)
}

/// The id can be read, the rest cannot: the call does not wait for a response that has come.
fn garbage_in_the_answer(bench: &mut Bench) -> Verdict {
    const RESULTS: [&str; 4] = [
        "{\"content\":[{\"type\":\"text\",\"text\":\"\u{ff}\u{fe}\"}]}",
        "{\"content\":[{\"type\":\"text\",\"text\":\"\u{c3}(\"}]}",
        "{\"content\":[}",
        "{\"content\":tru}",
    ];
    let mut subject = Subject::start(bench)?;
    let line = subject.connect(&Play::honest())?;
    for result in RESULTS {
        let call = say(&mut subject, &line.name, &format!("{{\"jsonrpc\":\"2.0\",\"id\":@,\"result\":{result}}}\n"))?;
        subject.ended(&call)?.is("Unknown", &["Decode"]).map_err(|failure| failure.at(result))?;
        subject.works(&line.name)?;
    }
    subject.finish(bench)
}

/// 64 MiB where 16 are taken: with the id in front, and with none.
fn huge(bench: &mut Bench) -> Verdict {
    let mut subject = Subject::start(bench)?;
    let line = subject.connect(&Play::honest())?;
    let before = subject.baseline()?.resident;
    let beside = subject.call(&line.name, "hang", json!({}))?;
    let arguments = json!({ "front": "{\"jsonrpc\":\"2.0\",\"id\":@,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"",
        "repeat": "x", "times": 64 << 20, "back": "\"}]}}\n" });
    let call = subject.call(&line.name, "say", arguments)?;
    subject.ended(&call)?.is("Unknown", &["Decode"])?;
    let arguments = json!({ "front": "", "repeat": "x", "times": 64 << 20,
        "back": format!("\n{}", good(bench.era, "mine")) });
    let call = subject.call(&line.name, "say", arguments)?;
    subject.ended(&call)?.done("mine")?;
    let peak = Memory::of(subject.process())?.peak.saturating_sub(before);
    bench.note_memory("peak", peak);
    ensure!(peak <= CLIENT_PEAK_KIB, "a peak of {peak} KiB, the bound is {CLIENT_PEAK_KIB} KiB");
    ensure!(!subject.has_ended(&beside), "another call ended by it");
    subject.take_back(&beside)?;
    subject.works(&line.name)?;
    subject.finish(bench)
}

/// An answer in pieces, each a write of its own.
fn byte_by_byte(bench: &mut Bench) -> Verdict {
    let mut subject = Subject::start(bench)?;
    let line = subject.connect(&Play::honest())?;
    let pieces: Vec<Value> =
        good(bench.era, "\u{c3}\u{bc}").chars().map(|letter| Value::from(letter.to_string())).collect();
    let call = subject.call(&line.name, "say_in_pieces", json!({ "pieces": pieces }))?;
    subject.ended(&call)?.done("ü")?;
    subject.works(&line.name)?;
    subject.finish(bench)
}
