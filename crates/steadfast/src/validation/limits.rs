//! How large a JSON Schema may be, and how costly to check.
//!
//! They hold for schemas that are written by hand or come from elsewhere: one that goes beyond is a
//! [problem](crate::Tool::problem) of its tool, and clients do not call a tool that promises results by it. A schema of a few
//! lines can keep a processor busy for years, or use up the stack, because references let it say the same thing over and over.
//! So what counts is not its size alone.

/// The longest, in bytes of JSON. 1 MiB: those of people have a few thousand.
pub const BYTES: usize = 1 << 20;

/// The deepest nesting of its JSON. 128: the deepest that is read from a peer.
pub const DEPTH: usize = 128;

/// How many subschemas it may have.
pub const SUBSCHEMAS: usize = 10_000;

/// How many subschemas it may have once every reference is replaced by what it refers to. A reference from inside of what
/// it refers to counts as one.
pub const EXPANDED: usize = 100_000;

/// How many subschemas may apply to one and the same value, each because the one before says so: a `$ref` to an `anyOf`
/// that has a `$ref`, and so on.
pub const CHAIN: usize = 100;

/// How deep a value may be nested to be checked, times the longest chain of its schema. Each step takes stack, and a
/// thread has 2 MiB.
pub const STEPS: usize = 1_000;
