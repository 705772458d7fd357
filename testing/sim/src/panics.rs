//! Panics that are looked for are caught and reported, and not printed.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use crate::law::{Law, Violation};

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
    /// The source location of the last panic that was not printed.
    static LOCATION: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `body`; a panic in it prints nothing.
pub(crate) fn quietly<T>(body: impl FnOnce() -> T) -> T {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if QUIET.get() {
                LOCATION.set(info.location().map(ToString::to_string));
            } else {
                before(info);
            }
        }));
    });
    /// Restores what held before, also when `body` panics.
    struct RestoreHook(bool);
    impl Drop for RestoreHook {
        fn drop(&mut self) {
            QUIET.set(self.0);
        }
    }
    let _restore = RestoreHook(QUIET.replace(true));
    body()
}

/// Runs `body`. A panic in it prints nothing and is a violation of [`Law::Isolation`], with its message and location.
pub(crate) fn catch<T>(body: impl FnOnce() -> T) -> Result<T, Violation> {
    quietly(|| catch_unwind(AssertUnwindSafe(body))).map_err(|panic| {
        let place = LOCATION.take().map(|location| format!(" at {location}")).unwrap_or_default();
        Violation { law: Law::Isolation, what: format!("the run panicked{place}: {}", text(&*panic)) }
    })
}

/// The message of a panic.
pub(crate) fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_violation_with_its_message_and_location() {
        let violation = catch::<()>(|| quietly(|| panic!("call {} is missing", 7))).unwrap_err();
        assert_eq!(violation.law, Law::Isolation);
        assert!(violation.what.starts_with("the run panicked at "), "{violation}");
        assert!(violation.what.contains("panics.rs") && violation.what.ends_with("call 7 is missing"), "{violation}");
        assert_eq!(catch(|| 3), Ok(3));
    }
}
