//! Paginated lists as streams of items.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use steadfast_model::request::{self, Request};
use steadfast_model::{
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListTasksResult, ListToolsResult,
    PaginatedParams, Prompt, Resource, ResourceTemplate, Task, Tool, code,
};
use steadfast_proto::http::params::MirroredParams;

use super::Client;
use super::call::pending::CallResultFuture;
use super::call::{Call, DEFAULT_TIMEOUT};
use crate::error::Error;

/// The maximum number of pages of one list, as a protection against servers that send pages without end.
const MAX_PAGES: usize = 1_000;

/// The maximum size, in bytes, of the pages that [`ItemStream::all`] collects. Longer lists can be read item by item.
const MAX_BYTES: usize = 64 << 20;

/// A request for a paginated list.
pub trait ListRequest:
    Request<Params = PaginatedParams> + sealed::Sealed<ListItem = <Self as ListRequest>::Item>
{
    /// The type of the items of the list, such as `Tool`.
    type Item: Send + 'static;

    /// Splits the result of a list request into the items of the page and the cursor of the next page.
    fn into_parts(page: Self::Result) -> (Vec<Self::Item>, Option<String>);
}

mod sealed {
    pub trait Sealed {
        type ListItem;

        /// Whether the client can use a listed item over HTTP: the `x-mcp-header` annotations of a tool have to be
        /// valid.
        fn is_usable_over_http(_item: &Self::ListItem) -> bool {
            true
        }
    }
}

macro_rules! listings {
    ($($request:ident: $result:ident.$items:ident => $item:ty $(, usable if $usable:ident)?;)+) => {$(
        impl sealed::Sealed for request::$request {
            type ListItem = $item;

            $(fn is_usable_over_http(item: &$item) -> bool {
                $usable(item)
            })?
        }

        impl ListRequest for request::$request {
            type Item = $item;

            fn into_parts(page: $result) -> (Vec<$item>, Option<String>) {
                (page.$items, page.next_cursor)
            }
        }
    )+};
}

listings! {
    ListTools: ListToolsResult.tools => Tool, usable if has_valid_headers;
    ListPrompts: ListPromptsResult.prompts => Prompt;
    ListResources: ListResourcesResult.resources => Resource;
    ListResourceTemplates: ListResourceTemplatesResult.resource_templates => ResourceTemplate;
    ListTasks: ListTasksResult.tasks => Task;
}

/// Whether the `x-mcp-header` annotations of a tool are valid. A client has to reject tools with invalid `x-mcp-header`
/// annotations.
fn has_valid_headers(tool: &Tool) -> bool {
    match MirroredParams::of_schema(&tool.input_schema) {
        Ok(_) => true,
        Err(why) => {
            tracing::warn!(tool = %tool.name, %why, "ignoring a listed tool: its `x-mcp-header` annotations are invalid");
            false
        }
    }
}

/// A stream of the items of a list, which requests each page when the page is needed. `ItemStream` implements
/// `futures_core::Stream`; programs without stream combinators can use [`next`](ItemStream::next) and
/// [`all`](ItemStream::all).
///
/// The stream of items ends after an error.
///
/// ```
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # use steadfast::prelude::*;
/// # #[tool] async fn add(a: i64, b: i64) -> i64 { a + b }
/// # let client = Client::connect(Server::builder("sums", "1.0.0").tool(add()).build()).await?;
/// let mut tools = client.tools();
/// while let Some(tool) = tools.next().await {
///     println!("{}", tool?.name);
/// }
/// # Ok::<_, steadfast::Error>(()) }).unwrap();
/// ```
#[must_use = "streams do nothing unless polled"]
pub struct ItemStream<R: ListRequest> {
    client: Client,
    /// The request for a page that is in flight.
    pending_page: Option<CallResultFuture<R>>,
    /// The parameters of the request for the next page, if there is a next page and it was not requested yet.
    next_page: Option<PaginatedParams>,
    /// The items of the last page that the program has not taken yet.
    buffered: VecDeque<R::Item>,
    /// The number of pages of the list so far, and their size in bytes.
    pages: usize,
    bytes: usize,
    /// The timeout of the request for each page of the list.
    timeout: Option<Duration>,
    /// Pages of the list must not come from the cache.
    fresh: bool,
}

impl<R: ListRequest> ItemStream<R> {
    pub(super) fn new(client: Client) -> Self {
        let next_page = Some(PaginatedParams::default());
        let (buffered, timeout) = (VecDeque::new(), Some(DEFAULT_TIMEOUT));
        Self { client, pending_page: None, next_page, buffered, pages: 0, bytes: 0, timeout, fresh: false }
    }

    /// The [timeout](Call::timeout) of the request for each page. By default the request for a page has the default
    /// timeout of a call.
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.timeout = timeout.into();
        self
    }

    /// Requests each page of the list from the server, even if the cache has a fresh page.
    pub fn fresh(mut self) -> Self {
        self.fresh = true;
        self
    }

    /// Returns the next item of the list, or `None` at the end of the list.
    pub async fn next(&mut self) -> Option<Result<R::Item, Error>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Collects all items of the list. Returns an error if the pages of the list have more than 64 MiB together.
    ///
    /// If the server refuses a cursor from a cached page, the whole list is requested again.
    pub async fn all(mut self) -> Result<Vec<R::Item>, Error> {
        let mut items = Vec::new();
        while let Some(item) = self.next().await {
            match item {
                Ok(_) if self.bytes > MAX_BYTES => {
                    return Err(Error::endless_list(format!(
                        "the list of {} has more than {MAX_BYTES} bytes",
                        R::METHOD
                    )));
                }
                Ok(item) => items.push(item),
                Err(error) if !self.fresh && self.remove_cached_pages(&error) => {
                    items.clear();
                    (self.next_page, self.fresh) = (Some(PaginatedParams::default()), true);
                    (self.pages, self.bytes) = (0, 0);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(items)
    }

    /// Removes the cached pages of the list, if the error means that the server refused a cursor. Returns whether
    /// cached pages of the list were removed.
    fn remove_cached_pages(&self, error: &Error) -> bool {
        let refused = error.refusal().is_some_and(|refusal| refusal.code == code::INVALID_PARAMS);
        self.pages > 0 && refused && self.client.inner.cache().remove_pages(R::METHOD)
    }

    fn call(&self, params: PaginatedParams) -> Call<R> {
        let call = self.client.call::<R>(params).timeout(self.timeout);
        if self.fresh { call.fresh() } else { call }
    }

    /// Adds the items of a page. Returns an error if the list has too many pages.
    fn add_page(&mut self, page: R::Result) -> Result<(), Error> {
        let (mut items, cursor) = R::into_parts(page);
        if self.client.inner.wire_format(self.client.revision()).mirrors_arguments() {
            items.retain(R::is_usable_over_http);
        }
        self.buffered = items.into();
        self.pages += 1;
        if cursor.is_some() && self.pages == MAX_PAGES {
            return Err(Error::endless_list(format!("the list of {} has more than {MAX_PAGES} pages", R::METHOD)));
        }
        self.next_page = cursor.map(|cursor| PaginatedParams::new().with_cursor(cursor));
        Ok(())
    }
}

// No field is structurally pinned.
impl<R: ListRequest> Unpin for ItemStream<R> {}

impl<R: ListRequest> Stream for ItemStream<R> {
    type Item = Result<R::Item, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let list = &mut *self;
        loop {
            if let Some(item) = list.buffered.pop_front() {
                return Poll::Ready(Some(Ok(item)));
            }
            if let Some(params) = list.next_page.take() {
                list.pending_page = Some(list.call(params).start());
            }
            let Some(pending) = &mut list.pending_page else { return Poll::Ready(None) };
            let (page, flow) = std::task::ready!(pending.poll_end(cx));
            list.pending_page = None;
            list.bytes = list.bytes.saturating_add(flow.map_or(0, |flow| flow.response_bytes()));
            if let Err(error) = page.and_then(|page| list.add_page(page)) {
                list.buffered.clear();
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}

impl<R: ListRequest> std::fmt::Debug for ItemStream<R> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ItemStream").field("method", &R::METHOD).finish_non_exhaustive()
    }
}
