//! Who sends a request, and what it may do.

pub(crate) mod principal;
pub(crate) mod scope;
