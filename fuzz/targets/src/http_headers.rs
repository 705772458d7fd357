//! Headers beside bodies: no panic, and what is let through is what a plain comparison lets through.
//!
//! Input: lines of headers as HTTP writes them, an empty line, a JSON-RPC message.

use serde_json::{Value, json};
use steadfast_model::{JsonObject, Method, Revision};
use steadfast_proto::envelope::{self, Message};
use steadfast_proto::http::headers::{self, HttpSessionMode, HeaderError};
use steadfast_proto::http::params::MirroredParams;
use steadfast_proto::http::{Headers, SingleHeader};

use crate::members::Members;

/// Runs the target.
pub fn run(bytes: &[u8]) {
    let at = bytes.windows(2).position(|pair| pair == b"\n\n").unwrap_or(bytes.len());
    let (head, body) = bytes.split_at(at);
    let head = Head::read(head);
    for (_, value) in &head.0 {
        sentinel(value);
    }
    let Ok(message) = envelope::read(body, 64) else { return };
    let era = HttpSessionMode::of(&head, &message);
    let Message::Request { method, params, .. } = &message else { return };
    let text = params.text();
    let version = member(text, "_meta").and_then(|meta| member(meta, "io.modelcontextprotocol/protocolVersion"));
    let bare = *method == "initialize" && version.is_none();
    let header_is_modern =
        head.once("mcp-protocol-version").is_ok_and(|value| value.is_some_and(|text| is_stateless(&text)));
    let modern = version.is_some() || (header_is_modern && !bare);
    assert_eq!(era == HttpSessionMode::Stateless, modern, "the era");
    let checked = headers::check(&head, method, params);
    if let Err(refused) = &checked {
        assert!(matches!(refused.error().code, -32020 | -32602));
    }
    assert_eq!(matches!(checked, Err(HeaderError::NoVersion)), version.is_none(), "whether a version is named");
    if let Some(version) = version {
        assert_eq!(checked.is_ok(), agrees(&head, method, text, version), "whether the headers agree with the body");
    }
    mirrored(&head, member(text, "arguments"));
}

/// The headers of a request.
struct Head(Vec<(String, Vec<u8>)>);

impl Head {
    fn read(head: &[u8]) -> Self {
        let lines = head.split(|byte| *byte == b'\n').filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            let (name, value) = line.split_at(colon);
            Some((String::from_utf8_lossy(name).to_ascii_lowercase(), value.get(1..)?.to_vec()))
        });
        Self(lines.take(32).collect())
    }

    /// A header that is there once, if it is; an error if it is there in a form that nobody may rely on.
    fn once(&self, name: &str) -> Result<Option<String>, ()> {
        let values: Vec<&Vec<u8>> = self.0.iter().filter(|(known, _)| known == name).map(|(_, value)| value).collect();
        match *values {
            [] => Ok(None),
            [value] if value.iter().all(|byte| (32..127).contains(byte) || *byte == 9) => {
                Ok(Some(String::from_utf8_lossy(value).trim_matches([' ', '\t']).to_owned()))
            }
            _ => Err(()),
        }
    }

    /// Whether a header is there, once, and says this, perhaps in base64.
    fn says(&self, name: &str, text: &str, encoded: bool) -> bool {
        let Ok(Some(value)) = self.once(name) else { return false };
        let said = if encoded { unwrap(&value) } else { Some(value) };
        said.is_some_and(|said| said == text)
    }
}

impl Headers for Head {
    fn values<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_slice())
    }
}

fn is_stateless(version: &str) -> bool {
    Revision::parse(version).is_some_and(Revision::is_stateless)
}

/// Whether the headers say what the body says, for a body that names its version.
fn agrees(head: &Head, method: &str, params: &str, version: &str) -> bool {
    // A version that is no text is the body's own mistake.
    let Some(version) = string(version) else { return true };
    if !head.says("mcp-protocol-version", &version, false) {
        return false;
    }
    if !is_stateless(&version) {
        return true;
    }
    if !head.says("mcp-method", method, false) {
        return false;
    }
    let named = match Method::from_name(method) {
        Some(Method::CallTool | Method::GetPrompt) => "name",
        Some(Method::ReadResource) => "uri",
        Some(Method::GetTask | Method::UpdateTask | Method::CancelTask) => "taskId",
        _ => return true,
    };
    match member(params, named).and_then(string) {
        Some(name) => head.says("mcp-name", &name, true),
        None => head.once("mcp-name") == Ok(None),
    }
}

/// The last member of that name, as JSON text.
fn member<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    let members = serde_json::from_str::<Members<'a>>(object).ok()?;
    members.0.into_iter().rfind(|(known, _)| known == name).map(|(_, value)| value.get())
}

fn string(json: &str) -> Option<String> {
    serde_json::from_str(json).ok()
}

/// Text in base64 is read as it was written, whatever it is, and nothing else is taken for it.
fn sentinel(value: &[u8]) {
    let text = String::from_utf8_lossy(value);
    let encoded = headers::encode(&text);
    assert_eq!(headers::decode(&encoded).as_deref(), Some(&*text), "what was encoded");
    let pair = [("x", &*encoded)];
    assert_eq!(SingleHeader::of(pair.as_slice(), "x"), SingleHeader::Value(&encoded), "what is encoded can be sent");
    assert_eq!(headers::decode(&text).map(String::from), unwrap(&text), "what is decoded");
}

/// The base64 form, read by hand.
fn unwrap(value: &str) -> Option<String> {
    let Some(encoded) = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) else {
        return Some(value.to_owned());
    };
    if encoded.len() % 4 != 0 {
        return None;
    }
    let padding = encoded.bytes().rev().take_while(|byte| *byte == b'=').count();
    let digits = encoded.strip_suffix(&"=".repeat(padding.min(2)))?;
    let mut bytes = Vec::new();
    let (mut bits, mut held) = (0_u32, 0);
    for digit in digits.bytes() {
        let digit = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(digit);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from(bits >> held & 255).ok()?);
        }
    }
    // What is left over says nothing, and has to be zero.
    (bits & ((1 << held) - 1) == 0).then_some(())?;
    String::from_utf8(bytes).ok()
}

/// Arguments that are mirrored.
fn mirrored(head: &Head, arguments: Option<&str>) {
    let schema = json!({"type": "object", "properties": {
        "text": {"type": "string", "x-mcp-header": "Text"},
        "number": {"type": "integer", "x-mcp-header": "Number"},
        "flag": {"type": ["boolean", "null"], "x-mcp-header": "Flag"},
        "deep": {"type": "object", "properties": {"er": {"type": "string", "x-mcp-header": "Deeper"}}},
    }});
    let Value::Object(schema) = schema else { return };
    let Ok(params) = MirroredParams::of_schema(&schema) else { panic!("a schema that may be") };
    let paths: [(&str, &[&str]); 4] =
        [("text", &["text"]), ("number", &["number"]), ("flag", &["flag"]), ("deeper", &["deep", "er"])];
    let fits = paths.iter().all(|(name, path)| {
        let body = arguments.and_then(|all| path.iter().try_fold(all, |object, name| member(object, name)));
        says_the_same(head.once(&format!("mcp-param-{name}")), body.filter(|body| *body != "null"))
    });
    assert_eq!(params.check_arguments(head, arguments).is_ok(), fits, "whether the headers agree with the arguments");
    let Some(Ok(arguments)) = arguments.map(serde_json::from_str::<JsonObject>) else { return };
    round_trip(&params, &arguments, &paths);
}

fn says_the_same(said: Result<Option<String>, ()>, body: Option<&str>) -> bool {
    let (said, body) = match (said, body) {
        (Ok(None), None) => return true,
        (Ok(Some(said)), Some(body)) => (said, body),
        _ => return false,
    };
    let Some(said) = unwrap(&said) else { return false };
    match body.as_bytes().first() {
        Some(b'"') => string(body).is_some_and(|body| body == said),
        Some(b't' | b'f') => said == body,
        Some(b'-' | b'0'..=b'9') => is_safe(body) && digits(&said).is_some_and(|said| Some(said) == digits(body)),
        _ => false,
    }
}

/// Whether every reader of a number reads the same: those that are larger are refused, whatever the header says.
fn is_safe(body: &str) -> bool {
    body.parse::<f64>().is_ok_and(|number| number.abs() <= 9_007_199_254_740_991.0)
}

/// A number written out without an exponent, in one way only.
fn digits(text: &str) -> Option<String> {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    if !is_number(whole) || !is_number(fraction) || !is_number(unsigned) {
        return None;
    }
    let all = format!("{whole}{fraction}");
    let leading = all.len() - all.trim_start_matches('0').len();
    let significant = all.trim_start_matches('0').trim_end_matches('0');
    if significant.is_empty() {
        return Some("0".to_owned());
    }
    let exponent: i64 = exponent.parse().ok()?;
    // Where the point stands, counted from the first digit that says something.
    let point = exponent.checked_add(i64::try_from(whole.len()).ok()? - i64::try_from(leading).ok()?)?;
    Some(format!("{}.{significant}e{point}", if negative { "-" } else { "" }))
}

/// What a client writes of arguments that have the right types, a server takes.
fn round_trip(params: &MirroredParams, arguments: &JsonObject, paths: &[(&str, &[&str])]) {
    let arguments = Value::Object(arguments.clone());
    let rightly_typed = paths.iter().all(|(_, path)| {
        let value = path.iter().fold(&arguments, |value, name| &value[*name]);
        match value {
            Value::Number(number) => is_safe(&number.to_string()),
            Value::Null | Value::String(_) | Value::Bool(_) => true,
            _ => false,
        }
    });
    if !rightly_typed {
        return;
    }
    let mut head = Head(Vec::new());
    let text = arguments.to_string();
    params.each_header(&text, |name, value| head.0.push((name.to_ascii_lowercase(), value.as_bytes().to_vec())));
    assert_eq!(params.check_arguments(&head, Some(&text)), Ok(()), "headers that were written for {text}");
}
