//! Asking the client's model, and listing the client's roots.

use steadfast_model::{CreateMessageParams, CreateMessageResult, EmptyParams, ListRootsResult, request};

use super::ask::{Ask, request_input};
use super::need::RequiredClientCapability;
use crate::server::context::Context;
use crate::validation::conversation::check_tool_uses;

/// The client's model and its roots. Sampling and listing roots are input requests: see [`Context::elicit`] and the
/// section before it.
impl Context {
    /// Asks the client's model: with a sentence, or with a whole conversation and the tools that it may use.
    ///
    /// ```
    /// # use steadfast::{Context, CreateMessageParams, SamplingMessage};
    /// # async fn example(ctx: Context) -> steadfast::ToolResult<()> {
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
            let need = if tools { RequiredClientCapability::SamplingTools } else { RequiredClientCapability::Sampling };
            Ok(request_input::<request::CreateMessage>(&ctx, need, params, options).await?.result)
        })
    }

    /// Asks the client for its roots: the folders that the client works in.
    pub fn roots(&self) -> Ask<ListRootsResult> {
        let ctx = self.clone();
        Ask::new(move |options| async move {
            Ok(request_input::<request::ListRoots>(
                &ctx,
                RequiredClientCapability::Roots,
                EmptyParams::default(),
                options,
            )
            .await?
            .result)
        })
    }
}
