//! The closures that handle vendor requests and notifications, and the requests of a server to its client.

/// An `async` function or closure that takes the parameters of a message and a context.
///
/// The trait is implemented for every `Fn(Params, Context) -> Future`, and only for these.
#[diagnostic::on_unimplemented(
    message = "this is not a handler",
    label = "not a handler",
    note = "a handler looks like this: `|params, ctx| async move {{ .. }}`",
    note = "the future has to be `Send`: hold no `Rc`, `RefCell` borrow or lock guard across an `.await`"
)]
pub trait AsyncHandlerFn<Params, Context, Output>:
    Fn(Params, Context) -> <Self as AsyncHandlerFn<Params, Context, Output>>::Future + Send + Sync + 'static
{
    /// The future that one call of the handler returns.
    type Future: Future<Output = Output> + Send + 'static;
}

impl<F, A, Params, Context, Output> AsyncHandlerFn<Params, Context, Output> for F
where
    F: Fn(Params, Context) -> A + Send + Sync + 'static,
    A: Future<Output = Output> + Send + 'static,
{
    type Future = A;
}
