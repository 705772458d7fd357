//! Input that a handler requests from the client: elicitation, sampling and roots.

mod capabilities;
mod elicitation;
mod rounds;
mod url_elicitation;
