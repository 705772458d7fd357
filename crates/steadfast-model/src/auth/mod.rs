//! The authenticated sender of a request, and the OAuth scopes that it was granted.

pub(crate) mod principal;
pub(crate) mod scope;
