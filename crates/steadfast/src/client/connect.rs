//! How a connection begins: what there is to connect to, and which revision is spoken.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use steadfast_model::era::{self, Decoration};
use steadfast_model::request::{self, Request};
use steadfast_model::{
    ClientCapabilities, CreateMessageParams, CreateMessageResult, DiscoverResult, ElicitAction, ElicitParams,
    ElicitResult, EmptyParams, ErrorObject, Implementation, InitializeResult, ListRootsResult, Method, Revision, code,
};
use steadfast_proto::connection::{ClientHello, Hello, Limits, Outcome as Ending, Peer};

use super::changes::Told;
use super::declared::declared;
use super::handlers::{Answers, Handlers};
use super::{Client, Inner, result_of};
use crate::error::{Error, ErrorKind, HTTP_STATUS, Outcome};
use crate::runtime::{
    CallEnding, CallOptions, Driver, Ended, Letter, Mailbox, PendingCall, Runtime, Task, TokioRuntime, io_handle,
};
use crate::server::{IntoServer, Serve};
use crate::transport::child::{Child, Command};
#[cfg(feature = "http-client")]
use crate::transport::http_client::{HttpDriver, HttpTarget};
use crate::transport::{Transport, memory};

/// How long the server may take to say which revision it speaks.
const OPENING: Duration = Duration::from_secs(10);

/// How much may be on its way between a client and a server in one process.
const MEMORY: usize = 256 * 1024;

/// What a client can connect to.
#[diagnostic::on_unimplemented(
    message = "a client cannot connect to `{Self}`",
    note = "connect to a server (a type with `#[server]`, a `Server`), a `transport::child::Command`, a `Transport`, or the URL of a server (feature `http-client`)"
)]
pub trait Target<Via> {
    /// Opens the way to it.
    fn open(self) -> io::Result<Way>;
}

/// The way to a server.
pub struct Way(Kind);

enum Kind {
    Bytes(Box<dyn Transport>),
    #[cfg(feature = "http-client")]
    Http(Box<HttpTarget>),
}

impl<T: Transport> From<T> for Way {
    fn from(transport: T) -> Self {
        Self(Kind::Bytes(Box::new(transport)))
    }
}

impl std::fmt::Debug for Way {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match &self.0 {
            Kind::Bytes(_) => "Way(a stream of bytes)",
            #[cfg(feature = "http-client")]
            Kind::Http(_) => "Way(HTTP)",
        })
    }
}

/// A server in this process.
#[derive(Debug)]
pub struct ViaMemory;
/// A transport.
#[derive(Debug)]
pub struct ViaTransport;
/// A child process.
#[derive(Debug)]
pub struct ViaChild;
/// A URL.
#[cfg(feature = "http-client")]
#[derive(Debug)]
pub struct ViaHttp;

impl<T: IntoServer> Target<ViaMemory> for T {
    fn open(self) -> io::Result<Way> {
        let (here, there) = memory::pair(MEMORY);
        let serving = self.into_server().serve(there);
        let handle = tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
        // How the server's side ends is seen by this side as the end of the connection.
        handle.spawn(async move { serving.run().await.map(drop) });
        Ok(here.into())
    }
}

impl<T: Transport> Target<ViaTransport> for T {
    fn open(self) -> io::Result<Way> {
        Ok(self.into())
    }
}

impl Target<ViaChild> for Command {
    fn open(self) -> io::Result<Way> {
        Ok(Child::spawn(self)?.into())
    }
}

#[cfg(feature = "http-client")]
impl Target<ViaHttp> for HttpTarget {
    fn open(self) -> io::Result<Way> {
        Ok(Way(Kind::Http(Box::new(self))))
    }
}

/// The server's URL.
#[cfg(feature = "http-client")]
impl Target<ViaHttp> for &str {
    fn open(self) -> io::Result<Way> {
        HttpTarget::new(self).open()
    }
}

/// The server's URL.
#[cfg(feature = "http-client")]
impl Target<ViaHttp> for String {
    fn open(self) -> io::Result<Way> {
        HttpTarget::new(self).open()
    }
}

/// Which revisions a client tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Era {
    /// 2026-07-28 first, then the handshake of the older ones.
    #[default]
    Any,
    /// 2026-07-28 only.
    Modern,
    /// The handshake, offering this revision.
    Handshake(Revision),
}

/// A client about to connect: await it. A child process is there already; nothing is said to it before.
#[must_use = "nothing is said to the server until this is awaited"]
pub struct Connecting {
    way: io::Result<Way>,
    info: Implementation,
    capabilities: ClientCapabilities,
    /// What the handlers stand for, where `capabilities` says nothing.
    implied: ClientCapabilities,
    handlers: Handlers,
    era: Era,
    limits: Limits,
    opening: Duration,
    runtime: Option<Arc<dyn Runtime>>,
}

impl Connecting {
    pub(super) fn new<Via>(target: impl Target<Via>) -> Self {
        Self {
            way: target.open(),
            info: Implementation::new("steadfast", env!("CARGO_PKG_VERSION")),
            capabilities: ClientCapabilities::new(),
            implied: ClientCapabilities::new(),
            handlers: Handlers::default(),
            era: Era::Any,
            limits: Limits::default(),
            opening: OPENING,
            runtime: None,
        }
    }

    /// What the client calls itself.
    pub fn info(mut self, info: Implementation) -> Self {
        self.info = info;
        self
    }

    /// What the client says that it can do. Roots, sampling and elicitation are declared only if there is a handler for
    /// them.
    pub fn capabilities(mut self, capabilities: ClientCapabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Answers what a server asks for: on the older wires a request of its own, since 2026-07-28 a question that comes in
    /// place of a result. The call that it came for goes on by itself.
    ///
    /// ```
    /// # use steadfast::{prelude::*, request, ClientCapabilities, ListRootsResult};
    /// # fn connect(server: Server) {
    /// let connecting = Client::connect(server)
    ///     .capabilities(ClientCapabilities::new().with_roots(false))
    ///     .on::<request::ListRoots, _, _>(|_| async { Ok(ListRootsResult::default()) });
    /// # }
    /// ```
    pub fn on<R, F, A>(mut self, handler: F) -> Self
    where
        R: Request,
        F: Fn(R::Params) -> A + Send + Sync + 'static,
        A: Future<Output = Result<R::Result, Error>> + Send + 'static,
    {
        self.handlers.add::<R, F, A>(handler);
        self
    }

    /// Answers when a server asks for the roots, and declares that it can be asked.
    pub fn on_roots<F, A>(mut self, handler: F) -> Self
    where
        F: Fn() -> A + Send + Sync + 'static,
        A: Future<Output = Result<ListRootsResult, Error>> + Send + 'static,
    {
        self.implied = self.implied.with_roots(false);
        self.on::<request::ListRoots, _, _>(move |_| handler())
    }

    /// Answers when a server asks for the model, and declares that it can be asked.
    pub fn on_sample<F, A>(mut self, handler: F) -> Self
    where
        F: Fn(CreateMessageParams) -> A + Send + Sync + 'static,
        A: Future<Output = Result<CreateMessageResult, Error>> + Send + 'static,
    {
        self.implied = self.implied.with_sampling();
        self.on::<request::CreateMessage, _, _>(handler)
    }

    /// Answers when a server asks the user, by a form or by a URL, and declares that it can be asked in both ways. What a
    /// form has defaults for need not be in the answer.
    ///
    /// ```
    /// # use steadfast::{prelude::*, ElicitParams, ElicitResult};
    /// # fn connect(server: Server) {
    /// let connecting = Client::connect(server).on_elicit(|asked| async move {
    ///     match asked {
    ///         ElicitParams::Form(form) => Ok(ElicitResult::accept(steadfast::JsonObject::new())),
    ///         _ => Ok(ElicitResult::decline()),
    ///     }
    /// });
    /// # }
    /// ```
    pub fn on_elicit<F, A>(mut self, handler: F) -> Self
    where
        F: Fn(ElicitParams) -> A + Send + Sync + 'static,
        A: Future<Output = Result<ElicitResult, Error>> + Send + 'static,
    {
        self.implied = self.implied.with_elicitation_form().with_elicitation_url();
        self.on::<request::Elicit, _, _>(move |params| {
            let form = match &params {
                ElicitParams::Form(form) => Some(form.requested_schema.clone()),
                _ => None,
            };
            let answered = handler(params);
            async move {
                let mut answer = answered.await?;
                if let (Some(form), ElicitAction::Accept) = (form, answer.action) {
                    form.fill_in_defaults(answer.content.get_or_insert_default());
                }
                Ok(answer)
            }
        })
    }

    /// Which revisions to try.
    pub fn era(mut self, era: Era) -> Self {
        self.era = era;
        self
    }

    /// With other limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How long the server may take to say which revision it speaks. Ten seconds unless told.
    pub fn opening_timeout(mut self, timeout: Duration) -> Self {
        self.opening = timeout;
        self
    }

    /// In other surroundings than the tokio runtime in which this is awaited: a simulator's.
    pub fn with_runtime(mut self, runtime: Arc<dyn Runtime>) -> Self {
        self.runtime = Some(runtime);
        self
    }

    async fn open(self) -> Result<Client, Error> {
        let way = self.way.map_err(|error| Error::transport(Outcome::NotSent, error))?;
        let capabilities = declared(self.capabilities, self.implied, |method| self.handlers.has(method));
        let hello = ClientHello::new(self.info.clone(), capabilities.clone());
        let handlers = self.handlers.declaring(capabilities.clone());
        let told = Told::default();
        let serving = Answers { handlers: Arc::clone(&handlers), told: told.clone() };
        let (close, closed) = tokio::sync::watch::channel(false);
        let close = Closing { closed: close, told: told.clone() };
        let apart = self.runtime.is_none();
        let runtime: Arc<dyn Runtime> = match self.runtime {
            Some(runtime) => runtime,
            None => Arc::new(TokioRuntime::current().map_err(|error| Error::transport(Outcome::NotSent, error))?),
        };
        let (limits, hello) = (self.limits, Hello::Client(hello));
        let over_http = !matches!(way.0, Kind::Bytes(_));
        let (mailbox, driven): (_, Task) = match way.0 {
            Kind::Bytes(transport) => {
                let driver = Driver::new(transport, |_| serving, hello, limits, Arc::clone(&runtime));
                (Arc::clone(driver.mailbox()), Box::pin(until_closed(driver, close)))
            }
            #[cfg(feature = "http-client")]
            Kind::Http(target) => {
                let driver = HttpDriver::new(*target, |_| serving, hello, limits, Arc::clone(&runtime))
                    .map_err(|error| Error::transport(Outcome::NotSent, error))?;
                (Arc::clone(driver.mailbox()), Box::pin(until_closed(driver, close)))
            }
        };
        if apart {
            let io = io_handle().map_err(|error| Error::transport(Outcome::NotSent, error))?;
            drop(io.spawn(driven));
        } else {
            runtime.spawn(driven);
        }
        let decoration = Decoration::of_client(&self.info, &capabilities);
        // From here on, dropping this future closes the connection.
        let mut inner = Inner {
            mailbox,
            peer: Arc::new(Peer::new(Revision::LATEST)),
            decoration,
            capabilities,
            instructions: None,
            handlers,
            told,
            runtime,
            over_http,
            closed,
        };
        let opened = Opened::open(&inner.mailbox, self.era, &inner.decoration, self.opening).await?;
        inner.peer = Arc::new(opened.peer);
        inner.instructions = opened.instructions;
        Ok(Client { inner: Arc::new(inner) })
    }
}

/// Drives a connection to its end, and says so.
async fn until_closed(driver: impl Future<Output = Ended>, closing: Closing) {
    driver.await;
    drop(closing);
}

/// Says that the connection is closed, also when its driver is dropped.
struct Closing {
    closed: tokio::sync::watch::Sender<bool>,
    told: Told,
}

impl Drop for Closing {
    fn drop(&mut self) {
        // If nobody waits for it, nobody is told.
        let _ = self.closed.send(true);
        self.told.close();
    }
}

impl IntoFuture for Connecting {
    type Output = Result<Client, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.open())
    }
}

impl std::fmt::Debug for Connecting {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Connecting").field("info", &self.info).field("era", &self.era).finish_non_exhaustive()
    }
}

/// What a server turned out to be.
struct Opened {
    peer: Peer,
    instructions: Option<String>,
}

impl Opened {
    async fn open(mailbox: &Arc<Mailbox>, era: Era, decoration: &Decoration, timeout: Duration) -> Result<Self, Error> {
        match era {
            Era::Handshake(revision) => Self::handshake(mailbox, revision, timeout).await,
            Era::Modern => Self::negotiate(mailbox, decoration, timeout).await,
            Era::Any => match Self::negotiate(mailbox, decoration, timeout).await {
                Err(error) if is_of_an_older_server(&error) => {
                    Self::handshake(mailbox, Revision::LATEST_LEGACY, timeout).await
                }
                Err(error) => match spoken(&error).into_iter().filter(|revision| !revision.is_modern()).max() {
                    Some(revision) => Self::handshake(mailbox, revision, timeout).await,
                    None => Err(error),
                },
                opened => opened,
            },
        }
    }

    /// Asks, and asks again if the server refuses the revision and names one that we speak too.
    async fn negotiate(mailbox: &Arc<Mailbox>, decoration: &Decoration, timeout: Duration) -> Result<Self, Error> {
        match Self::discover(mailbox, decoration, timeout).await {
            Err(error) if spoken(&error).contains(&Revision::LATEST) => {
                Self::discover(mailbox, decoration, timeout).await
            }
            opened => opened,
        }
    }

    async fn discover(mailbox: &Arc<Mailbox>, decoration: &Decoration, timeout: Duration) -> Result<Self, Error> {
        let mut text = Vec::new();
        era::write_params(Revision::LATEST, &EmptyParams::default(), decoration, &mut text).map_err(Error::encode)?;
        let text = String::from_utf8(text).map_err(Error::encode)?;
        let options = CallOptions { timeout: Some(timeout), keep_when_given_up: true, ..CallOptions::default() };
        let ending = PendingCall::new(mailbox, Method::Discover, Some(text.into()), options).await;
        let result: DiscoverResult = result_of::<request::Discover>(ending)?;
        let revision = result.known_versions().filter(|revision| revision.is_modern()).max();
        let Some(revision) = revision else {
            let offered = result.supported_versions.join(", ");
            return Err(Error::incompatible(format!("the server speaks {offered}, and nothing that we speak")));
        };
        let mut peer = Peer::new(revision);
        peer.info = result.meta.as_ref().and_then(steadfast_model::Meta::server_info);
        peer.server_capabilities = result.capabilities;
        // If the connection is closed, the first call says so.
        let _ = mailbox.post(Letter::SpeakModern(Box::new(peer.clone())));
        Ok(Self { peer, instructions: result.instructions })
    }

    async fn handshake(mailbox: &Arc<Mailbox>, offered: Revision, timeout: Duration) -> Result<Self, Error> {
        let options = CallOptions { timeout: Some(timeout), keep_when_given_up: true, ..CallOptions::default() };
        let ending = PendingCall::initialize(mailbox, offered, options).await;
        if let CallEnding::Ended(Ending::Unreadable(why)) = ending {
            return Err(Error::incompatible(why));
        }
        let result: InitializeResult = result_of::<request::Initialize>(ending)?;
        let mut peer = Peer::new(Revision::parse(&result.protocol_version).unwrap_or(offered));
        peer.info = Some(result.server_info);
        peer.server_capabilities = result.capabilities;
        Ok(Self { peer, instructions: result.instructions })
    }
}

/// The revisions that a server names that refuses ours.
fn spoken(error: &Error) -> Vec<Revision> {
    let refusal = error.refusal().filter(|refusal| refusal.code == code::UNSUPPORTED_VERSION);
    let named = refusal.and_then(|refusal| refusal.data.as_ref()?.get("supported")?.as_array());
    named.into_iter().flatten().filter_map(|name| Revision::parse(name.as_str()?)).collect()
}

/// Whether it was refused with a status that says nothing about the revision: who is not let in, or comes too often.
fn keeps_everyone_out(refusal: &ErrorObject) -> bool {
    let status = refusal.data.as_ref().and_then(|data| data.get(HTTP_STATUS)).and_then(serde_json::Value::as_u64);
    matches!(status, Some(401 | 403 | 429))
}

/// Whether the answer to the probe is one that a server of the older revisions may give: any refusal but those that only
/// a newer one knows, or none in time.
fn is_of_an_older_server(error: &Error) -> bool {
    let modern = [code::HEADER_MISMATCH, code::MISSING_CAPABILITY, code::UNSUPPORTED_VERSION];
    match error.kind() {
        ErrorKind::Refused => {
            error.refusal().is_none_or(|refusal| !modern.contains(&refusal.code) && !keeps_everyone_out(refusal))
        }
        ErrorKind::TimedOut | ErrorKind::Decode => true,
        _ => false,
    }
}
