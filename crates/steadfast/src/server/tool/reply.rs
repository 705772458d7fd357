//! The types that the handler of a tool may return, and how they become the result of `tools/call`.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use steadfast_model::{
    AudioContent, CallToolResult, Content, EmbeddedResource, ImageContent, JsonObject, Resource, TextContent,
};

use super::error::{ToolError, ToolReply};
use super::media::{Audio, Image};
use super::schema;
use crate::error::Error;

/// What a tool may return: text, numbers, images, several content blocks, a [`Structured`] value, a whole
/// [`CallToolResult`], nothing, or a `Result` of any of these with any error.
///
/// ```
/// use steadfast::{Content, IntoToolReply, server::Image};
///
/// async fn greet(name: String) -> String {
///     format!("Hello {name}")
/// }
///
/// async fn look() -> Result<Vec<Content>, std::io::Error> {
///     let picture = Image::png(std::fs::read("camera.png")?);
///     Ok(vec![Content::text("This is what I see:"), picture.into()])
/// }
///
/// let reply = 42.into_tool_reply().unwrap();
/// assert_eq!(reply.content, [Content::text("42")]);
/// ```
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "not something that a tool can answer with",
    note = "a tool returns `String`, a number, `bool`, `()`, `Content`, `Vec<Content>`, `Image`, `Audio`, `CallToolResult`, or a `Result` of these",
    note = "to answer with a value of your own, derive `Serialize` and `JsonSchema` for it and return `Structured<{Self}>`"
)]
pub trait IntoToolReply {
    /// Converts the value that the handler of a tool returned into the result of `tools/call`.
    fn into_tool_reply(self) -> ToolReply;

    /// The schema of the structured content, for types that always have structured content.
    fn output_schema() -> Option<JsonObject>
    where
        Self: Sized,
    {
        None
    }
}

/// A value that is sent as structured content, with its schema in the list of tools, and as JSON text for clients that
/// read only text.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Serialize;
/// use steadfast::{IntoToolReply, Structured};
///
/// #[derive(Serialize, JsonSchema)]
/// struct Forecast {
///     /// Degrees Celsius
///     temperature: f64,
/// }
///
/// async fn forecast(city: String) -> steadfast::ToolResult<Structured<Forecast>> {
///     Ok(Structured(Forecast { temperature: 21.5 }))
/// }
///
/// let result = Structured(Forecast { temperature: 21.5 }).into_tool_reply().unwrap();
/// assert_eq!(result.structured_content.unwrap()["temperature"], 21.5);
/// assert_eq!(result.content[0].as_text(), Some(r#"{"temperature":21.5}"#));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Structured<T>(pub T);

impl<T: Serialize + JsonSchema> IntoToolReply for Structured<T> {
    fn into_tool_reply(self) -> ToolReply {
        serde_json::to_value(self.0).map_err(Error::encode)?.into_tool_reply()
    }

    fn output_schema() -> Option<JsonObject> {
        Some(schema::of_output::<T>())
    }
}

impl<T: IntoToolReply, E: Into<ToolError>> IntoToolReply for Result<T, E> {
    fn into_tool_reply(self) -> ToolReply {
        match self {
            Ok(value) => value.into_tool_reply(),
            Err(error) => Err(error.into()),
        }
    }

    fn output_schema() -> Option<JsonObject> {
        T::output_schema()
    }
}

/// `None` becomes a tool result without content. An `Option` has no output schema, because `None` has no structured
/// content.
impl<T: IntoToolReply> IntoToolReply for Option<T> {
    fn into_tool_reply(self) -> ToolReply {
        self.map_or_else(|| ().into_tool_reply(), T::into_tool_reply)
    }
}

/// Any JSON, as structured content without a schema and as text. Prefer [`Structured`], which tells clients what to expect.
impl IntoToolReply for Value {
    fn into_tool_reply(self) -> ToolReply {
        Ok(CallToolResult::text(self.to_string()).with_structured_content(self))
    }
}

/// A JSON object is sent as structured content without a schema and as text, as any JSON [`Value`] is.
impl IntoToolReply for JsonObject {
    fn into_tool_reply(self) -> ToolReply {
        Value::Object(self).into_tool_reply()
    }
}

impl IntoToolReply for CallToolResult {
    fn into_tool_reply(self) -> ToolReply {
        Ok(self)
    }
}

impl IntoToolReply for () {
    fn into_tool_reply(self) -> ToolReply {
        Ok(CallToolResult::default())
    }
}

impl IntoToolReply for Vec<Content> {
    fn into_tool_reply(self) -> ToolReply {
        Ok(CallToolResult::new(self))
    }
}

impl<const N: usize> IntoToolReply for [Content; N] {
    fn into_tool_reply(self) -> ToolReply {
        Ok(CallToolResult::new(self.into()))
    }
}

/// Implements `IntoToolReply` for types that become one content block.
macro_rules! content {
    ($($type:ty: $value:ident => $content:expr),+ $(,)?) => {$(
        impl IntoToolReply for $type {
            fn into_tool_reply(self) -> ToolReply {
                let $value = self;
                Ok(CallToolResult::new(vec![$content]))
            }
        }
    )+};
}

content! {
    Content: content => content,
    TextContent: content => Content::Text(content),
    ImageContent: content => Content::Image(content),
    AudioContent: content => Content::Audio(content),
    EmbeddedResource: content => Content::Resource(content),
    Resource: link => Content::resource_link(link),
    Image: image => image.into(),
    Audio: audio => audio.into(),
    String: text => Content::text(text),
    &str: text => Content::text(text),
    Cow<'_, str>: text => Content::text(text),
    Box<str>: text => Content::text(text),
    Arc<str>: text => Content::text(&*text),
}

/// Implements `IntoToolReply` for types that become text, as formatted by `Display`.
macro_rules! displayed {
    ($($type:ty),+) => { content! { $($type: value => Content::text(value.to_string())),+ } };
}

displayed!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, f32, f64, bool, char);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(reply: impl IntoToolReply) -> String {
        let result = reply.into_tool_reply().unwrap();
        assert!(!result.is_error());
        result.content.iter().filter_map(Content::as_text).collect()
    }

    #[test]
    fn plain_values_become_text() {
        assert_eq!(text("hello"), "hello");
        assert_eq!(text(String::from("hello")), "hello");
        assert_eq!(text(-5_i64), "-5");
        assert_eq!(text(0.5), "0.5");
        assert_eq!(text(true), "true");
        assert_eq!(text(()), "");
        assert_eq!(text(None::<String>), "");
        assert_eq!(text(Some(7)), "7");
    }

    #[test]
    fn every_kind_of_content_can_be_returned() {
        use steadfast_model::{ResourceContents, TextResourceContents};
        let embedded = ResourceContents::from(TextResourceContents::new("file:///a", "text"));
        let pieces = [
            Content::text("a"),
            Content::from(Image::png([1])),
            Content::from(Audio::wav([1])),
            Content::resource(embedded),
            Content::resource_link(Resource::new("file:///a", "a")),
        ];
        for piece in pieces.clone() {
            assert_eq!(piece.clone().into_tool_reply().unwrap().content, [piece]);
        }
        assert_eq!(pieces.clone().into_tool_reply().unwrap().content, pieces);
    }

    #[test]
    fn a_result_of_a_structured_value_has_its_schema() {
        type EncodedResponse = Result<Structured<Vec<u8>>, std::fmt::Error>;
        let schema = EncodedResponse::output_schema().unwrap();
        assert_eq!(schema["type"], "array");
        assert!(<Option<Structured<u8>>>::output_schema().is_none());
        let result = EncodedResponse::Ok(Structured(vec![1, 2])).into_tool_reply().unwrap();
        assert_eq!(result.structured_content, Some(json!([1, 2])));
        assert_eq!(result.content, [Content::text("[1,2]")]);
    }

    #[test]
    fn any_json_is_structured_content() {
        let result = json!({ "a": 1 }).into_tool_reply().unwrap();
        assert_eq!(result.structured_content, Some(json!({ "a": 1 })));
        assert_eq!(result.content, [Content::text(r#"{"a":1}"#)]);
        assert!(Value::output_schema().is_none());
    }

    #[test]
    fn errors_are_sorted() {
        let failed = Err::<String, _>(std::io::Error::other("disk")).into_tool_reply();
        assert!(failed.unwrap_err().protocol_error().is_none());
        let refused = Err::<String, _>(Error::invalid_params("no")).into_tool_reply();
        assert!(refused.unwrap_err().protocol_error().is_some());
        let written = Err::<String, _>("just words").into_tool_reply();
        assert!(written.unwrap_err().protocol_error().is_none());
    }

    #[test]
    fn a_value_that_cannot_be_encoded_is_an_internal_error() {
        let keyed_by_pairs = std::collections::BTreeMap::from([((1, 2), 3)]);
        #[derive(Serialize, JsonSchema)]
        struct Wrapper(#[schemars(with = "u8")] std::collections::BTreeMap<(u8, u8), u8>);
        let reply = Structured(Wrapper(keyed_by_pairs)).into_tool_reply();
        assert!(reply.unwrap_err().protocol_error().is_some());
    }
}
