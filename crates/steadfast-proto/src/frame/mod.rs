//! Where one message ends and the next begins.

pub mod line;
pub mod sse;
