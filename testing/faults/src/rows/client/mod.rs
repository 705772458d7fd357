//! The client's half: what a client on the library does when its server misbehaves.
//!
//! The table plays the server itself: as a child process of the client on stdio (`crate::faulty_server`), and as bare sockets on HTTP
//! (`raw_server`).

mod http_cuts;
mod http_redirects;
mod http_responses;
mod http_server_dies;
mod http_server_hangs;
mod http_sse;
mod inherited_pipes;
mod opening;
mod pipes;
mod raw_server;
mod reconnecting;
mod responses;
mod server_dies;
mod server_hangs;

pub(super) use http_cuts::ROW as HTTP_CUTS;
pub(super) use http_redirects::{ENDLESS_401, REDIRECTS};
pub(super) use http_responses::ROW as HTTP_ANSWERS;
pub(super) use http_server_dies::ROW as HTTP_DEATHS;
pub(super) use http_server_hangs::ROW as HTTP_HANGS;
pub(super) use http_sse::ROW as HTTP_SSE;
pub(super) use inherited_pipes::ROW as KIN;
pub(super) use opening::ROW as OPENING;
pub(super) use pipes::{CLOSED_OUTPUT, DEAF, STDERR};
pub(super) use reconnecting::ROW as COMES_BACK;
pub(super) use responses::ROW as ANSWERS;
pub(super) use server_dies::ROW as DEATHS;
pub(super) use server_hangs::ROW as HANGS;
