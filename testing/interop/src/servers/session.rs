//! A connection to the server of a run, and what a check does with it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use steadfast::client::{ConnectBuilder, NegotiationMode};
use steadfast::transport::child::Child;
use steadfast::{
    CallToolResult, Client, Content, CreateMessageResult, ElicitParams, ElicitResult, Error, JsonObject,
    ListRootsResult, Outcome, Revision, Root, model::FormFieldKind,
};

use super::host::{Host, ServerAddress};
use crate::Result;

/// How long a server may take to start on a busy machine.
const OPENING: Duration = Duration::from_secs(60);

/// What the client answers when it is asked for its roots.
pub(crate) const ROOT: &str = "file:///interop";

/// A client of a server.
pub(crate) struct Session {
    pub(crate) client: Client,
    /// The process that serves it.
    pub(crate) process: i32,
    /// Whether the process was started by this client, and has to end with it.
    pub(crate) owned: bool,
    pub(crate) cleanup_log: PathBuf,
    declines: Arc<AtomicBool>,
}

impl Session {
    /// Connects. In the newest revision of the server the client has to find out by itself what is spoken.
    pub(crate) async fn open(host: &Host<'_>, revision: &str) -> Result<Self> {
        let spoken = Revision::parse(revision).ok_or_else(|| format!("{revision} is no revision"))?;
        let era = if host.peer().is_newest(revision) {
            NegotiationMode::Auto
        } else if spoken.is_stateless() {
            NegotiationMode::Stateless
        } else {
            NegotiationMode::Handshake(spoken)
        };
        let (connecting, process, owned) = match host.address()? {
            ServerAddress::Process(command) => {
                let child = Child::spawn(*command).map_err(|error| error.to_string())?;
                let process = child.id();
                (Client::connect(child), process, true)
            }
            ServerAddress::Url(url, process) => (Client::connect(url), process, false),
        };
        let declines = Arc::new(AtomicBool::new(false));
        let connecting = answering(connecting, Arc::clone(&declines)).negotiation(era).opening_timeout(OPENING);
        let client = connecting.await.map_err(|error| format!("cannot connect: {}", describe(&error)))?;
        let process = process.try_into().map_err(|_| "a process without an id".to_owned())?;
        Ok(Self { client, process, owned, cleanup_log: host.cleanup_log(), declines })
    }

    /// From here on the user declines whatever is asked.
    pub(crate) fn decline(&self) {
        self.declines.store(true, Ordering::SeqCst);
    }

    /// Calls a tool: the first text of its result, and whether it failed.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<Value, Error> {
        self.client.call_tool(tool, arguments).await.map(|result| text_of(&result))
    }
}

/// A user who is Ada and leaves alone what has a default, a model that knows one city, and one folder.
fn answering(connecting: ConnectBuilder, declines: Arc<AtomicBool>) -> ConnectBuilder {
    connecting
        .on_elicit(move |asked, _| {
            let declined = declines.load(Ordering::SeqCst) || !matches!(asked, ElicitParams::Form(_));
            async move {
                if declined {
                    return Ok(ElicitResult::decline());
                }
                Ok(ElicitResult::accept(answers(&asked)))
            }
        })
        .on_sample(|_, _| async { Ok(CreateMessageResult::new("interop", Content::text("Paris"))) })
        .on_roots(|_| async { Ok(ListRootsResult::new(vec![Root::new(ROOT)])) })
}

/// The name, and the first of each choice that has to be made.
fn answers(asked: &ElicitParams) -> JsonObject {
    let mut answers = JsonObject::from_iter([("name".to_owned(), json!("Ada"))]);
    if let ElicitParams::Form(form) = asked {
        let form = &form.requested_schema;
        for (name, field) in form.fields().filter(|(name, _)| form.is_required(name)) {
            if let FormFieldKind::Choice { default: None, options, .. } = &field.kind {
                answers.insert(name.to_owned(), json!(options.first().map(|option| &option.value)));
            }
        }
    }
    answers
}

pub(crate) fn text_of(result: &CallToolResult) -> Value {
    let text = result.content.first().and_then(Content::as_text);
    json!([text, result.is_error.unwrap_or(false)])
}

/// Whether the server refused, by an error or by a result that says so.
pub(crate) fn is_refused(answer: Result<Value, Error>) -> Result<bool, Error> {
    match answer {
        Ok(answer) => Ok(answer.get(1) == Some(&json!(true))),
        Err(error) if error.outcome() == Outcome::Refused => Ok(true),
        Err(error) => Err(error),
    }
}

/// An error with its causes, as text.
pub(crate) fn describe(error: &Error) -> String {
    let mut words = format!("{error} ({:?}, {:?})", error.kind(), error.outcome());
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        words = format!("{words}: {cause}");
        source = cause.source();
    }
    words
}
