//! The rows of the table, a file each, in the order of the specification.

mod answers_to_nothing;
mod bad_lines;
mod blocked_threads;
mod blocked_workers;
mod cancellation;
mod cancellation_races;
mod child_reads_stdin;
mod client;
mod duplicate_id;
mod extreme_calls;
mod handshake;
mod http;
mod input_closes;
mod output_goes;
mod panic;
mod print;
mod signals;
mod sleepers;
mod unread;
mod unread_stderr;
mod waiting_on_client;

use crate::table::Row;

pub(crate) static ALL: &[&Row] = &[
    &input_closes::LONG_CALLS,
    &input_closes::BURST,
    &output_goes::ROW,
    &bad_lines::ROW,
    &extreme_calls::ROW,
    &handshake::ROW,
    &cancellation::ROW,
    &duplicate_id::ROW,
    &waiting_on_client::ROW,
    &answers_to_nothing::ROW,
    &unread::BLOBS,
    &unread::FLOOD,
    &panic::ROW,
    &blocked_threads::ROW,
    &blocked_workers::ROW,
    &child_reads_stdin::ROW,
    &unread_stderr::ROW,
    &print::ROW,
    &sleepers::ROW,
    &signals::ROW,
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
