//! A client that executes commands and reports their results: the client under test of the fault table.
//!
//! Commands come on standard input, a JSON object a line ([`commands`]). Their outcomes go to standard output, a JSON
//! object a line ([`report`]): each connection that was opened or could not be, each call that ended and how, each connection
//! that was closed. It is an ordinary program on the library: nothing here uses more than its public API, and nothing here
//! judges.
//!
//! It ends when its standard input does, and closes what is open before.

#![forbid(unsafe_code)]

mod commands;
mod report;
mod retry_authorizer;

use std::collections::HashMap;
use std::io::BufRead as _;
use std::time::Duration;

use serde_json::Value;
use steadfast::Client;
use steadfast::client::{ConnectBuilder, NegotiationMode, ReconnectPolicy};
use steadfast::transport::child::Command;
use steadfast::transport::http::HttpTarget;
use steadfast::{Error, Implementation, Revision};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use commands::{CallCommand, ClientCommand, ConnectCommand, StderrMode, Target};
use retry_authorizer::RetryAuthorizer;

#[tokio::main]
async fn main() {
    let (sender, mut commands) = mpsc::unbounded_channel();
    // A thread of its own: standard input cannot be awaited.
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let mut client = ClientUnderTest::default();
    while let Some(line) = commands.recv().await {
        match serde_json::from_str(&line) {
            Ok(command) => client.execute(command).await,
            Err(error) => report::invalid_command(&line, &error),
        }
    }
    for (name, client) in client.connections {
        client.close().await;
        report::closed(&name);
    }
}

/// What is open.
#[derive(Default)]
struct ClientUnderTest {
    connections: HashMap<String, Client>,
    calls: HashMap<String, JoinHandle<()>>,
}

impl ClientUnderTest {
    async fn execute(&mut self, command: ClientCommand) {
        match command {
            ClientCommand::Connect(opening) => self.connect(opening).await,
            ClientCommand::Call(command) => self.call(command),
            ClientCommand::DropCall { call } => {
                if let Some(task) = self.calls.remove(&call) {
                    task.abort();
                    // Its end is the drop of the call.
                    let _ = task.await;
                }
                report::dropped(&call);
            }
            ClientCommand::AwaitEnd { connection } => {
                if let Some(client) = self.connections.get(&connection).cloned() {
                    tokio::spawn(async move {
                        client.closed().await;
                        report::gone(&connection);
                    });
                }
            }
            ClientCommand::Close { connection } => {
                if let Some(client) = self.connections.remove(&connection) {
                    client.close().await;
                }
                report::closed(&connection);
            }
        }
        self.calls.retain(|_, task| !task.is_finished());
    }

    async fn connect(&mut self, opening: ConnectCommand) {
        let name = opening.connection.clone();
        match connecting(opening).await {
            Ok(client) => {
                report::connected(&name, client.revision());
                self.connections.insert(name, client);
            }
            Err(error) => report::not_connected(&name, &error),
        }
    }

    fn call(&mut self, command: CallCommand) {
        let CallCommand { connection, call, tool, mut arguments, pad, deadline_ms, idempotent, progress } = command;
        let Some(client) = self.connections.get(&connection) else {
            return report::ended(&call, Err(&Error::usage("no such connection")));
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
            made = made.on_progress(move |progress| report::progress(&call, progress.progress));
        }
        // Here, and not in the task: calls are sent in the order of their commands.
        let pending = made.start();
        let name = call.clone();
        let task = tokio::spawn(async move {
            let ended = pending.await;
            report::ended(&call, ended.as_ref());
        });
        self.calls.insert(name, task);
    }
}

fn connecting(opening: ConnectCommand) -> ConnectBuilder {
    let connecting = match opening.to {
        Target::Command(words) => Client::connect(command(&words, opening.errors)),
        Target::Url(url) => {
            let mut target = HttpTarget::new(url);
            for (name, value) in &opening.headers {
                target = target.header(name, value);
            }
            if let Some(token) = opening.token {
                target = target.authorize(RetryAuthorizer::new(&token));
            }
            Client::connect(target)
        }
    };
    let connecting = match opening.reconnect {
        None => connecting,
        Some(0) => connecting.reconnect(ReconnectPolicy::never()),
        // Short pauses, so that a table of many losses does not last for minutes.
        Some(attempts) => connecting.reconnect(
            ReconnectPolicy::default()
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

fn command(words: &[String], errors: StderrMode) -> Command {
    let (program, arguments) = words.split_first().map_or(("", [].as_slice()), |(first, rest)| (first.as_str(), rest));
    // Short, so that a table of many endings does not last for minutes.
    let patience = Duration::from_millis(300);
    let command = Command::new(program).args(arguments).leave_within(patience).terminate_within(patience);
    match errors {
        StderrMode::Log => command,
        StderrMode::Lines => command.on_stderr_line(|line| drop(line.to_owned())),
        StderrMode::Stuck => command.on_stderr_line(|_| std::thread::park()),
        StderrMode::Null => command.stderr_null(),
    }
}
