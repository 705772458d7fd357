//! Tests of the core through its public functions.

mod bounds;
mod stateless_revisions;
