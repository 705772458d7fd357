//! Clients whose connection is lost: what is made again, what is not, and how it all ends (law L10).

mod attempts;
mod calls;
mod change_streams;
#[cfg(all(feature = "http", feature = "http-client"))]
mod http;
#[cfg(unix)]
pub(crate) mod processes;

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use steadfast::TASKS_EXTENSION;
use steadfast::client::{Connecting, Era, Reconnect};
use steadfast::prelude::*;
use steadfast::transport::stream::Stream;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::sync::watch;

use crate::{Signal, soon};

/// What a site says to a request.
enum Reply {
    Result(Value),
    Error(i64),
    Silence,
    /// Nothing, and the connection ends.
    HangUp,
}

/// What happens when somebody comes.
#[derive(Clone, Copy, PartialEq)]
enum Door {
    Open,
    Shut,
    /// Nobody comes to the door.
    Unanswered,
    /// Whoever opens it panics.
    Broken,
}

type Answer = Box<dyn Fn(usize, &Value) -> Reply + Send + Sync>;

/// A server that can be connected to again and again, and says what it is told to.
struct Site {
    answer: Answer,
    door: Mutex<Door>,
    /// How often somebody came.
    came: AtomicUsize,
    /// The number of the connection, and what was said on it.
    heard: Mutex<Vec<(usize, Value)>>,
    /// Rings when something was heard, somebody came, or a connection has ended.
    changed: watch::Sender<usize>,
    /// The number of the first connection that goes on.
    cut: watch::Sender<usize>,
    ended: AtomicUsize,
}

impl Site {
    /// `answer` is asked for everything but the greeting, with the number of the connection.
    fn new(answer: impl Fn(usize, &Value) -> Reply + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            answer: Box::new(answer),
            door: Mutex::new(Door::Open),
            came: AtomicUsize::new(0),
            heard: Mutex::default(),
            changed: watch::Sender::new(0),
            cut: watch::Sender::new(0),
            ended: AtomicUsize::new(0),
        })
    }

    /// Answers everything.
    fn willing() -> Arc<Self> {
        Self::new(|_, request| Reply::Result(done(request)))
    }

    fn connecting(self: &Arc<Self>) -> Connecting {
        let site = Arc::clone(self);
        let pauses = Reconnect::default().first_pause(Duration::from_millis(1));
        Client::connect(move || Arc::clone(&site).open()).era(Era::Modern).reconnect(pauses)
    }

    async fn connect(self: &Arc<Self>) -> Client {
        soon(self.connecting().into_future()).await.unwrap()
    }

    fn open(self: Arc<Self>) -> Pin<Box<dyn Future<Output = io::Result<Stream>> + Send>> {
        let number = self.came.fetch_add(1, Ordering::SeqCst);
        self.ring();
        let door = *self.door.lock().unwrap();
        assert!(door != Door::Broken, "whoever opens the door has an accident");
        Box::pin(async move {
            match door {
                Door::Shut => Err(io::ErrorKind::ConnectionRefused.into()),
                Door::Unanswered => std::future::pending().await,
                _ => {
                    let (here, there) = tokio::io::duplex(1 << 16);
                    tokio::spawn(self.serve(number, there));
                    Ok(Stream::duplex(here))
                }
            }
        })
    }

    async fn serve(self: Arc<Self>, number: usize, stream: DuplexStream) {
        let mut cut = self.cut.subscribe();
        tokio::select! {
            _ = cut.wait_for(|first| *first > number) => {}
            () = self.speak(number, stream) => {}
        }
        self.ended.fetch_add(1, Ordering::SeqCst);
        self.ring();
    }

    async fn speak(&self, number: usize, stream: DuplexStream) {
        let (input, mut output) = tokio::io::split(stream);
        let mut lines = BufReader::new(input).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let request: Value = serde_json::from_str(&line).unwrap();
            self.heard.lock().unwrap().push((number, request.clone()));
            self.ring();
            let Some(id) = request.get("id") else { continue };
            let reply = match (self.answer)(number, &request) {
                Reply::Silence => continue,
                Reply::HangUp => return,
                Reply::Result(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
                Reply::Error(code) => json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "no"}}),
            };
            if output.write_all(format!("{reply}\n").as_bytes()).await.is_err() {
                return;
            }
        }
    }

    fn ring(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// Ends the connections that there are.
    fn cut(&self) {
        self.cut.send_replace(self.came.load(Ordering::SeqCst));
    }

    fn set(&self, door: Door) {
        *self.door.lock().unwrap() = door;
    }

    fn came(&self) -> usize {
        self.came.load(Ordering::SeqCst)
    }

    /// On which connections this was asked.
    fn asked(&self, method: &str) -> Vec<usize> {
        let heard = self.heard.lock().unwrap();
        heard.iter().filter(|(_, request)| request["method"] == method).map(|(number, _)| *number).collect()
    }

    async fn until(&self, it_is_so: impl Fn(&Self) -> bool) {
        let mut changed = self.changed.subscribe();
        soon(changed.wait_for(|_| it_is_so(self))).await.unwrap();
    }
}

/// A result for any request that these tests make.
fn done(request: &Value) -> Value {
    match request["method"].as_str().unwrap_or_default() {
        "server/discover" => json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}, "extensions": {TASKS_EXTENSION: {}}}}),
        "initialize" => json!({"protocolVersion": "2025-11-25", "serverInfo": {"name": "site", "version": "1"},
            "capabilities": {"tools": {}}}),
        "tools/list" => json!({"resultType": "complete", "tools": []}),
        _ => json!({"resultType": "complete", "content": []}),
    }
}

/// Loses the first that is asked of this, and answers everything else.
fn losing(method: &'static str) -> Arc<Site> {
    Site::new(move |number, request| match number {
        0 if request["method"] == method => Reply::HangUp,
        _ => Reply::Result(done(request)),
    })
}
