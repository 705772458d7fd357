//! Input that a server requests from a client: elicitation, sampling and roots.

mod elicitation;
mod retries;
mod roots;
mod rounds;
mod sampling;
