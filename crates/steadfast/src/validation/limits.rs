//! Limits for the size of a JSON Schema and for the cost of a check.
//!
//! They apply to schemas that are written by hand or come from a peer: one that exceeds them is a
//! [problem](crate::ServerTool::problem) of its tool, and clients do not call a tool with such an output schema. A schema of
//! a few lines can keep a processor busy for years, or overflow the stack, because references can repeat subschemas. So
//! the size alone is not enough.
#![cfg_attr(
    not(feature = "schema-validation"),
    allow(dead_code, reason = "schemas are measured only where they are used to validate")
)]

/// The maximum length in bytes of JSON. 1 MiB: schemas written by people have a few thousand.
pub(crate) const BYTES: usize = 1 << 20;

/// The maximum nesting of its JSON. 128: the maximum for messages from a peer.
pub(crate) const DEPTH: usize = 128;

/// The maximum number of subschemas.
pub(crate) const SUBSCHEMAS: usize = 10_000;

/// The maximum number of subschemas after every reference is replaced by its target. A reference to a schema that
/// contains it counts as one.
pub(crate) const EXPANDED: usize = 100_000;

/// The maximum number of subschemas that apply to the same value, each because of the one before: a `$ref` to an
/// `anyOf` that has a `$ref`, and so on.
pub(crate) const CHAIN: usize = 100;

/// The maximum nesting of a value times the longest chain of its schema. Each step takes stack, and a thread has 2 MiB.
pub(crate) const STEPS: usize = 1_000;
