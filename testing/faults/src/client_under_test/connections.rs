//! Connections of the client under test, and how a faulty server is started for one.

use serde_json::{Value, json};

use super::ClientUnderTest;
use super::call_result::CallResult;
use crate::client_under_test::journal::Journal;
use crate::failure::{Verdict, fail};
use crate::faulty_server::{SERVER_MODE, behavior};
use crate::limits::CLIENT_DEADLINE_MS;

/// A connection of the client under test's to a fault server on stdio.
pub(crate) struct StdioConnection {
    pub(crate) name: String,
    pub(crate) journal: Journal,
}

/// How to start a fault server.
#[derive(Clone, Debug)]
pub(crate) struct FaultyServerOptions {
    pub(crate) behavior: &'static str,
    /// What the client does with its standard error.
    pub(crate) errors: &'static str,
    /// SIGTERM has no effect on it.
    pub(crate) deaf_to_term: bool,
    pub(crate) opening_ms: u64,
    /// How often the client starts it again.
    pub(crate) reconnect: u32,
}

impl FaultyServerOptions {
    pub(crate) fn with(behavior: &'static str) -> Self {
        Self { behavior, errors: "log", deaf_to_term: false, opening_ms: CLIENT_DEADLINE_MS, reconnect: 0 }
    }

    pub(crate) fn honest() -> Self {
        Self::with(behavior::HONEST)
    }
}
impl ClientUnderTest {
    /// Connects to a fault server on stdio, which has to work.
    pub(crate) fn connect(&mut self, options: &FaultyServerOptions) -> Verdict<StdioConnection> {
        let connection = self.begin_connect(options)?;
        self.connected(&connection.name)?;
        Ok(connection)
    }

    /// The same for an opening that must fail.
    pub(crate) fn fail_to_connect(&mut self, options: &FaultyServerOptions) -> Verdict<(StdioConnection, CallResult)> {
        let connection = self.begin_connect(options)?;
        let result = self.not_connected(&connection.name)?;
        Ok((connection, result))
    }

    pub(crate) fn begin_connect(&mut self, options: &FaultyServerOptions) -> Verdict<StdioConnection> {
        let name = self.fresh("connection");
        let journal = Journal::new(self.folder.join(format!("{name}.journal")));
        let mut words = Vec::new();
        if options.deaf_to_term {
            words.extend(["sh", "-c", "trap '' TERM; exec \"$0\" \"$@\""].map(str::to_owned));
        }
        words.push(self.server_program.display().to_string());
        words.extend([SERVER_MODE, &journal.path(), self.era.revision(), options.behavior].map(str::to_owned));
        self.command(
            &json!({ "do": "connect", "connection": name, "to": { "command": words }, "errors": options.errors,
            "revision": self.era.revision(), "opening_ms": options.opening_ms, "reconnect": options.reconnect }),
        )?;
        Ok(StdioConnection { name, journal })
    }

    /// Connects to a URL with more settings: `headers`, `token`, `reconnect`. It does not reconnect by default.
    pub(crate) fn begin_connect_to(&mut self, url: &str, more: &Value) -> Verdict<String> {
        let name = self.fresh("connection");
        let mut command = json!({ "do": "connect", "connection": name, "to": { "url": url },
            "revision": self.era.revision(), "opening_ms": CLIENT_DEADLINE_MS, "reconnect": 0 });
        for (member, value) in more.as_object().into_iter().flatten() {
            command[member.as_str()] = value.clone();
        }
        self.command(&command)?;
        Ok(name)
    }

    pub(crate) fn connect_to(&mut self, url: &str, more: &Value) -> Verdict<String> {
        let name = self.begin_connect_to(url, more)?;
        self.connected(&name)?;
        Ok(name)
    }

    fn connected(&mut self, name: &str) -> Verdict {
        match self.opened(name)? {
            Ok(()) => {
                self.open.push(name.to_owned());
                Ok(())
            }
            Err(ended) => fail!("it could not connect: {ended:?}"),
        }
    }

    pub(crate) fn not_connected(&mut self, name: &str) -> Verdict<CallResult> {
        let Err(ended) = self.opened(name)? else {
            self.open.push(name.to_owned());
            fail!("it connected")
        };
        Ok(ended)
    }

    fn opened(&self, name: &str) -> Verdict<Result<(), CallResult>> {
        self.output.wait("an opening to end", |line| {
            if line["connected"] == name {
                return Some(Ok(()));
            }
            (line["not_connected"] == name).then(|| Err(CallResult::of(line)))
        })
    }

    /// Closes a connection.
    pub(crate) fn close(&mut self, name: &str) -> Verdict {
        self.command(&json!({ "do": "close", "connection": name }))?;
        self.open.retain(|open| open != name);
        self.output.wait("a connection to close", |line| (line["closed"] == name).then_some(()))
    }

    /// Waits until a connection has ended by itself.
    pub(crate) fn gone(&mut self, name: &str) -> Verdict {
        self.command(&json!({ "do": "await_end", "connection": name }))?;
        self.output.wait("a connection to end", |line| (line["gone"] == name).then_some(()))
    }
}
