//! A client that takes orders and reports their outcomes: the subject of the client's half of the fault table.
//!
//! Orders come on standard input, a JSON object a line ([`orders`]). Their outcomes go to standard output, a JSON
//! object a line ([`say`]): each connection that was opened or could not be, each call that ended and how, each connection
//! that was closed. It is an ordinary program on the library: nothing here uses more than its public API, and nothing here
//! judges.
//!
//! It ends when its standard input does, and closes what is open before.

#![forbid(unsafe_code)]

mod again;
mod orders;
mod say;

use std::collections::HashMap;
use std::io::BufRead as _;
use std::time::Duration;

use serde_json::Value;
use steadfast::Client;
use steadfast::client::{ConnectBuilder, NegotiationMode, Reconnect};
use steadfast::transport::child::Command;
use steadfast::transport::http::HttpTarget;
use steadfast::{Error, Implementation, Revision};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use again::Again;
use orders::{Calling, Errors, Opening, Order, Place};

#[tokio::main]
async fn main() {
    let (tell, mut orders) = mpsc::unbounded_channel();
    // A thread of its own: standard input cannot be awaited.
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if tell.send(line).is_err() {
                return;
            }
        }
    });
    let mut subject = Subject::default();
    while let Some(line) = orders.recv().await {
        match serde_json::from_str(&line) {
            Ok(order) => subject.obey(order).await,
            Err(error) => say::misunderstood(&line, &error),
        }
    }
    for (name, client) in std::mem::take(&mut subject.connections) {
        client.close().await;
        say::closed(&name);
    }
}

/// What is open.
#[derive(Default)]
struct Subject {
    connections: HashMap<String, Client>,
    calls: HashMap<String, JoinHandle<()>>,
}

impl Subject {
    async fn obey(&mut self, order: Order) {
        match order {
            Order::Connect(opening) => self.connect(opening).await,
            Order::Call(calling) => self.call(calling),
            Order::TakeBack { call } => {
                if let Some(task) = self.calls.remove(&call) {
                    task.abort();
                    // Its end is the drop of the call.
                    let _ = task.await;
                }
                say::taken_back(&call);
            }
            Order::AwaitEnd { connection } => {
                if let Some(client) = self.connections.get(&connection).cloned() {
                    tokio::spawn(async move {
                        client.closed().await;
                        say::gone(&connection);
                    });
                }
            }
            Order::Close { connection } => {
                if let Some(client) = self.connections.remove(&connection) {
                    client.close().await;
                }
                say::closed(&connection);
            }
        }
        self.calls.retain(|_, task| !task.is_finished());
    }

    async fn connect(&mut self, opening: Opening) {
        let name = opening.connection.clone();
        match connecting(opening).await {
            Ok(client) => {
                say::connected(&name, client.revision());
                self.connections.insert(name, client);
            }
            Err(error) => say::not_connected(&name, &error),
        }
    }

    fn call(&mut self, calling: Calling) {
        let Calling { connection, call, tool, mut arguments, pad, deadline_ms, idempotent, progress } = calling;
        let Some(client) = self.connections.get(&connection) else {
            return say::ended(&call, Err(&Error::usage("no such connection")));
        };
        if pad > 0 {
            arguments["pad"] = Value::from("x".repeat(pad));
        }
        let mut made = client.call_tool(tool, arguments).timeout(Duration::from_millis(deadline_ms));
        if idempotent {
            made = made.idempotent();
        }
        if progress {
            let call = call.clone();
            made = made.on_progress(move |progress| say::progress(&call, progress.progress));
        }
        // Here, and not in the task: calls are sent in the order of their orders.
        let pending = made.start();
        let name = call.clone();
        let task = tokio::spawn(async move {
            let ended = pending.await;
            say::ended(&call, ended.as_ref());
        });
        self.calls.insert(name, task);
    }
}

fn connecting(opening: Opening) -> ConnectBuilder {
    let connecting = match opening.to {
        Place::Command(words) => Client::connect(command(&words, opening.errors)),
        Place::Url(url) => {
            let mut target = HttpTarget::new(url);
            for (name, value) in &opening.headers {
                target = target.header(name, value);
            }
            if let Some(token) = opening.token {
                target = target.authorize(Again::new(&token));
            }
            Client::connect(target)
        }
    };
    let connecting = match opening.reconnect {
        None => connecting,
        Some(0) => connecting.reconnect(Reconnect::never()),
        // Short pauses, so that a table of many losses does not last for minutes.
        Some(attempts) => connecting.reconnect(
            Reconnect::default()
                .attempts(attempts)
                .first_pause(Duration::from_millis(5))
                .longest_pause(Duration::from_millis(50)),
        ),
    };
    let era = match Revision::parse(&opening.revision) {
        Some(revision) if revision.is_stateless() => NegotiationMode::Stateless,
        Some(revision) => NegotiationMode::Handshake(revision),
        None => NegotiationMode::Auto,
    };
    connecting
        .info(Implementation::new("subject", "1"))
        .negotiation(era)
        .opening_timeout(Duration::from_millis(opening.within_ms))
}

fn command(words: &[String], errors: Errors) -> Command {
    let (program, arguments) = words.split_first().map_or(("", [].as_slice()), |(first, rest)| (first.as_str(), rest));
    // Short, so that a table of many endings does not last for minutes.
    let patience = Duration::from_millis(300);
    let command = Command::new(program).args(arguments).leave_within(patience).terminate_within(patience);
    match errors {
        Errors::Log => command,
        Errors::Lines => command.on_stderr_line(|line| drop(line.to_owned())),
        Errors::Stuck => command.on_stderr_line(|_| std::thread::park()),
        Errors::Null => command.stderr_null(),
    }
}
