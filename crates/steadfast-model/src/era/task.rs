//! Tasks and subscriptions for one revision.
