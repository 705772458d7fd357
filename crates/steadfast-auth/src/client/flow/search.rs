//! Looking for a metadata document: one URL after the other, and within an origin where an answer points.

use std::collections::VecDeque;

use http::header::{ACCEPT, LOCATION};
use http::{Request, Response, StatusCode};
use url::Url;

use super::super::Error;
use super::super::reach::shown;
use super::Command;
use crate::Payload;

/// How many redirects within an origin a metadata document may take.
const HOPS: u8 = 3;

/// A document that is looked for.
pub(super) struct Search {
    pub(super) what: &'static str,
    asked: Url,
    next: VecDeque<Url>,
    hops: u8,
}

impl Search {
    /// Asks for the first of these URLs.
    pub(super) fn begin(what: &'static str, mut urls: VecDeque<Url>) -> Option<Result<(Self, Command), Error>> {
        let asked = urls.pop_front()?;
        let command = fetch(&asked);
        Some(command.map(|command| (Self { what, asked, next: urls, hops: 0 }, command)))
    }

    /// Asks for what an answer points at, or for the next URL, after an answer that was not the document.
    pub(super) fn go_on(&mut self, response: &Response<Payload>) -> Result<Option<Command>, Error> {
        let status = response.status();
        if status.is_server_error() {
            return Err(Error::Unavailable { what: self.what, status: status.as_u16() });
        }
        let location = response.headers().get(LOCATION).filter(|_| status.is_redirection() && self.hops < HOPS);
        let target = location.and_then(|location| location.to_str().ok()).and_then(|text| self.asked.join(text).ok());
        // Another origin would be somebody who was not asked.
        if let Some(target) = target.filter(|target| target.origin() == self.asked.origin()) {
            self.hops += 1;
            self.asked = target;
            return fetch(&self.asked).map(Some);
        }
        let Some(next) = self.next.pop_front() else { return Ok(None) };
        self.hops = 0;
        self.asked = next;
        fetch(&self.asked).map(Some)
    }
}

fn fetch(url: &Url) -> Result<Command, Error> {
    let request = Request::get(url.as_str()).header(ACCEPT, "application/json").body(Payload::default());
    request.map(Command::Send).map_err(|_| Error::UnsafeUrl(shown(url.as_str())))
}

/// The body of an answer that may be a document.
pub(super) fn document(response: &Response<Payload>) -> Option<&[u8]> {
    (response.status() == StatusCode::OK).then(|| response.body().as_bytes())
}
