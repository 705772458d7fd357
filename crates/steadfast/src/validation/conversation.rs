//! Checks of the conversations of sampling requests. A server checks the conversations that it sends, and a client
//! checks those that it receives.

use steadfast_model::{Content, Role, SamplingMessage};

use crate::error::Error;

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
