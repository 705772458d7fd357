//! What the handler of a resource may return.

use std::borrow::Cow;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::Value;
use steadfast_model::{BlobResourceContents, JsonObject, ReadResourceResult, ResourceContents, TextResourceContents};

use crate::error::Error;
use crate::server::tool::error::ToolError;
use crate::server::tool::reply::Structured;

/// The result of reading a resource: its contents, or a failure.
pub type ResourceReply = Result<ReadResourceResult, ToolError>;

/// What the handler of a resource may return: text, bytes, JSON, [`ResourceContents`], several of these, a whole
/// [`ReadResourceResult`], or a `Result` of any of these with any error. A handler returns `None` if the requested
/// resource does not exist; the client then gets an error.
///
/// Contents without a URI get the URI of the resource that was requested, and its media type unless they have a media
/// type of their own.
///
/// ```
/// use steadfast::{IntoResourceReply, ServerResourceTemplate};
/// use serde::Deserialize;
///
/// #[derive(Deserialize)]
/// struct Note {
///     name: String,
/// }
///
/// ServerResourceTemplate::new("note://{name}", "note").handler(|note: Note| async move {
///     match note.name.as_str() {
///         "missing" => Ok(None),
///         name => std::fs::read(format!("notes/{name}")).map(Some),
///     }
/// });
///
/// assert_eq!(b"\x00\x01".to_vec().into_resource_reply().unwrap().contents.len(), 1);
/// ```
#[diagnostic::on_unimplemented(
    message = "a resource cannot hold `{Self}`",
    label = "not something that a resource can hold",
    note = "a resource's handler returns `String`, `Vec<u8>`, JSON, `ResourceContents`, `Vec<ResourceContents>`, `ReadResourceResult`, an `Option` of these, or a `Result`",
    note = "to answer with a value of your own as JSON, derive `Serialize` for it and return `Structured<{Self}>`"
)]
pub trait IntoResourceReply {
    /// Converts the value that the handler of a resource returned into the result of `resources/read`.
    fn into_resource_reply(self) -> ResourceReply;
}

impl<T: IntoResourceReply, E: Into<ToolError>> IntoResourceReply for Result<T, E> {
    fn into_resource_reply(self) -> ResourceReply {
        match self {
            Ok(value) => value.into_resource_reply(),
            Err(error) => Err(error.into()),
        }
    }
}

/// `None` means that the requested resource does not exist.
impl<T: IntoResourceReply> IntoResourceReply for Option<T> {
    fn into_resource_reply(self) -> ResourceReply {
        // The caller adds the URI.
        self.map_or_else(|| Err(Error::resource_not_found("").into()), T::into_resource_reply)
    }
}

impl IntoResourceReply for ReadResourceResult {
    fn into_resource_reply(self) -> ResourceReply {
        Ok(self)
    }
}

impl IntoResourceReply for Vec<ResourceContents> {
    fn into_resource_reply(self) -> ResourceReply {
        Ok(ReadResourceResult::new(self))
    }
}

impl<const N: usize> IntoResourceReply for [ResourceContents; N] {
    fn into_resource_reply(self) -> ResourceReply {
        Ok(ReadResourceResult::new(self.into()))
    }
}

/// A [`Structured`] value becomes the contents of a resource, as JSON text.
impl<T: Serialize> IntoResourceReply for Structured<T> {
    fn into_resource_reply(self) -> ResourceReply {
        let text = serde_json::to_string(&self.0).map_err(Error::encode)?;
        ResourceContents::text("", text).with_mime_type("application/json").into_resource_reply()
    }
}

/// A JSON value becomes the contents of a resource, as JSON text.
impl IntoResourceReply for Value {
    fn into_resource_reply(self) -> ResourceReply {
        Structured(self).into_resource_reply()
    }
}

/// A JSON object becomes the contents of a resource, as JSON text.
impl IntoResourceReply for JsonObject {
    fn into_resource_reply(self) -> ResourceReply {
        Structured(self).into_resource_reply()
    }
}

/// Implements `IntoResourceReply` for types that become one item of a resource's contents.
macro_rules! contents {
    ($($type:ty: $value:ident => $contents:expr),+ $(,)?) => {$(
        impl IntoResourceReply for $type {
            fn into_resource_reply(self) -> ResourceReply {
                let $value = self;
                Ok(ReadResourceResult::new(vec![$contents]))
            }
        }
    )+};
}

contents! {
    ResourceContents: contents => contents,
    TextResourceContents: contents => contents.into(),
    BlobResourceContents: contents => contents.into(),
    String: text => ResourceContents::text("", text),
    &str: text => ResourceContents::text("", text),
    Cow<'_, str>: text => ResourceContents::text("", text),
    Box<str>: text => ResourceContents::text("", text),
    Arc<str>: text => ResourceContents::text("", &*text),
    Vec<u8>: bytes => blob(&bytes),
    &[u8]: bytes => blob(bytes),
    Box<[u8]>: bytes => blob(&bytes),
    Arc<[u8]>: bytes => blob(&bytes),
}

impl<const N: usize> IntoResourceReply for &[u8; N] {
    fn into_resource_reply(self) -> ResourceReply {
        self.as_slice().into_resource_reply()
    }
}

pub(crate) fn blob(bytes: &[u8]) -> ResourceContents {
    ResourceContents::blob("", STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use steadfast_model::code;

    use super::*;

    fn only(value: impl IntoResourceReply) -> Value {
        serde_json::to_value(value.into_resource_reply().unwrap().contents.first().unwrap()).unwrap()
    }

    #[test]
    fn text_is_text_and_bytes_are_base64() {
        assert_eq!(only("a"), json!({"uri": "", "text": "a"}));
        assert_eq!(only(vec![0, 1, 2]), json!({"uri": "", "blob": "AAEC"}));
        assert_eq!(only(json!({"a": 1})), json!({"uri": "", "mimeType": "application/json", "text": "{\"a\":1}"}));
    }

    #[test]
    fn nothing_is_no_such_resource() {
        let failure = None::<String>.into_resource_reply().unwrap_err();
        assert_eq!(failure.into_error().object().code, code::RESOURCE_NOT_FOUND);
    }

    #[test]
    fn any_error_is_a_failure() {
        let failure = Err::<String, _>(std::io::Error::other("disk")).into_resource_reply().unwrap_err();
        assert_eq!(failure.into_error().object().message, "disk");
    }
}
