//! The headers in which a request of 2026-07-28 mirrors members of its body: the protocol version, the method, the name
//! of a tool or prompt (or a URI or task id), and some arguments of a tool.

use http::{HeaderMap, HeaderName, HeaderValue};
use steadfast_model::Method;
use steadfast_proto::envelope::{self, Message};
use steadfast_proto::http::headers::{encode, named_by, protocol_version};
use steadfast_proto::http::name;

/// The maximum nesting of a request that mirrors its body in headers; a request that is nested deeper is not sent.
const MAX_DEPTH: usize = 1_024;

/// Supplies the headers that mirror arguments of tool calls; the client implements it, because it knows the tools of
/// the server.
pub(crate) trait ClientToolHeaders: Send + Sync + 'static {
    /// Calls `header` with the name and value of each header that mirrors one of these arguments (JSON text). `header`
    /// is not called if the tool is unknown.
    fn each_header(&self, tool: &str, arguments: &str, header: &mut dyn FnMut(&str, &str));

    /// Called before an HTTP request is sent with these credentials. Cached results belong to the credentials of their
    /// requests.
    fn identify(&self, credentials: &mut dyn Iterator<Item = &[u8]>);
}

/// The headers that mirror a request; `None` if its body does not name a protocol version, as before 2026-07-28.
///
/// The connection supplies the id, method and call of a request with its body. The body is parsed once more, because
/// the headers mirror members of `params`, which the connection has only as JSON text.
///
/// # Errors
///
/// Fails if the body of the request is nested too deeply to be parsed. A request that is nested too deeply is not sent,
/// because servers refuse requests without the mirrored headers.
pub(crate) fn mirrored_headers(
    method: Method,
    body: &[u8],
    tool_headers: &dyn ClientToolHeaders,
) -> Result<Option<HeaderMap>, String> {
    let message = envelope::read(body, MAX_DEPTH).map_err(|refusal| refusal.error().message.into_owned())?;
    let Message::Request { params, .. } = message else { return Ok(None) };
    let Some(version) = protocol_version(&params) else { return Ok(None) };
    let mut headers = HeaderMap::new();
    let mut insert = |name: &str, value: &str| {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    };
    insert(name::PROTOCOL_VERSION, &version);
    insert(name::METHOD, method.name());
    if let Some(named) = named_by(method.name()).and_then(|member| params.get_string(member)) {
        insert(name::NAME, &encode(&named));
        if let (Method::CallTool, Some(arguments)) = (method, params.get("arguments")) {
            tool_headers.each_header(&named, arguments, &mut insert);
        }
    }
    Ok(Some(headers))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mirrors the argument `city` of every tool.
    struct City;

    impl ClientToolHeaders for City {
        fn each_header(&self, tool: &str, arguments: &str, header: &mut dyn FnMut(&str, &str)) {
            let arguments: serde_json::Value = serde_json::from_str(arguments).unwrap();
            header("mcp-param-city", &format!("{tool}:{}", arguments["city"].as_str().unwrap()));
        }

        fn identify(&self, _: &mut dyn Iterator<Item = &[u8]>) {}
    }

    fn mirrored(method: Method, params: &str) -> Result<Option<Vec<(String, String)>>, String> {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}","params":{params}}}"#, method.name());
        let headers = mirrored_headers(method, body.as_bytes(), &City)?;
        Ok(headers.map(|headers| {
            let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
            let mut all: Vec<_> = headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
            all.sort();
            all
        }))
    }

    const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;

    #[test]
    fn a_request_mirrors_its_version_method_name_and_arguments() {
        let headers = mirrored(Method::CallTool, &format!(r#"{{"name":"rain","arguments":{{"city":"Bonn"}},{META}}}"#));
        let expected = [
            ("mcp-method", "tools/call"),
            ("mcp-name", "rain"),
            ("mcp-param-city", "rain:Bonn"),
            ("mcp-protocol-version", "2026-07-28"),
        ];
        assert_eq!(headers, Ok(Some(expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into())));
    }

    #[test]
    fn a_request_of_an_older_revision_has_no_mirrored_headers() {
        assert_eq!(mirrored(Method::CallTool, r#"{"name":"rain","arguments":{"city":"Bonn"}}"#), Ok(None));
        assert_eq!(mirrored(Method::Initialize, r#"{"protocolVersion":"2025-11-25"}"#), Ok(None));
    }

    #[test]
    fn a_request_that_is_nested_too_deeply_is_an_error() {
        let deep = format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
        assert!(
            mirrored(Method::CallTool, &format!(r#"{{"name":"rain","arguments":{{"a":{deep}}},{META}}}"#)).is_err()
        );
    }
}
