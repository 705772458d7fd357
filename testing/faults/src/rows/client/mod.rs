//! The client's half: what a client on the library does when its server misbehaves.
//!
//! The table plays the server itself: as a child process of the client on stdio (`crate::play`), and as bare sockets on HTTP
//! (`door`).

mod answers;
mod comes_back;
mod deaths;
mod door;
mod hangs;
mod http_answers;
mod http_cuts;
mod http_deaths;
mod http_hangs;
mod http_let_in;
mod http_sse;
mod kin;
mod opening;
mod pipes;

pub(super) use answers::ROW as ANSWERS;
pub(super) use comes_back::ROW as COMES_BACK;
pub(super) use deaths::ROW as DEATHS;
pub(super) use hangs::ROW as HANGS;
pub(super) use http_answers::ROW as HTTP_ANSWERS;
pub(super) use http_cuts::ROW as HTTP_CUTS;
pub(super) use http_deaths::ROW as HTTP_DEATHS;
pub(super) use http_hangs::ROW as HTTP_HANGS;
pub(super) use http_let_in::{ENDLESS_401, REDIRECTS};
pub(super) use http_sse::ROW as HTTP_SSE;
pub(super) use kin::ROW as KIN;
pub(super) use opening::ROW as OPENING;
pub(super) use pipes::{CLOSED_OUTPUT, DEAF, STDERR};
