//! Functions that can be handlers, and how one call of a tool runs.

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;
use steadfast_model::{CallToolResult, JsonObject};

use super::arguments::{NoArguments, RawArguments};
use super::error::{ToolError, ToolReply};
use super::parameters::{self, ParameterTuple};
use super::reply::IntoToolReply;
use crate::error::Error;
use crate::runtime::HandlerJob;
use crate::server::context::Context;
use crate::server::dispatch::encode::ServerHandlerOutput;
use crate::validation::SchemaValidator;

/// An `async` function or closure that can be the handler of a tool or a prompt.
///
/// A handler takes the arguments and a [`Context`], only one of these, or nothing. The arguments are any type that is
/// `Deserialize`, or [`JsonObject`] for all arguments as they are. The handler of a tool returns [`IntoToolReply`],
/// that of a prompt [`IntoPromptReply`](crate::server::IntoPromptReply).
///
/// ```
/// use serde::Deserialize;
/// use steadfast::{Context, JsonObject, ServerTool};
///
/// #[derive(Deserialize)]
/// struct Add {
///     a: i64,
///     b: i64,
/// }
///
/// ServerTool::new("add").handler(|Add { a, b }: Add| async move { a + b });
/// ServerTool::new("keys").handler(|all: JsonObject, ctx: Context| async move { all.len() });
/// ServerTool::new("ready").handler(|| async { "yes" });
/// ```
#[diagnostic::on_unimplemented(
    message = "this is not a handler",
    label = "not a handler",
    note = "a handler looks like this: `|arguments: MyArguments, ctx: Context| async move {{ .. }}`; either parameter may be left out",
    note = "`MyArguments` derives `Deserialize`",
    note = "the future has to be `Send`: hold no `Rc`, `RefCell` borrow or lock guard across an `.await`"
)]
pub trait Handler<Marker>: sealed::Sealed<Marker> + Send + Sync + 'static {
    /// The type that the arguments are decoded into.
    type Arguments: DeserializeOwned + Send + 'static;
    /// The type that an `async` handler returns when its future completes.
    type Output;
    /// The future of one call of the handler.
    type Future: Future<Output = Self::Output> + Send + 'static;

    /// Calls the handler.
    fn call(&self, arguments: Self::Arguments, ctx: Context) -> Self::Future;
}

/// A plain function or closure that can be the handler of a tool or a prompt; it runs on a thread that may block.
///
/// A blocking handler takes the same parameters as a [`Handler`].
#[diagnostic::on_unimplemented(
    message = "this is not a blocking handler",
    label = "not a blocking handler",
    note = "a blocking handler looks like this: `|arguments: MyArguments, ctx: Context| {{ .. }}`; either parameter may be left out",
    note = "`MyArguments` derives `Deserialize`",
    note = "for an `async` closure use `handler`"
)]
pub trait BlockingHandler<Marker>: sealed::Sealed<Marker> + Send + Sync + 'static {
    /// The type that the arguments are decoded into.
    type Arguments: DeserializeOwned + Send + 'static;
    /// The type that a blocking handler returns.
    type Output;

    /// Calls the handler.
    fn call(&self, arguments: Self::Arguments, ctx: Context) -> Self::Output;
}

/// Marks a handler that takes nothing.
#[derive(Debug)]
pub struct TakesNothing;
/// Marks a handler that takes only a [`Context`].
#[derive(Debug)]
pub struct TakesContext;
/// Marks a handler that takes only arguments.
#[derive(Debug)]
pub struct TakesArguments<A>(PhantomData<A>);
/// Marks a handler that takes arguments and a [`Context`].
#[derive(Debug)]
pub struct TakesArgumentsAndContext<A>(PhantomData<A>);

/// Seals the handler traits: only functions and closures implement them, so the traits can be extended later.
mod sealed {
    pub trait Sealed<Marker> {}
}

macro_rules! handlers {
    ($marker:ty, [$($generic:ident)?], ($($parameter:ty),*), $read:ty, |$arguments:ident, $ctx:ident| ($($pass:ident),*)) => {
        impl<Function, Out, $($generic)?> sealed::Sealed<$marker> for Function
        where
            Function: Fn($($parameter),*) -> Out,
        {
        }

        impl<Function, Out, $($generic)?> Handler<$marker> for Function
        where
            Function: Fn($($parameter),*) -> Out + Send + Sync + 'static,
            Out: Future + Send + 'static,
            $($generic: DeserializeOwned + Send + 'static,)?
        {
            type Arguments = $read;
            type Output = Out::Output;
            type Future = Out;
            fn call(&self, $arguments: $read, $ctx: Context) -> Out {
                self($($pass),*)
            }
        }

        impl<Function, Out, $($generic)?> BlockingHandler<$marker> for Function
        where
            Function: Fn($($parameter),*) -> Out + Send + Sync + 'static,
            $($generic: DeserializeOwned + Send + 'static,)?
        {
            type Arguments = $read;
            type Output = Out;
            fn call(&self, $arguments: $read, $ctx: Context) -> Out {
                self($($pass),*)
            }
        }
    };
}

handlers!(TakesNothing, [], (), NoArguments, |_arguments, _ctx| ());
handlers!(TakesContext, [], (Context), NoArguments, |_arguments, ctx| (ctx));
handlers!(TakesArguments<A>, [A], (A), A, |arguments, _ctx| (arguments));
handlers!(TakesArgumentsAndContext<A>, [A], (A, Context), A, |arguments, ctx| (arguments, ctx));

/// A type-erased handler.
pub(crate) trait ErasedHandler: Send + Sync {
    fn start(self: Arc<Self>, arguments: RawArguments, ctx: Context) -> HandlerJob<ServerHandlerOutput>;
}

/// Decodes the arguments of a tool call into the value that the handler takes.
pub(crate) trait DecodeArguments: Send + Sync + 'static {
    type Value: Send + 'static;
    fn decode(&self, arguments: &RawArguments, checks: &ToolChecks) -> Result<Self::Value, ToolError>;
}

/// Decodes all arguments of a tool call into one value.
pub(crate) struct WholeArgumentsDecoder<A>(PhantomData<fn() -> A>);

impl<A> WholeArgumentsDecoder<A> {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<A: DeserializeOwned + Send + 'static> DecodeArguments for WholeArgumentsDecoder<A> {
    type Value = A;
    fn decode(&self, arguments: &RawArguments, checks: &ToolChecks) -> Result<A, ToolError> {
        let Some(validator) = &checks.input else { return arguments.decode() };
        let value = Value::Object(arguments.decode::<JsonObject>()?);
        validator.check(&value).map_err(|complaint| ToolError::new(format!("Bad arguments: {complaint}")))?;
        // A handler that takes the object itself gets the one that was checked.
        let mut taken = None::<A>;
        let slot: &mut dyn Any = &mut taken;
        if let (Some(slot), Value::Object(object)) = (slot.downcast_mut::<Option<JsonObject>>(), value) {
            *slot = Some(object);
        }
        match taken {
            Some(object) => Ok(object),
            None => Ok(arguments.decode()?),
        }
    }
}

/// Decodes each argument of a tool call into its element of a tuple of parameters.
pub(crate) struct NamedArgumentsDecoder<P> {
    names: &'static [&'static str],
    types: PhantomData<fn() -> P>,
}

impl<P> NamedArgumentsDecoder<P> {
    pub(crate) fn new(names: &'static [&'static str]) -> Self {
        Self { names, types: PhantomData }
    }
}

impl<P: ParameterTuple> DecodeArguments for NamedArgumentsDecoder<P> {
    type Value = P;
    fn decode(&self, arguments: &RawArguments, _checks: &ToolChecks) -> Result<P, ToolError> {
        parameters::decode(arguments, self.names)
    }
}

/// The checks of a tool call besides decoding into types: of the schemas that were written by hand, and of the tool
/// itself.
#[derive(Default)]
pub(crate) struct ToolChecks {
    pub(crate) input: Option<SchemaValidator>,
    pub(crate) output: Option<SchemaValidator>,
    /// What is wrong with the tool itself, if anything.
    pub(crate) problem: Option<String>,
}

impl ToolChecks {
    fn check_tool(&self) -> Result<(), ToolError> {
        match &self.problem {
            None => Ok(()),
            Some(problem) => Err(Error::internal(format!("the tool cannot be called: {problem}")).into()),
        }
    }

    /// Decodes the arguments of a tool call.
    fn decode<I: DecodeArguments>(&self, decoder: &I, arguments: &RawArguments) -> Result<I::Value, ToolError> {
        self.check_tool()?;
        decoder.decode(arguments, self)
    }

    /// Checks the result that the tool's handler returned.
    fn complete(&self, reply: ToolReply) -> ServerHandlerOutput {
        ServerHandlerOutput::Tool(reply.and_then(|result| self.check_output(result)))
    }

    fn check_output(&self, result: CallToolResult) -> ToolReply {
        let Some(validator) = &self.output else { return Ok(result) };
        if result.is_error() {
            return Ok(result);
        }
        match validator.check_content(result.structured_content.as_ref()) {
            Ok(()) => Ok(result),
            Err(complaint) => {
                Err(Error::internal(format!("the tool's result does not match its output schema: {complaint}")).into())
            }
        }
    }
}

/// An `async` handler with its decoder and its checks.
pub(crate) struct AsyncTool<I, F> {
    pub(crate) decoder: I,
    pub(crate) call: F,
    pub(crate) checks: ToolChecks,
}

impl<I, F, Out> ErasedHandler for AsyncTool<I, F>
where
    I: DecodeArguments,
    F: Fn(I::Value, Context) -> Out + Send + Sync + 'static,
    Out: Future + Send + 'static,
    Out::Output: IntoToolReply,
{
    fn start(self: Arc<Self>, arguments: RawArguments, ctx: Context) -> HandlerJob<ServerHandlerOutput> {
        HandlerJob::Future(Box::pin(async move {
            let value = match self.checks.decode(&self.decoder, &arguments) {
                Ok(value) => value,
                Err(error) => return ServerHandlerOutput::Tool(Err(error)),
            };
            // Free the text of the message before the call runs.
            drop(arguments);
            self.checks.complete((self.call)(value, ctx).await.into_tool_reply())
        }))
    }
}

/// A plain handler with its decoder and its checks.
pub(crate) struct BlockingTool<I, F> {
    pub(crate) decoder: I,
    pub(crate) call: F,
    pub(crate) checks: ToolChecks,
}

impl<I, F, Out> ErasedHandler for BlockingTool<I, F>
where
    I: DecodeArguments,
    F: Fn(I::Value, Context) -> Out + Send + Sync + 'static,
    Out: IntoToolReply,
{
    fn start(self: Arc<Self>, arguments: RawArguments, ctx: Context) -> HandlerJob<ServerHandlerOutput> {
        HandlerJob::Blocking(Box::new(move || {
            let value = match self.checks.decode(&self.decoder, &arguments) {
                Ok(value) => value,
                Err(error) => return ServerHandlerOutput::Tool(Err(error)),
            };
            drop(arguments);
            self.checks.complete((self.call)(value, ctx).into_tool_reply())
        }))
    }
}
