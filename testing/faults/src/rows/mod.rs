//! The rows of the table, in the order of the specification. Their files are by what goes wrong: messages, streams, handlers,
//! HTTP; and by who is judged: all but `client` judge the server.

mod client;
mod handlers;
mod http;
mod messages;
mod streams;

use crate::table::Row;

pub(crate) static ALL: &[&Row] = &[
    &streams::input_closes::LONG_CALLS,
    &streams::input_closes::BURST,
    &streams::output_closes::ROW,
    &messages::bad_lines::ROW,
    &messages::extreme_calls::ROW,
    &messages::handshake::ROW,
    &messages::cancellation::ROW,
    &messages::duplicate_id::ROW,
    &messages::waiting_on_client::ROW,
    &messages::unknown_responses::ROW,
    &streams::unread::BLOBS,
    &streams::unread::FLOOD,
    &handlers::panic::ROW,
    &handlers::blocked_threads::ROW,
    &handlers::blocked_workers::ROW,
    &streams::child_reads_stdin::ROW,
    &streams::unread_stderr::ROW,
    &streams::print::ROW,
    &messages::many_calls::ROW,
    &streams::signals::ROW,
    &http::GARBAGE,
    &http::EXTREME_CALLS,
    &http::SMUGGLING,
    &http::GUARD,
    &http::HANG_UPS,
    &http::CANCELLATION,
    &http::DUPLICATE_ID,
    &http::PANIC,
    &http::BLOCKED,
    &http::SESSIONS,
    &http::UNREAD,
    &http::LAST_EVENT_ID,
    &http::SLEEPERS,
    &http::SIGNALS,
    &client::OPENING,
    &client::DEATHS,
    &client::HANGS,
    &client::ANSWERS,
    &client::CLOSED_OUTPUT,
    &client::DEAF,
    &client::STDERR,
    &client::KIN,
    &client::COMES_BACK,
    &client::HTTP_DEATHS,
    &client::HTTP_HANGS,
    &client::HTTP_ANSWERS,
    &client::HTTP_CUTS,
    &client::REDIRECTS,
    &client::ENDLESS_401,
    &client::HTTP_SSE,
];
