//! Cancelled requests: what becomes of their handlers, and which notifications are sent.

mod handlers;
mod notifications;
