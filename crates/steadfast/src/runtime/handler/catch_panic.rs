//! Catches panics of user code, so that a panic ends one request and not the thread, the worker or the connection.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// A panic that was caught. The payload of a panic may panic again when it is dropped, so a payload that is not plain
/// text is leaked.
pub(crate) struct Panic;

/// Calls a function and catches its panic.
pub(crate) fn call_catching_panics<T>(function: impl FnOnce() -> T) -> Result<T, Panic> {
    catch_unwind(AssertUnwindSafe(function)).map_err(Panic::new)
}

/// Polls a future and catches its panic.
pub(crate) fn poll_catching_panics<F: Future + ?Sized>(
    future: Pin<&mut F>,
    cx: &mut Context<'_>,
) -> Result<Poll<F::Output>, Panic> {
    call_catching_panics(|| future.poll(cx))
}

/// Drops a value whose destructor may panic.
pub(crate) fn drop_catching_panics<T>(value: T) {
    let _ = call_catching_panics(|| drop(value));
}

impl Panic {
    fn new(payload: Box<dyn Any + Send>) -> Self {
        if !payload.is::<&'static str>() && !payload.is::<String>() {
            std::mem::forget(payload);
        }
        Self
    }
}
