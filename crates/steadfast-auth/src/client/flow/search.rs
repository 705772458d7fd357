//! Searches for a metadata document at several URLs in order, and follows redirects within an origin.

use std::collections::VecDeque;

use http::header::{ACCEPT, LOCATION};
use http::{Request, Response, StatusCode};
use url::Url;

use super::OAuthFlowCommand;
use crate::HttpClientBody;
use crate::client::Error;
use crate::client::url_policy::redact_url;

/// Limit of the redirects that are followed from one metadata URL, all within its origin.
const MAX_REDIRECTS: u8 = 3;

/// The search for a metadata document at a list of URLs.
pub(super) struct MetadataSearch {
    pub(super) what: &'static str,
    current: Url,
    next: VecDeque<Url>,
    redirects: u8,
}

impl MetadataSearch {
    /// Begins the search for a metadata document with a request to the first URL.
    pub(super) fn begin(
        what: &'static str,
        mut urls: VecDeque<Url>,
    ) -> Option<Result<(Self, OAuthFlowCommand), Error>> {
        let current = urls.pop_front()?;
        let command = fetch(&current);
        Some(command.map(|command| (Self { what, current, next: urls, redirects: 0 }, command)))
    }

    /// Continues the search after a response that was not the metadata document: requests the target of its redirect, or the
    /// next URL.
    pub(super) fn next_request(
        &mut self,
        response: &Response<HttpClientBody>,
    ) -> Result<Option<OAuthFlowCommand>, Error> {
        let status = response.status();
        if status.is_server_error() {
            return Err(Error::Unavailable { what: self.what, status: status.as_u16() });
        }
        let location =
            response.headers().get(LOCATION).filter(|_| status.is_redirection() && self.redirects < MAX_REDIRECTS);
        let target = location.and_then(|location| location.to_str().ok()).and_then(|text| self.current.join(text).ok());
        // A redirect to another origin is not followed.
        if let Some(target) = target.filter(|target| target.origin() == self.current.origin()) {
            self.redirects += 1;
            self.current = target;
            return fetch(&self.current).map(Some);
        }
        let Some(next) = self.next.pop_front() else { return Ok(None) };
        self.redirects = 0;
        self.current = next;
        fetch(&self.current).map(Some)
    }
}

fn fetch(url: &Url) -> Result<OAuthFlowCommand, Error> {
    let request = Request::get(url.as_str()).header(ACCEPT, "application/json").body(HttpClientBody::default());
    request.map(OAuthFlowCommand::Send).map_err(|_| Error::UnsafeUrl(redact_url(url.as_str())))
}

/// The body of a response with status 200.
pub(super) fn document(response: &Response<HttpClientBody>) -> Option<&[u8]> {
    (response.status() == StatusCode::OK).then(|| response.body().as_bytes())
}
