//! Asking the client's model, and listing the client's roots.

use steadfast_model::{
    Content, CreateMessageParams, CreateMessageResult, EmptyParams, ListRootsResult, Role, SamplingMessage, request,
};

use super::ask::{Ask, request_input};
use super::need::Need;
use crate::error::Error;
use crate::server::context::Context;

/// The client's model and its roots. Both are input requests: see [`Context::elicit`] and the section before it.
impl Context {
    /// Asks the client's model: with a sentence, or with a whole conversation and the tools that it may use.
    ///
    /// ```
    /// # use steadfast::{Context, CreateMessageParams, SamplingMessage};
    /// # async fn example(ctx: Context) -> steadfast::Result<()> {
    /// let capital = ctx.sample("What is the capital of France?").await?;
    /// let haiku = CreateMessageParams::new(vec![SamplingMessage::user("A haiku, please.")], 100).with_temperature(1.0);
    /// let haiku = ctx.sample(haiku).await?;
    /// # Ok(()) }
    /// ```
    pub fn sample(&self, params: impl Into<CreateMessageParams>) -> Ask<CreateMessageResult> {
        let (ctx, params) = (self.clone(), params.into());
        Ask::new(move |options| async move {
            check_tool_uses(&params.messages)?;
            let tools = !params.tools.is_empty() || params.tool_choice.is_some();
            let need = if tools { Need::SamplingTools } else { Need::Sampling };
            Ok(request_input::<request::CreateMessage>(&ctx, need, params, options).await?.result)
        })
    }

    /// Asks for the roots: the folders that the client works in.
    pub fn roots(&self) -> Ask<ListRootsResult> {
        let ctx = self.clone();
        Ask::new(move |options| async move {
            Ok(request_input::<request::ListRoots>(&ctx, Need::Roots, EmptyParams::default(), options).await?.result)
        })
    }
}

/// Checks that each message with tool uses is followed by a message with exactly their results: model providers reject
/// other conversations.
pub(crate) fn check_tool_uses(messages: &[SamplingMessage]) -> Result<(), Error> {
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        let results = message.content.iter().filter_map(|content| match content {
            Content::ToolResult(result) => Some(result.tool_use_id.as_str()),
            _ => None,
        });
        let mut answered: Vec<&str> = results.collect();
        if !answered.is_empty() && (message.role != Role::User || answered.len() < message.content.len()) {
            return Err(Error::usage("a message with tool results must have the role `user` and no other content"));
        }
        open.sort_unstable();
        answered.sort_unstable();
        if open != answered {
            return Err(Error::usage("a message with tool uses must be followed by a message with their results"));
        }
        open.clear();
        open.extend(message.content.iter().filter_map(|content| match content {
            Content::ToolUse(call) => Some(call.id.as_str()),
            _ => None,
        }));
    }
    if open.is_empty() { Ok(()) } else { Err(Error::usage("the last message has tool uses without results")) }
}

#[cfg(test)]
mod tests {
    use steadfast_model::{JsonObject, ToolResultContent, ToolUseContent};

    use super::*;

    fn uses(id: &str) -> SamplingMessage {
        SamplingMessage::new(Role::Assistant, vec![Content::ToolUse(ToolUseContent::new(id, "t", JsonObject::new()))])
    }

    fn result(id: &str) -> Content {
        Content::ToolResult(ToolResultContent::new(id, Vec::new()))
    }

    fn answers(content: Vec<Content>) -> SamplingMessage {
        SamplingMessage::new(Role::User, content)
    }

    #[test]
    fn a_conversation_with_tools_is_balanced() {
        let ask = || SamplingMessage::user("hi");
        assert!(check_tool_uses(&[ask(), uses("1"), answers(vec![result("1")])]).is_ok());
        assert!(check_tool_uses(&[ask(), uses("1")]).is_err(), "not answered");
        assert!(check_tool_uses(&[ask(), uses("1"), ask()]).is_err(), "answered with something else");
        assert!(check_tool_uses(&[ask(), uses("1"), answers(vec![result("2")])]).is_err(), "another's answer");
        assert!(check_tool_uses(&[uses("1"), answers(vec![result("1"), Content::text("and")])]).is_err(), "mixed");
    }
}
