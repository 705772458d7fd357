//! Limits for the size of a JSON Schema and for the cost of a check.
//!
//! The limits apply to schemas that are written by hand or come from a peer: a schema that exceeds them is a
//! [problem](crate::ServerTool::problem) of its tool, and clients do not call a tool with such an output schema. A
//! limit of the size alone is not enough: a schema of a few lines can keep a processor busy for years, or overflow the
//! stack, because references can repeat subschemas.
#![cfg_attr(
    not(feature = "schema-validation"),
    allow(dead_code, reason = "schemas are measured only with the feature `schema-validation`")
)]

/// The maximum length of a schema, in bytes of JSON: 1 MiB. Schemas written by people have a few thousand bytes.
pub(crate) const BYTES: usize = 1 << 20;

/// The maximum nesting of a schema's JSON: 128, which is also the maximum for messages from a peer.
pub(crate) const DEPTH: usize = 128;

/// The maximum number of subschemas of a schema.
pub(crate) const SUBSCHEMAS: usize = 10_000;

/// The maximum number of subschemas of a schema after every reference is replaced by its target. A reference to a
/// schema that contains the reference itself counts as one subschema.
pub(crate) const EXPANDED: usize = 100_000;

/// The maximum number of subschemas that apply to the same value, each because of the one before: a `$ref` to an
/// `anyOf` that has a `$ref`, and so on.
pub(crate) const CHAIN: usize = 100;

/// The maximum product of the nesting of a value and the longest chain of its schema, which is the number of nested
/// steps of a check. Each nested step of a check takes stack, and a thread has 2 MiB.
pub(crate) const STEPS: usize = 1_000;
