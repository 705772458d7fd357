//! The headers of an HTTP POST, compared with its body.
//!
//! In stateless revisions some members of the body of an HTTP POST are mirrored into headers, so that proxies can route without
//! reading bodies. A server that accepted a body with different headers would let a request bypass a proxy that trusts the
//! headers; so each mirrored header is compared with the body, and a difference is a [`HeaderMismatch`].

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use steadfast_model::error::excerpt;
use steadfast_model::{ErrorObject, Method, Revision, meta};

use super::{Headers, SingleHeader, name};
use crate::envelope::{Message, Params};
use crate::json;

/// Whether an HTTP POST follows a revision with sessions (up to 2025-11-25) or a stateless revision (since
/// 2026-07-28). One server receives POSTs of both kinds of revision, with sessions and stateless.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HttpSessionMode {
    /// The POST follows a revision with sessions, which begin with `initialize` (up to 2025-11-25).
    Session,
    /// The POST follows a stateless revision, without sessions (since 2026-07-28).
    Stateless,
}

impl HttpSessionMode {
    /// Finds out whether a POST belongs to a revision with sessions or to a stateless revision.
    ///
    /// A POST is stateless if its body names a revision in `_meta`, or its header names a stateless revision. An `initialize`
    /// without `_meta` is never stateless, whatever its header says, because it opens a session.
    pub fn of(headers: &(impl Headers + ?Sized), message: &Message<'_>) -> Self {
        let header = SingleHeader::of(headers, name::PROTOCOL_VERSION);
        let modern_header =
            matches!(header, SingleHeader::Value(value) if Revision::parse(value).is_some_and(Revision::is_stateless));
        let (method, params) = match message {
            Message::Request { method, params, .. } | Message::Notification { method, params } => (method, params),
            Message::Response { .. } | Message::Batch(_) => return Self::from_header(modern_header),
        };
        if version_in_body(params).is_some() {
            return Self::Stateless;
        }
        Self::from_header(modern_header && *method != Method::Initialize.name())
    }

    const fn from_header(modern: bool) -> Self {
        if modern { Self::Stateless } else { Self::Session }
    }
}

/// Whether `Mcp-Method`, if present, is the method of the body. Before 2026-07-28 the header `Mcp-Method` is not required; but
/// a proxy that decides by the header must not see another method than the one that is executed.
pub fn method_agrees(headers: &(impl Headers + ?Sized), message: &Message<'_>) -> bool {
    match (SingleHeader::of(headers, name::METHOD), message) {
        (SingleHeader::Absent, _) => true,
        (SingleHeader::Value(said), Message::Request { method, .. } | Message::Notification { method, .. }) => {
            said == method
        }
        _ => false,
    }
}

/// A difference between the headers of an HTTP request and its body.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderMismatch {
    /// A required header of the HTTP request is missing.
    Missing {
        /// The name of the missing header.
        header: Cow<'static, str>,
    },
    /// A header occurs more than once.
    Repeated {
        /// The name of the repeated header.
        header: Cow<'static, str>,
    },
    /// A header contains invalid bytes or invalid base64.
    Unreadable {
        /// The name of the header that cannot be read.
        header: Cow<'static, str>,
    },
    /// The header and the body of the request have different values.
    Differs {
        /// The name of the header that differs from the body of the request.
        header: Cow<'static, str>,
        /// The beginning of the header's value.
        said: String,
        /// The beginning of the corresponding value in the body of the request.
        body: String,
    },
    /// A header has no counterpart in the body of the request.
    NotInBody {
        /// The name of the header without a counterpart in the body of the request.
        header: Cow<'static, str>,
    },
    /// A header mirrors an integer that some JSON parsers cannot represent.
    OutOfRange {
        /// The name of the header with the integer that is out of range.
        header: Cow<'static, str>,
    },
}

impl fmt::Display for HeaderMismatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { header } => write!(formatter, "the header {header} is missing"),
            Self::Repeated { header } => write!(formatter, "the header {header} occurs more than once"),
            Self::Unreadable { header } => write!(formatter, "the header {header} is malformed"),
            Self::Differs { header, said, body } => {
                write!(formatter, "the header {header} is '{said}' but the body has '{body}'")
            }
            Self::NotInBody { header } => write!(formatter, "the header {header} has no counterpart in the body"),
            Self::OutOfRange { header } => write!(formatter, "the header {header} mirrors an integer beyond 2^53 - 1"),
        }
    }
}

impl std::error::Error for HeaderMismatch {}

/// Why a request of a stateless revision is refused because of its headers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderError {
    /// The headers and the body of the request disagree: error -32020.
    Mismatch(HeaderMismatch),
    /// The body of the request does not name its protocol revision: error -32602.
    NoVersion,
}

impl From<HeaderMismatch> for HeaderError {
    fn from(mismatch: HeaderMismatch) -> Self {
        Self::Mismatch(mismatch)
    }
}

impl HeaderError {
    /// The JSON-RPC error to answer the request with.
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

/// Compares the headers `MCP-Protocol-Version`, `Mcp-Method` and `Mcp-Name` of a stateless request with its body.
/// Arguments of tools that are mirrored into headers are compared by [`super::params`], where the tool is known.
///
/// Headers of a request with an unknown revision are not checked: the connection refuses the request with the list of supported
/// revisions.
pub fn check(headers: &(impl Headers + ?Sized), method: &str, params: &Params<'_>) -> Result<(), HeaderError> {
    let Some(version) = version_in_body(params) else { return Err(HeaderError::NoVersion) };
    let Some(version) = version else { return Ok(()) };
    require(headers, name::PROTOCOL_VERSION, "MCP-Protocol-Version", &version, plain)?;
    if !Revision::parse(&version).is_some_and(Revision::is_stateless) {
        return Ok(());
    }
    require(headers, name::METHOD, "Mcp-Method", method, plain)?;
    let Some(member) = named_by(method) else { return Ok(()) };
    match params.get_string(member) {
        Some(body) => require(headers, name::NAME, "Mcp-Name", &body, decode)?,
        // The handler refuses the body for the missing member. A header must not supply it for a proxy.
        None if SingleHeader::of(headers, name::NAME) == SingleHeader::Absent => {}
        None => return Err(HeaderMismatch::NotInBody { header: "Mcp-Name".into() }.into()),
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

/// Decodes a value of `Mcp-Name` or `Mcp-Param-*`; `None` if the value is marked as base64 but is not valid base64.
pub fn decode(value: &str) -> Option<Cow<'_, str>> {
    let Some(encoded) = value.strip_prefix(SENTINEL_BEGIN).and_then(|rest| rest.strip_suffix(SENTINEL_END)) else {
        return Some(Cow::Borrowed(value));
    };
    let bytes = STANDARD.decode(encoded).ok()?;
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// Encodes a text as the value of `Mcp-Name` or `Mcp-Param-*`, in base64 if a header cannot carry the text unchanged.
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

/// Checks that an HTTP header occurs exactly once, with this value.
fn require(
    headers: &(impl Headers + ?Sized),
    name: &str,
    shown: &'static str,
    body: &str,
    decode: impl FnOnce(&str) -> Option<Cow<'_, str>>,
) -> Result<(), HeaderMismatch> {
    let header = || Cow::Borrowed(shown);
    let value = once(headers, name, header)?.ok_or_else(|| HeaderMismatch::Missing { header: header() })?;
    let said = decode(value).ok_or_else(|| HeaderMismatch::Unreadable { header: header() })?;
    if said == body { Ok(()) } else { Err(differs(header(), &said, body)) }
}

/// Reads an HTTP header that may occur at most once.
pub(super) fn once<'a>(
    headers: &'a (impl Headers + ?Sized),
    name: &str,
    shown: impl Fn() -> Cow<'static, str>,
) -> Result<Option<&'a str>, HeaderMismatch> {
    match SingleHeader::of(headers, name) {
        SingleHeader::Absent => Ok(None),
        SingleHeader::Value(value) => Ok(Some(value)),
        SingleHeader::Repeated => Err(HeaderMismatch::Repeated { header: shown() }),
        SingleHeader::Unreadable => Err(HeaderMismatch::Unreadable { header: shown() }),
    }
}

pub(super) fn differs(header: Cow<'static, str>, said: &str, body: &str) -> HeaderMismatch {
    HeaderMismatch::Differs { header, said: excerpt(said).into_owned(), body: excerpt(body).into_owned() }
}

#[allow(clippy::unnecessary_wraps)] // One of the two ways to read a header; the other one can fail.
fn plain(value: &str) -> Option<Cow<'_, str>> {
    Some(Cow::Borrowed(value))
}

/// The protocol version that `params._meta` names, if it is a string.
pub fn protocol_version<'a>(params: &Params<'a>) -> Option<Cow<'a, str>> {
    version_in_body(params).flatten()
}

/// The protocol version in the body of a request: absent, not a string, or a string.
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

    fn checked(headers: &[(&str, &str)], body: &str) -> Result<(), HeaderError> {
        let Ok(Message::Request { method, params, .. }) = envelope::read_text(body, 64) else { panic!("{body}") };
        check(headers, &method, &params)
    }

    fn mode(headers: &[(&str, &str)], body: &str) -> HttpSessionMode {
        HttpSessionMode::of(headers, &envelope::read_text(body, 64).unwrap())
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
    fn every_required_header_has_to_be_present() {
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
        let shown = HeaderMismatch::Repeated { header: "Mcp-Method".into() };
        assert_eq!(checked(&headers, &body), Err(shown.into()));
    }

    #[test]
    fn the_name_header_mirrors_the_member_of_each_method() {
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
    fn encoded_text_is_decoded_to_the_same() {
        for text in ["plain", "", " padded", "line\nline", "=?base64?literal?=", "ünï", "tab\there", "\0"] {
            let encoded = encode(text);
            assert!(encoded.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            assert_eq!(decode(&encoded).as_deref(), Some(text));
        }
    }

    #[test]
    fn invalid_bytes_in_a_header_are_refused() {
        let body = request("tools/call", &format!(r#""name":"ü",{META}"#));
        let headers = [VERSION, (name::METHOD, "tools/call"), (name::NAME, "ü")];
        assert_eq!(checked(&headers, &body), Err(HeaderMismatch::Unreadable { header: "Mcp-Name".into() }.into()));
    }

    #[test]
    fn a_body_without_a_version_has_invalid_parameters() {
        assert_eq!(refusal(&[VERSION, (name::METHOD, "tools/list")], &request("tools/list", "")), code::INVALID_PARAMS);
    }

    #[test]
    fn an_unknown_version_is_left_to_the_connection() {
        let body = request("tools/list", r#""_meta":{"io.modelcontextprotocol/protocolVersion":"v999"}"#);
        assert_eq!(checked(&[(name::PROTOCOL_VERSION, "v999")], &body), Ok(()));
        assert_eq!(refusal(&[VERSION], &body), code::HEADER_MISMATCH);
    }

    #[test]
    fn the_era_is_read_from_the_body_then_from_the_header() {
        let bare = request("tools/list", "");
        let modern = request("tools/list", META);
        let legacy_version = (name::PROTOCOL_VERSION, "2025-11-25");
        assert_eq!(mode(&[], &bare), HttpSessionMode::Session);
        assert_eq!(mode(&[legacy_version], &bare), HttpSessionMode::Session);
        assert_eq!(mode(&[VERSION], &bare), HttpSessionMode::Stateless);
        assert_eq!(mode(&[], &modern), HttpSessionMode::Stateless);
        assert_eq!(mode(&[legacy_version], &modern), HttpSessionMode::Stateless);
        assert_eq!(mode(&[VERSION], &request("initialize", "")), HttpSessionMode::Session);
        assert_eq!(mode(&[VERSION], &request("initialize", META)), HttpSessionMode::Stateless);
        assert_eq!(mode(&[VERSION], r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), HttpSessionMode::Stateless);
        assert_eq!(mode(&[], "[]"), HttpSessionMode::Session);
    }
}
