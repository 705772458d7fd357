//! Functions that serve as handlers, and how a call of a tool is run.

use std::any::Any;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;
use steadfast_model::{CallToolResult, JsonObject};

use super::arguments::{Arguments, NoArguments};
use super::error::{Failure, Reply, ToolError};
use super::parameters::{self, Parameters};
use super::reply::IntoReply;
use crate::error::Error;
use crate::server::context::Context;
use crate::validation::Validator;

/// One call of a tool, ready to be run. Reading and checking the arguments is part of it.
pub(crate) enum Run {
    /// To be polled on the workers.
    Future(Pin<Box<dyn Future<Output = Reply> + Send>>),
    /// To be called on a thread that may block.
    Blocking(Box<dyn FnOnce() -> Reply + Send>),
}

/// An `async` function or closure that can be the handler of a tool or a prompt.
///
/// It takes the arguments and a [`Context`], only one of these, or nothing. Arguments are any type that is
/// `Deserialize`, or [`JsonObject`] for all that came. What that of a tool returns is [`IntoReply`], and what that of a
/// prompt returns is [`IntoPrompt`](crate::server::IntoPrompt).
///
/// ```
/// use serde::Deserialize;
/// use steadfast::{Context, JsonObject, Tool};
///
/// #[derive(Deserialize)]
/// struct Add {
///     a: i64,
///     b: i64,
/// }
///
/// Tool::new("add").handler(|Add { a, b }: Add| async move { a + b });
/// Tool::new("keys").handler(|all: JsonObject, ctx: Context| async move { all.len() });
/// Tool::new("ready").handler(|| async { "yes" });
/// ```
#[diagnostic::on_unimplemented(
    message = "this is not a handler",
    label = "not a handler",
    note = "a handler looks like this: `|arguments: MyArguments, ctx: Context| async move {{ .. }}`; either parameter may be left out",
    note = "`MyArguments` derives `Deserialize`",
    note = "the future has to be `Send`: hold no `Rc`, `RefCell` borrow or lock guard across an `.await`"
)]
pub trait Handler<Marker>: Send + Sync + 'static {
    /// What the arguments are read into.
    type Arguments: DeserializeOwned + Send + 'static;
    /// What the handler returns.
    type Output;
    /// One call.
    type Future: Future<Output = Self::Output> + Send + 'static;

    /// Calls the handler.
    fn call(&self, arguments: Self::Arguments, ctx: Context) -> Self::Future;
}

/// A plain function or closure that can be the handler of a tool or a prompt, on a thread that it may block.
///
/// It takes the same as a [`Handler`].
#[diagnostic::on_unimplemented(
    message = "this is not a blocking handler",
    label = "not a blocking handler",
    note = "a blocking handler looks like this: `|arguments: MyArguments, ctx: Context| {{ .. }}`; either parameter may be left out",
    note = "`MyArguments` derives `Deserialize`",
    note = "for an `async` closure use `handler`"
)]
pub trait BlockingHandler<Marker>: Send + Sync + 'static {
    /// What the arguments are read into.
    type Arguments: DeserializeOwned + Send + 'static;
    /// What the handler returns.
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
pub struct TakesBoth<A>(PhantomData<A>);

macro_rules! handlers {
    ($marker:ty, [$($generic:ident)?], ($($parameter:ty),*), $read:ty, |$arguments:ident, $ctx:ident| ($($pass:ident),*)) => {
        impl<Function, Answer, $($generic)?> Handler<$marker> for Function
        where
            Function: Fn($($parameter),*) -> Answer + Send + Sync + 'static,
            Answer: Future + Send + 'static,
            $($generic: DeserializeOwned + Send + 'static,)?
        {
            type Arguments = $read;
            type Output = Answer::Output;
            type Future = Answer;
            fn call(&self, $arguments: $read, $ctx: Context) -> Answer {
                self($($pass),*)
            }
        }

        impl<Function, Answer, $($generic)?> BlockingHandler<$marker> for Function
        where
            Function: Fn($($parameter),*) -> Answer + Send + Sync + 'static,
            $($generic: DeserializeOwned + Send + 'static,)?
        {
            type Arguments = $read;
            type Output = Answer;
            fn call(&self, $arguments: $read, $ctx: Context) -> Answer {
                self($($pass),*)
            }
        }
    };
}

handlers!(TakesNothing, [], (), NoArguments, |_arguments, _ctx| ());
handlers!(TakesContext, [], (Context), NoArguments, |_arguments, ctx| (ctx));
handlers!(TakesArguments<A>, [A], (A), A, |arguments, _ctx| (arguments));
handlers!(TakesBoth<A>, [A], (A, Context), A, |arguments, ctx| (arguments, ctx));

/// A handler with its types forgotten.
pub(crate) trait Start: Send + Sync {
    fn start(self: Arc<Self>, arguments: Arguments, ctx: Context) -> Run;
}

/// How arguments become what a handler takes.
pub(crate) trait Read: Send + Sync + 'static {
    type Value: Send + 'static;
    fn read(&self, arguments: &Arguments, checks: &Checks) -> Result<Self::Value, Failure>;
}

/// All arguments into one value.
pub(crate) struct Whole<A>(PhantomData<fn() -> A>);

impl<A> Whole<A> {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<A: DeserializeOwned + Send + 'static> Read for Whole<A> {
    type Value = A;
    fn read(&self, arguments: &Arguments, checks: &Checks) -> Result<A, Failure> {
        let Some(validator) = &checks.input else { return Ok(arguments.decode()?) };
        let value = Value::Object(arguments.decode::<JsonObject>()?);
        validator.check(&value).map_err(|complaint| ToolError::new(format!("Bad arguments: {complaint}")))?;
        // A handler that wants the object itself gets the one that was checked.
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

/// Each argument into its own part of a tuple.
pub(crate) struct Named<P> {
    names: &'static [&'static str],
    types: PhantomData<fn() -> P>,
}

impl<P> Named<P> {
    pub(crate) fn new(names: &'static [&'static str]) -> Self {
        Self { names, types: PhantomData }
    }
}

impl<P: Parameters> Read for Named<P> {
    type Value = P;
    fn read(&self, arguments: &Arguments, _checks: &Checks) -> Result<P, Failure> {
        Ok(parameters::decode(arguments, self.names)?)
    }
}

/// What is checked about a call beside the types: for tools whose schemas were written by hand.
#[derive(Default)]
pub(crate) struct Checks {
    pub(crate) input: Option<Validator>,
    pub(crate) output: Option<Validator>,
    /// What is wrong with the tool itself.
    pub(crate) problem: Option<String>,
}

impl Checks {
    fn tool_is_sound(&self) -> Result<(), Failure> {
        match &self.problem {
            None => Ok(()),
            Some(problem) => Err(Error::internal(format!("the tool cannot be called: {problem}")).into()),
        }
    }

    fn check_output(&self, result: CallToolResult) -> Reply {
        let Some(validator) = &self.output else { return Ok(result) };
        if result.is_error() {
            return Ok(result);
        }
        match validator.check_content(result.structured_content.as_ref()) {
            Ok(()) => Ok(result),
            Err(complaint) => {
                Err(Error::internal(format!("the tool's result does not fit its output schema: {complaint}")).into())
            }
        }
    }
}

/// An `async` handler with how it reads and what is checked.
pub(crate) struct OnWorkers<I, F> {
    pub(crate) read: I,
    pub(crate) call: F,
    pub(crate) checks: Checks,
}

impl<I, F, Answer> Start for OnWorkers<I, F>
where
    I: Read,
    F: Fn(I::Value, Context) -> Answer + Send + Sync + 'static,
    Answer: Future + Send + 'static,
    Answer::Output: IntoReply,
{
    fn start(self: Arc<Self>, arguments: Arguments, ctx: Context) -> Run {
        Run::Future(Box::pin(async move {
            self.checks.tool_is_sound()?;
            let value = self.read.read(&arguments, &self.checks)?;
            // The text of the message need not live as long as the call.
            drop(arguments);
            let result = (self.call)(value, ctx).await.into_reply()?;
            self.checks.check_output(result)
        }))
    }
}

/// A plain handler with how it reads and what is checked.
pub(crate) struct OnThreads<I, F> {
    pub(crate) read: I,
    pub(crate) call: F,
    pub(crate) checks: Checks,
}

impl<I, F, Answer> Start for OnThreads<I, F>
where
    I: Read,
    F: Fn(I::Value, Context) -> Answer + Send + Sync + 'static,
    Answer: IntoReply,
{
    fn start(self: Arc<Self>, arguments: Arguments, ctx: Context) -> Run {
        Run::Blocking(Box::new(move || {
            self.checks.tool_is_sound()?;
            let value = self.read.read(&arguments, &self.checks)?;
            drop(arguments);
            let result = (self.call)(value, ctx).into_reply()?;
            self.checks.check_output(result)
        }))
    }
}
