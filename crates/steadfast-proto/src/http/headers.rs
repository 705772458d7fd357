//! What the headers of a POST say, beside what its body says.
//!
//! In 2026-07-28 some members of the body are mirrored into headers, so that what stands between client and server can
//! route without reading bodies. A server that took a body whose headers say something else would let a request past
//! whoever trusted the headers; so each is compared, and a difference is a [`Mismatch`].

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use steadfast_model::error::excerpt;
use steadfast_model::{ErrorObject, Method, Revision, meta};

use super::{Headers, Single, name};
use crate::envelope::{Message, Params};
use crate::json;

/// Which rules a POST goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// Sessions that begin with `initialize`: up to 2025-11-25.
    Legacy,
    /// Every request stands alone: 2026-07-28.
    Modern,
}

impl Era {
    /// The era of a POST.
    ///
    /// A body that names its revision in `_meta` is modern, and so is one whose header names a modern revision; a bare
    /// `initialize` is not, whatever its header says, because it is how a client opens the other era.
    pub fn of(headers: &(impl Headers + ?Sized), message: &Message<'_>) -> Self {
        let header = Single::of(headers, name::PROTOCOL_VERSION);
        let modern_header =
            matches!(header, Single::Value(value) if Revision::parse(value).is_some_and(Revision::is_modern));
        let (method, params) = match message {
            Message::Request { method, params, .. } | Message::Notification { method, params } => (method, params),
            Message::Answer { .. } | Message::Batch(_) => return Self::from_header(modern_header),
        };
        if version_in_body(params).is_some() {
            return Self::Modern;
        }
        Self::from_header(modern_header && *method != Method::Initialize.name())
    }

    const fn from_header(modern: bool) -> Self {
        if modern { Self::Modern } else { Self::Legacy }
    }
}

/// Whether `Mcp-Method` says the method of the body, if it is there. Before 2026-07-28 it need not be; but whoever decides by the
/// header, in front of us, must not be told another method than the one that is carried out.
pub fn method_agrees(headers: &(impl Headers + ?Sized), message: &Message<'_>) -> bool {
    match (Single::of(headers, name::METHOD), message) {
        (Single::Absent, _) => true,
        (Single::Value(said), Message::Request { method, .. } | Message::Notification { method, .. }) => said == method,
        _ => false,
    }
}

/// The headers of a request and its body do not say the same.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mismatch {
    /// A header that is required is not there.
    Missing {
        /// Which.
        header: Cow<'static, str>,
    },
    /// A header is there more than once.
    Repeated {
        /// Which.
        header: Cow<'static, str>,
    },
    /// A header has bytes that it may not have, or is not the base64 that it says it is.
    Unreadable {
        /// Which.
        header: Cow<'static, str>,
    },
    /// A header says something else than the body.
    Differs {
        /// Which.
        header: Cow<'static, str>,
        /// What it says, the beginning of it.
        said: String,
        /// What the body says, the beginning of it.
        body: String,
    },
    /// A header says something that the body does not.
    NotInBody {
        /// Which.
        header: Cow<'static, str>,
    },
    /// A header mirrors an integer that not everyone on the way reads alike.
    OutOfRange {
        /// Which.
        header: Cow<'static, str>,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { header } => write!(formatter, "the header {header} is missing"),
            Self::Repeated { header } => write!(formatter, "the header {header} is there more than once"),
            Self::Unreadable { header } => write!(formatter, "the header {header} cannot be read"),
            Self::Differs { header, said, body } => {
                write!(formatter, "the header {header} says '{said}' and the body says '{body}'")
            }
            Self::NotInBody { header } => write!(formatter, "the header {header} has no counterpart in the body"),
            Self::OutOfRange { header } => write!(formatter, "the header {header} mirrors an integer beyond 2^53 - 1"),
        }
    }
}

impl std::error::Error for Mismatch {}

/// Why a modern request is refused for its headers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// Headers and body disagree: -32020.
    Mismatch(Mismatch),
    /// The body does not say which revision it is written in: -32602.
    NoVersion,
}

impl From<Mismatch> for Refused {
    fn from(mismatch: Mismatch) -> Self {
        Self::Mismatch(mismatch)
    }
}

impl Refused {
    /// The error to answer with.
    pub fn error(&self) -> ErrorObject {
        match self {
            Self::Mismatch(mismatch) => ErrorObject::header_mismatch(format!("header mismatch: {mismatch}")),
            Self::NoVersion => ErrorObject::invalid_params(format!(
                "params._meta[\"{}\"] is missing: each request names the protocol version",
                meta::key::PROTOCOL_VERSION
            )),
        }
    }
}

/// Compares the headers of a modern request with its body: version, method and name. Mirrored arguments are compared by
/// [`super::params`], where the tool is known.
///
/// A revision that is not known is let through: which headers it has is not known either, and the connection refuses it
/// with the list of those that are.
pub fn check(headers: &(impl Headers + ?Sized), method: &str, params: &Params<'_>) -> Result<(), Refused> {
    let Some(version) = version_in_body(params) else { return Err(Refused::NoVersion) };
    let Some(version) = version else { return Ok(()) };
    require(headers, name::PROTOCOL_VERSION, "MCP-Protocol-Version", &version, plain)?;
    if !Revision::parse(&version).is_some_and(Revision::is_modern) {
        return Ok(());
    }
    require(headers, name::METHOD, "Mcp-Method", method, plain)?;
    let Some(member) = named_by(method) else { return Ok(()) };
    match params.get_string(member) {
        Some(body) => require(headers, name::NAME, "Mcp-Name", &body, decode)?,
        // The body is refused for what it lacks, unless a header fills the gap for whoever trusts it.
        None if Single::of(headers, name::NAME) == Single::Absent => {}
        None => return Err(Mismatch::NotInBody { header: "Mcp-Name".into() }.into()),
    }
    Ok(())
}

/// The member of the parameters that `Mcp-Name` mirrors, for methods that have one.
pub fn named_by(method: &str) -> Option<&'static str> {
    match Method::from_name(method)? {
        Method::CallTool | Method::GetPrompt => Some("name"),
        Method::ReadResource => Some("uri"),
        Method::GetTask | Method::UpdateTask | Method::CancelTask => Some("taskId"),
        _ => None,
    }
}

/// The text that a value of `Mcp-Name` or `Mcp-Param-*` stands for; `None` if it says that it is base64 and is not.
pub fn decode(value: &str) -> Option<Cow<'_, str>> {
    let Some(encoded) = value.strip_prefix(SENTINEL_BEGIN).and_then(|rest| rest.strip_suffix(SENTINEL_END)) else {
        return Some(Cow::Borrowed(value));
    };
    let bytes = STANDARD.decode(encoded).ok()?;
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// The value of `Mcp-Name` or `Mcp-Param-*` for a text, in base64 where it would not arrive as it is.
///
/// ```
/// use steadfast_proto::http::headers::{decode, encode};
/// assert_eq!(encode("us-west1"), "us-west1");
/// assert_eq!(encode(" padded "), "=?base64?IHBhZGRlZCA=?=");
/// assert_eq!(decode(&encode("日本")).unwrap(), "日本");
/// ```
pub fn encode(text: &str) -> Cow<'_, str> {
    let printable = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let padded = text.trim_matches(' ').len() != text.len();
    let ambiguous = text.starts_with(SENTINEL_BEGIN) && text.ends_with(SENTINEL_END);
    if printable && !padded && !ambiguous {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{SENTINEL_BEGIN}{}{SENTINEL_END}", STANDARD.encode(text)))
}

const SENTINEL_BEGIN: &str = "=?base64?";
const SENTINEL_END: &str = "?=";

/// A header that has to be there, once, and say this.
fn require(
    headers: &(impl Headers + ?Sized),
    name: &str,
    shown: &'static str,
    body: &str,
    decode: impl FnOnce(&str) -> Option<Cow<'_, str>>,
) -> Result<(), Mismatch> {
    let header = || Cow::Borrowed(shown);
    let value = once(headers, name, header)?.ok_or_else(|| Mismatch::Missing { header: header() })?;
    let said = decode(value).ok_or_else(|| Mismatch::Unreadable { header: header() })?;
    if said == body { Ok(()) } else { Err(differs(header(), &said, body)) }
}

/// A header that may be there, once.
pub(super) fn once<'a>(
    headers: &'a (impl Headers + ?Sized),
    name: &str,
    shown: impl Fn() -> Cow<'static, str>,
) -> Result<Option<&'a str>, Mismatch> {
    match Single::of(headers, name) {
        Single::Absent => Ok(None),
        Single::Value(value) => Ok(Some(value)),
        Single::Repeated => Err(Mismatch::Repeated { header: shown() }),
        Single::Unreadable => Err(Mismatch::Unreadable { header: shown() }),
    }
}

pub(super) fn differs(header: Cow<'static, str>, said: &str, body: &str) -> Mismatch {
    Mismatch::Differs { header, said: excerpt(said).into_owned(), body: excerpt(body).into_owned() }
}

#[allow(clippy::unnecessary_wraps)] // One of the two ways to read a header; the other one can fail.
fn plain(value: &str) -> Option<Cow<'_, str>> {
    Some(Cow::Borrowed(value))
}

/// The protocol version that `_meta` names, if it is a string.
pub fn protocol_version<'a>(params: &Params<'a>) -> Option<Cow<'a, str>> {
    version_in_body(params).flatten()
}

/// What the body says of its revision: nothing; something that is no text; or a text.
#[allow(clippy::option_option)]
fn version_in_body<'a>(params: &Params<'a>) -> Option<Option<Cow<'a, str>>> {
    let mut found = None;
    json::each_member(params.get("_meta")?, |key, value| {
        if key == meta::key::PROTOCOL_VERSION {
            let text = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).and_then(json::unescape);
            found = Some(text);
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope;
    use steadfast_model::code;

    const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    const VERSION: (&str, &str) = (name::PROTOCOL_VERSION, "2026-07-28");

    fn request(method: &str, members: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{members}}}}}"#)
    }

    fn checked(headers: &[(&str, &str)], body: &str) -> Result<(), Refused> {
        let Ok(Message::Request { method, params, .. }) = envelope::read_text(body, 64) else { panic!("{body}") };
        check(headers, &method, &params)
    }

    fn era(headers: &[(&str, &str)], body: &str) -> Era {
        Era::of(headers, &envelope::read_text(body, 64).unwrap())
    }

    fn refusal(headers: &[(&str, &str)], body: &str) -> i64 {
        checked(headers, body).unwrap_err().error().code
    }

    #[test]
    fn headers_that_mirror_the_body_pass() {
        let body = request("tools/call", &format!(r#""name":"add",{META}"#));
        let headers = [VERSION, (name::METHOD, "tools/call"), (name::NAME, "add")];
        assert_eq!(checked(&headers, &body), Ok(()));
        let padded = [VERSION, (name::METHOD, " tools/call\t"), (name::NAME, "  add  ")];
        assert_eq!(checked(&padded, &body), Ok(()));
    }

    #[test]
    fn every_header_that_is_required_is_missed() {
        let body = request("tools/call", &format!(r#""name":"add",{META}"#));
        let headers = [VERSION, (name::METHOD, "tools/call"), (name::NAME, "add")];
        for place in 0..headers.len() {
            let mut fewer = headers.to_vec();
            fewer.remove(place);
            assert_eq!(refusal(&fewer, &body), code::HEADER_MISMATCH, "{fewer:?}");
        }
    }

    #[test]
    fn every_header_is_compared_with_its_case() {
        let body = request("tools/call", &format!(r#""name":"add",{META}"#));
        let headers = [VERSION, (name::METHOD, "tools/call"), (name::NAME, "add")];
        for (place, wrong) in [(0, "2025-11-25"), (1, "TOOLS/CALL"), (2, "Add")] {
            let mut changed = headers;
            changed[place].1 = wrong;
            assert_eq!(refusal(&changed, &body), code::HEADER_MISMATCH, "{changed:?}");
        }
    }

    #[test]
    fn a_header_twice_is_refused_even_if_both_are_right() {
        let body = request("tools/list", META);
        let headers = [VERSION, (name::METHOD, "tools/list"), (name::METHOD, "tools/list")];
        let shown = Mismatch::Repeated { header: "Mcp-Method".into() };
        assert_eq!(checked(&headers, &body), Err(shown.into()));
    }

    #[test]
    fn the_name_is_where_the_method_has_it() {
        for (method, member) in
            [("prompts/get", "name"), ("resources/read", "uri"), ("tasks/get", "taskId"), ("tasks/cancel", "taskId")]
        {
            let body = request(method, &format!(r#""{member}":"x",{META}"#));
            assert_eq!(checked(&[VERSION, (name::METHOD, method), (name::NAME, "x")], &body), Ok(()), "{method}");
            assert_eq!(refusal(&[VERSION, (name::METHOD, method), (name::NAME, "y")], &body), code::HEADER_MISMATCH);
        }
    }

    #[test]
    fn a_name_that_the_body_lacks_is_refused_only_if_the_header_has_it() {
        let body = request("tools/call", META);
        assert_eq!(checked(&[VERSION, (name::METHOD, "tools/call")], &body), Ok(()));
        let headers = [VERSION, (name::METHOD, "tools/call"), (name::NAME, "add")];
        assert_eq!(refusal(&headers, &body), code::HEADER_MISMATCH);
    }

    #[test]
    fn a_name_in_base64_is_decoded_first() {
        let body = request("tools/call", &format!(r#""name":"日本",{META}"#));
        let encoded = encode("日本");
        assert_eq!(checked(&[VERSION, (name::METHOD, "tools/call"), (name::NAME, &encoded)], &body), Ok(()));
    }

    #[test]
    fn what_only_looks_like_base64_is_literal_or_refused() {
        assert_eq!(decode("=?base64?SGVsbG8=?=").as_deref(), Some("Hello"));
        assert_eq!(decode("=?base64?SGVsbG8?="), None);
        assert_eq!(decode("=?base64?SGVs!!!bG8=?="), None);
        assert_eq!(decode("=?base64?/w==?="), None, "not UTF-8");
        for literal in ["SGVsbG8=", "=?base64?SGVsbG8=", "=?BASE64?SGVsbG8=?=", "=?base64?="] {
            assert_eq!(decode(literal).as_deref(), Some(literal));
        }
    }

    #[test]
    fn what_is_encoded_is_decoded_to_the_same() {
        for text in ["plain", "", " padded", "line\nline", "=?base64?literal?=", "ünï", "tab\there", "\0"] {
            let encoded = encode(text);
            assert!(encoded.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            assert_eq!(decode(&encoded).as_deref(), Some(text));
        }
    }

    #[test]
    fn bytes_that_a_header_may_not_have_are_refused() {
        let body = request("tools/call", &format!(r#""name":"ü",{META}"#));
        let headers = [VERSION, (name::METHOD, "tools/call"), (name::NAME, "ü")];
        assert_eq!(checked(&headers, &body), Err(Mismatch::Unreadable { header: "Mcp-Name".into() }.into()));
    }

    #[test]
    fn a_body_without_a_version_has_invalid_parameters() {
        assert_eq!(refusal(&[VERSION, (name::METHOD, "tools/list")], &request("tools/list", "")), code::INVALID_PARAMS);
    }

    #[test]
    fn a_version_nobody_knows_is_left_to_the_connection() {
        let body = request("tools/list", r#""_meta":{"io.modelcontextprotocol/protocolVersion":"v999"}"#);
        assert_eq!(checked(&[(name::PROTOCOL_VERSION, "v999")], &body), Ok(()));
        assert_eq!(refusal(&[VERSION], &body), code::HEADER_MISMATCH);
    }

    #[test]
    fn the_era_is_in_the_body_and_then_in_the_header() {
        let bare = request("tools/list", "");
        let modern = request("tools/list", META);
        let legacy_version = (name::PROTOCOL_VERSION, "2025-11-25");
        assert_eq!(era(&[], &bare), Era::Legacy);
        assert_eq!(era(&[legacy_version], &bare), Era::Legacy);
        assert_eq!(era(&[VERSION], &bare), Era::Modern);
        assert_eq!(era(&[], &modern), Era::Modern);
        assert_eq!(era(&[legacy_version], &modern), Era::Modern);
        assert_eq!(era(&[VERSION], &request("initialize", "")), Era::Legacy);
        assert_eq!(era(&[VERSION], &request("initialize", META)), Era::Modern);
        assert_eq!(era(&[VERSION], r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), Era::Modern);
        assert_eq!(era(&[], "[]"), Era::Legacy);
    }
}
