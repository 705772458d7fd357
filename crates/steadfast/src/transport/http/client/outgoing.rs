//! What has to be known of a message of ours to send it, such as what it says of itself in the headers of its request.

use http::{HeaderMap, HeaderName, HeaderValue};
use steadfast_model::meta::key::PROTOCOL_VERSION;
use steadfast_model::{JsonObject, Method, RequestId};
use steadfast_proto::envelope::{self, Message};
use steadfast_proto::http::headers::{encode, named_by};
use steadfast_proto::http::name;

use super::tool_headers::ToolHeaders;

/// As deep as any message may be.
const DEEPEST: usize = 1_024;

/// What has to be known of a message to send it.
#[derive(Default)]
pub(crate) struct Outgoing {
    pub(crate) method: Option<Method>,
    /// Set if it is a request.
    pub(crate) id: Option<RequestId>,
    /// Set if it says that a request was given up: which.
    pub(crate) cancels: Option<RequestId>,
    /// Set if it speaks 2026-07-28 or later: the headers that mirror it.
    pub(crate) mirrored: Option<HeaderMap>,
}

impl Outgoing {
    /// Looks at a message of our own. The client knows which arguments of a tool are mirrored. If it cannot be looked at, because
    /// what the program put into it is too deep, it is said why.
    pub(crate) fn of(body: &[u8], tool_headers: &dyn ToolHeaders) -> Result<Self, String> {
        let message = envelope::read(body, DEEPEST).map_err(|refusal| refusal.error().message.into_owned())?;
        let (id, method, params) = match message {
            Message::Request { id, method, params } => (Some(id), method, params),
            Message::Notification { method, params } => (None, method, params),
            _ => return Ok(Self::default()),
        };
        let meta: Option<JsonObject> = params.get("_meta").and_then(|text| serde_json::from_str(text).ok());
        let revision = meta.as_ref().and_then(|meta| meta.get(PROTOCOL_VERSION)).and_then(|value| value.as_str());
        let mirrored = revision.map(|revision| {
            let mut headers = HeaderMap::new();
            let mut put = |name: &str, value: &str| {
                if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                    headers.insert(name, value);
                }
            };
            put(name::PROTOCOL_VERSION, revision);
            put(name::METHOD, &method);
            let named = named_by(&method).and_then(|member| params.get(member));
            if let Some(named) = named.and_then(|text| serde_json::from_str::<String>(text).ok()) {
                put(name::NAME, &encode(&named));
                if let (Some(Method::CallTool), Some(arguments)) = (Method::from_name(&method), params.get("arguments"))
                {
                    tool_headers.each_header(&named, arguments, &mut put);
                }
            }
            headers
        });
        let method = Method::from_name(&method);
        let cancels = params.get("requestId").filter(|_| method == Some(Method::Cancelled));
        Ok(Self { method, id, cancels: cancels.and_then(RequestId::parse), mirrored })
    }
}
