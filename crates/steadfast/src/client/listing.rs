//! Lists that come in pages, item by item.

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
use super::call::pending::PendingResult;
use super::call::{Call, TIMEOUT};
use crate::error::Error;

/// A server that gives out cursors for ever would keep us for ever.
const MOST_PAGES: usize = 1_000;

/// How much of a list is collected, in bytes of its pages. What is longer can be taken item by item.
const MOST_BYTES: usize = 64 << 20;

/// A request that lists something in pages.
pub trait Listing: Request<Params = PaginatedParams> + sealed::Sealed {
    /// What is listed.
    type Item: Send + 'static;

    /// The items of a page, and where the next one begins.
    fn open(page: Self::Result) -> (Vec<Self::Item>, Option<String>);

    /// Whether an item may be used over HTTP, which asks more of tools.
    #[doc(hidden)]
    fn is_sound_over_http(_item: &Self::Item) -> bool {
        true
    }
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! listings {
    ($($request:ident: $result:ident.$items:ident => $item:ty $(, only $sound:ident)?;)+) => {$(
        impl sealed::Sealed for request::$request {}

        impl Listing for request::$request {
            type Item = $item;

            fn open(page: $result) -> (Vec<$item>, Option<String>) {
                (page.$items, page.next_cursor)
            }

            $(fn is_sound_over_http(item: &$item) -> bool {
                $sound(item)
            })?
        }
    )+};
}

listings! {
    ListTools: ListToolsResult.tools => Tool, only mirrors_well;
    ListPrompts: ListPromptsResult.prompts => Prompt;
    ListResources: ListResourcesResult.resources => Resource;
    ListResourceTemplates: ListResourceTemplatesResult.resource_templates => ResourceTemplate;
    ListTasks: ListTasksResult.tasks => Task;
}

/// Whether the headers that a tool wants can be written: one whose annotations are wrong is not to be used.
fn mirrors_well(tool: &Tool) -> bool {
    match MirroredParams::of_schema(&tool.input_schema) {
        Ok(_) => true,
        Err(why) => {
            tracing::warn!(tool = %tool.name, %why, "the server lists a tool that cannot be called over HTTP");
            false
        }
    }
}

/// The items of a list, fetched page by page as they are taken: a `Stream` of `futures_core`, with [`next`](Items::next) for
/// programs that have no use for one, and [`all`](Items::all).
///
/// After an error it is at its end.
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
#[must_use = "nothing is listed until this is polled"]
pub struct Items<R: Listing> {
    client: Client,
    /// What is on its way.
    page: Option<PendingResult<R>>,
    /// Where the next page begins, unless it is on its way or there is none.
    next: Option<PaginatedParams>,
    fetched: VecDeque<R::Item>,
    pages: usize,
    /// How long the pages were together.
    bytes: usize,
    /// How long each page may take.
    timeout: Option<Duration>,
    fresh: bool,
}

impl<R: Listing> Items<R> {
    pub(super) fn new(client: Client) -> Self {
        let next = Some(PaginatedParams::default());
        let (fetched, timeout) = (VecDeque::new(), Some(TIMEOUT));
        Self { client, page: None, next, fetched, pages: 0, bytes: 0, timeout, fresh: false }
    }

    /// How long to wait for each page. As long as for any call unless told; with `None` only its total time ends it.
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.timeout = timeout.into();
        self
    }

    /// Asks the server for each page, also if one is kept that has not expired.
    pub fn fresh(mut self) -> Self {
        self.fresh = true;
        self
    }

    /// The next item; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<R::Item, Error>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// All of them. A list whose pages have more than 64 MiB is not collected: that is an error.
    ///
    /// If the server does not take a cursor any more that stands in a page that was kept, the list is fetched again from its
    /// beginning.
    pub async fn all(mut self) -> Result<Vec<R::Item>, Error> {
        let mut items = Vec::new();
        while let Some(item) = self.next().await {
            match item {
                Ok(_) if self.bytes > MOST_BYTES => {
                    return Err(Error::endless_list(format!(
                        "the list of {} has more than {MOST_BYTES} bytes",
                        R::METHOD
                    )));
                }
                Ok(item) => items.push(item),
                Err(error) if !self.fresh && self.forget_pages(&error) => {
                    items.clear();
                    (self.next, self.fresh) = (Some(PaginatedParams::default()), true);
                    (self.pages, self.bytes) = (0, 0);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(items)
    }

    /// Forgets the pages that are kept if the server does not take the cursor of one of them. Returns whether there were any.
    fn forget_pages(&self, error: &Error) -> bool {
        let refused = error.refusal().is_some_and(|refusal| refusal.code == code::INVALID_PARAMS);
        self.pages > 0 && refused && self.client.inner.cache().forget_pages(R::METHOD)
    }

    fn call(&self, params: PaginatedParams) -> Call<R> {
        let call = self.client.call::<R>(params).timeout(self.timeout);
        if self.fresh { call.fresh() } else { call }
    }

    /// Takes a page; an error if there will never be a last one.
    fn take(&mut self, page: R::Result) -> Result<(), Error> {
        let (mut items, cursor) = R::open(page);
        if self.client.inner.over(self.client.revision()).mirrors() {
            items.retain(R::is_sound_over_http);
        }
        self.fetched = items.into();
        self.pages += 1;
        if cursor.is_some() && self.pages == MOST_PAGES {
            return Err(Error::endless_list(format!("the list of {} has more than {MOST_PAGES} pages", R::METHOD)));
        }
        self.next = cursor.map(|cursor| PaginatedParams::new().with_cursor(cursor));
        Ok(())
    }
}

// Nothing in it is pinned in place.
impl<R: Listing> Unpin for Items<R> {}

impl<R: Listing> Stream for Items<R> {
    type Item = Result<R::Item, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let items = &mut *self;
        loop {
            if let Some(item) = items.fetched.pop_front() {
                return Poll::Ready(Some(Ok(item)));
            }
            if let Some(params) = items.next.take() {
                items.page = Some(items.call(params).start());
            }
            let Some(page) = &mut items.page else { return Poll::Ready(None) };
            let (page, flow) = std::task::ready!(page.poll_end(cx));
            items.page = None;
            items.bytes = items.bytes.saturating_add(flow.map_or(0, |flow| flow.answer_bytes()));
            if let Err(error) = page.and_then(|page| items.take(page)) {
                items.fetched.clear();
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}

impl<R: Listing> std::fmt::Debug for Items<R> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Items").field("method", &R::METHOD).finish_non_exhaustive()
    }
}
