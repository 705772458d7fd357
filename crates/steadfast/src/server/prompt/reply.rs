//! What the handler of a prompt may return.

use std::borrow::Cow;
use std::sync::Arc;

use steadfast_model::{
    AudioContent, Content, EmbeddedResource, GetPromptResult, ImageContent, PromptMessage, Resource, Role, TextContent,
};

use crate::server::tool::error::ToolError;
use crate::server::tool::media::{Audio, Image};

/// The result of a prompt's handler: the messages of the prompt, or a failure.
pub type PromptReply = Result<GetPromptResult, ToolError>;

/// What a prompt may return: text or any content, as a message of the user; messages with their roles; a whole
/// [`GetPromptResult`]; or a `Result` of any of these with any error.
///
/// ```
/// use steadfast::{Content, IntoPromptReply, PromptMessage, Role, server::Image};
///
/// async fn plain(topic: String) -> String {
///     format!("Explain {topic} to me.")
/// }
///
/// async fn dialogue() -> [(Role, &'static str); 2] {
///     [(Role::User, "Who are you?"), (Role::Assistant, "Your guide. Where do you want to go?")]
/// }
///
/// async fn mixed(path: String) -> steadfast::ToolResult<Vec<PromptMessage>> {
///     let picture = Image::png(std::fs::read(path)?);
///     Ok(vec![PromptMessage::user(picture), PromptMessage::user("What is on this picture?")])
/// }
///
/// let result = "Hello".into_prompt_reply().unwrap();
/// assert_eq!(result.messages, [PromptMessage::user("Hello")]);
/// ```
#[diagnostic::on_unimplemented(
    message = "a prompt cannot return `{Self}`",
    label = "not something that a prompt can be filled in with",
    note = "a prompt returns `String`, `Content`, `PromptMessage`, `(Role, impl Into<Content>)`, a `Vec` or array of these, `GetPromptResult`, or a `Result` of these"
)]
pub trait IntoPromptReply {
    /// Converts the return value of a prompt's handler into the messages of the prompt.
    fn into_prompt_reply(self) -> PromptReply;
}

impl IntoPromptReply for GetPromptResult {
    fn into_prompt_reply(self) -> PromptReply {
        Ok(self)
    }
}

impl<T: IntoPromptReply, E: Into<ToolError>> IntoPromptReply for Result<T, E> {
    fn into_prompt_reply(self) -> PromptReply {
        match self {
            Ok(value) => value.into_prompt_reply(),
            Err(error) => Err(error.into()),
        }
    }
}

impl IntoPromptReply for PromptMessage {
    fn into_prompt_reply(self) -> PromptReply {
        Ok(GetPromptResult::new(vec![self]))
    }
}

impl<C: Into<Content>> IntoPromptReply for (Role, C) {
    fn into_prompt_reply(self) -> PromptReply {
        PromptMessage::from(self).into_prompt_reply()
    }
}

impl<M: Into<PromptMessage>> IntoPromptReply for Vec<M> {
    fn into_prompt_reply(self) -> PromptReply {
        Ok(GetPromptResult::new(self.into_iter().map(Into::into).collect()))
    }
}

impl<M: Into<PromptMessage>, const N: usize> IntoPromptReply for [M; N] {
    fn into_prompt_reply(self) -> PromptReply {
        Ok(GetPromptResult::new(self.into_iter().map(Into::into).collect()))
    }
}

/// Implements `IntoPromptReply` for types of content: the prompt has one message, with the role of the user.
macro_rules! impl_user_message {
    ($($type:ty: $value:ident => $content:expr),+ $(,)?) => {$(
        impl IntoPromptReply for $type {
            fn into_prompt_reply(self) -> PromptReply {
                let $value = self;
                PromptMessage::user($content).into_prompt_reply()
            }
        }
    )+};
}

impl_user_message! {
    Content: content => content,
    TextContent: content => Content::Text(content),
    ImageContent: content => Content::Image(content),
    AudioContent: content => Content::Audio(content),
    EmbeddedResource: content => Content::Resource(content),
    Resource: link => Content::resource_link(link),
    Image: image => image,
    Audio: audio => audio,
    String: text => text,
    &str: text => text,
    Cow<'_, str>: text => text.into_owned(),
    Box<str>: text => text.into_string(),
    Arc<str>: text => &*text,
}

/// Converts an image into a prompt message with the role of the user.
impl From<Image> for PromptMessage {
    fn from(image: Image) -> Self {
        Self::user(image)
    }
}

/// Converts audio into a prompt message with the role of the user.
impl From<Audio> for PromptMessage {
    fn from(audio: Audio) -> Self {
        Self::user(audio)
    }
}

#[cfg(test)]
mod tests {
    use steadfast_model::{ResourceContents, TextResourceContents, code};

    use super::*;
    use crate::error::Error;

    fn messages(reply: impl IntoPromptReply) -> Vec<PromptMessage> {
        reply.into_prompt_reply().unwrap().messages
    }

    #[test]
    fn text_is_a_message_of_the_user() {
        let expected = [PromptMessage::user("hello")];
        assert_eq!(messages("hello"), expected);
        assert_eq!(messages(String::from("hello")), expected);
        assert_eq!(messages(Cow::Borrowed("hello")), expected);
        assert_eq!(messages(Arc::<str>::from("hello")), expected);
        assert_eq!(messages(["hello"]), expected);
    }

    #[test]
    fn every_kind_of_content_can_be_returned() {
        let embedded = ResourceContents::from(TextResourceContents::new("file:///a", "text"));
        let pieces = [
            Content::text("a"),
            Content::from(Image::png([1])),
            Content::from(Audio::wav([1])),
            Content::resource(embedded),
            Content::resource_link(Resource::new("file:///a", "a")),
        ];
        for piece in pieces.clone() {
            assert_eq!(messages(piece.clone()), [PromptMessage::user(piece)]);
        }
        assert_eq!(messages(pieces.to_vec()), pieces.map(PromptMessage::user));
    }

    #[test]
    fn roles_are_not_changed() {
        let expected = [PromptMessage::user("a"), PromptMessage::assistant("b")];
        assert_eq!(messages([(Role::User, "a"), (Role::Assistant, "b")]), expected);
        assert_eq!(messages(expected.to_vec()), expected);
        assert_eq!(messages((Role::Assistant, Image::png([1]))), [PromptMessage::assistant(Image::png([1]))]);
    }

    #[test]
    fn any_error_becomes_a_json_rpc_error() {
        let failed = Err::<String, _>(std::io::Error::other("disk")).into_prompt_reply().unwrap_err().into_error();
        assert_eq!((failed.object().code, &*failed.object().message), (code::INTERNAL_ERROR, "disk"));
        let refused = Err::<String, _>(Error::invalid_params("no")).into_prompt_reply().unwrap_err().into_error();
        assert_eq!(refused.object().code, code::INVALID_PARAMS);
    }
}
