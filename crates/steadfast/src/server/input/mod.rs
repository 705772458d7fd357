//! Input from the client while a handler runs: elicitation, sampling and roots, as requests on the older revisions and
//! as rounds with sealed state in 2026-07-28.

pub(crate) mod ask;
pub(crate) mod elicit;
pub(crate) mod form;
pub(crate) mod need;
pub(crate) mod round;
pub(crate) mod sample;
pub(crate) mod seal;
pub(crate) mod url;
