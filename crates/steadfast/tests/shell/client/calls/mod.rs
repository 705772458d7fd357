//! Calls of a client, from the request to the result.

mod cancellation;
mod last_responses;
mod messages;
mod methods;
mod outcomes;
mod output_schema;
mod progress;
