//! The client under test: a program on the library that takes orders from the check, and reports the outcomes.
//!
//! It is judged by what it says, by what the fault servers saw, and by what the kernel says that it holds.

pub(crate) mod journal;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::check_context::CheckContext;
use crate::client_under_test::journal::Journal;
use crate::era::Era;
use crate::failure::{Failure, Verdict, ensure, fail};
use crate::faulty_server::{SERVER_MODE, behavior};
use crate::limits::{CHECK_TIMEOUT, CLIENT_DEADLINE_MS};
use crate::process::descendants;
use crate::process::resources::Resources;
use crate::process::standard_error::{StderrMode, StderrReader, crash_line};

/// A running client. Dropping it kills it.
pub(crate) struct ClientUnderTest {
    child: Child,
    input: Option<ChildStdin>,
    output: Arc<ReceivedLines>,
    errors: StderrReader,
    pub(crate) era: Era,
    /// This very program, to be started as a server.
    server_program: PathBuf,
    folder: PathBuf,
    /// What it held once it had done everything once.
    baseline: Option<Resources>,
    open: Vec<String>,
    calls: Vec<String>,
    next: u64,
}

/// The lines that the client under test has written so far.
#[derive(Default)]
struct ReceivedLines {
    lines: Mutex<(Vec<Value>, bool)>,
    more: Condvar,
}

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

/// How a call, or an opening, ended.
#[derive(Clone, Debug)]
pub(crate) struct CallResult {
    /// `Done`, or the outcome of an error.
    pub(crate) ends: String,
    /// The kind of the error.
    pub(crate) kind: String,
    pub(crate) text: String,
    words: String,
}

impl ClientUnderTest {
    /// Starts it, and has it do everything once with a server that does nothing wrong.
    pub(crate) fn start(context: &mut CheckContext) -> Verdict<Self> {
        let mut client = Self::begin(context)?;
        let connection = client.connect(&FaultyServerOptions::honest())?;
        client.works(&connection.name)?;
        client.close(&connection.name)?;
        client.take_baseline()?;
        Ok(client)
    }

    /// Starts it, and no more.
    pub(crate) fn begin(context: &mut CheckContext) -> Verdict<Self> {
        let mut command = Command::new(context.client_under_test());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env_remove("RUST_LOG").env_remove("RUST_BACKTRACE").env_remove("TOKIO_WORKER_THREADS");
        let mut child = command.spawn().map_err(|error| Failure(format!("the client under test: {error}")))?;
        let input = child.stdin.take();
        let stdout = child.stdout.take().ok_or_else(|| Failure("the client under test has no pipe".to_owned()))?;
        let errors = StderrReader::new(child.stderr.take(), StderrMode::Drain)?;
        let output = Arc::new(ReceivedLines::default());
        let lines = Arc::clone(&output);
        std::thread::Builder::new().name("subject".to_owned()).spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                lines.take(&line);
            }
            lines.end();
        })?;
        context.show_errors(&errors);
        Ok(Self {
            child,
            input,
            output,
            errors,
            era: context.era,
            server_program: context.client_program.clone(),
            folder: context.folder().to_owned(),
            baseline: None,
            open: Vec::new(),
            calls: Vec::new(),
            next: 0,
        })
    }

    /// What it holds now is what it may hold in the end.
    pub(crate) fn take_baseline(&mut self) -> Verdict {
        self.baseline = Some(Resources::settled(self.process())?);
        Ok(())
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn baseline(&self) -> Verdict<Resources> {
        self.baseline.ok_or_else(|| Failure("nothing was measured".to_owned()))
    }

    fn fresh(&mut self, what: &str) -> String {
        self.next += 1;
        format!("{what}-{}", self.next)
    }

    fn command(&mut self, command: &Value) -> Verdict {
        let Some(input) = &mut self.input else { fail!("the client under test was already told to exit") };
        Ok(input.write_all(format!("{command}\n").as_bytes())?)
    }

    // Connections.

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

    // Calls.

    /// Calls a tool, with a deadline that no check comes to.
    pub(crate) fn call(&mut self, connection: &str, tool: &str, arguments: Value) -> Verdict<String> {
        self.call_with(connection, tool, arguments, &json!({}))
    }

    /// The same with more to say of how: `deadline_ms`, `pad`, `progress`, `idempotent`. The server finds the name of the call among its
    /// arguments, under `mark`.
    pub(crate) fn call_with(
        &mut self,
        connection: &str,
        tool: &str,
        mut arguments: Value,
        more: &Value,
    ) -> Verdict<String> {
        let call = self.fresh("call");
        arguments["mark"] = Value::from(call.as_str());
        let mut command = json!({ "do": "call", "connection": connection, "call": call, "tool": tool,
            "arguments": arguments, "deadline_ms": CLIENT_DEADLINE_MS });
        for (member, value) in more.as_object().into_iter().flatten() {
            command[member.as_str()] = value.clone();
        }
        self.command(&command)?;
        self.calls.push(call.clone());
        Ok(call)
    }

    /// Waits for the end of a call.
    pub(crate) fn ended(&self, call: &str) -> Verdict<CallResult> {
        self.output.wait(&format!("{call} to end"), |line| (line["call"] == call).then(|| CallResult::of(line)))
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&self, call: &str) -> bool {
        self.output.lines.lock().unwrap_or_else(PoisonError::into_inner).0.iter().any(|line| line["call"] == call)
    }

    /// Drops a call.
    pub(crate) fn drop_call(&mut self, call: &str) -> Verdict {
        self.command(&json!({ "do": "drop_call", "call": call }))?;
        self.output.wait("a call to be dropped", |line| (line["dropped"] == call).then_some(()))
    }

    /// An `echo` there and back: the connection works.
    pub(crate) fn works(&mut self, connection: &str) -> Verdict {
        let call = self.call(connection, "echo", json!({ "text": "fence" }))?;
        self.ended(&call)?.done("fence").map_err(|failure| failure.at("another call"))
    }

    /// Nothing works any more, and the client knows it: a call is not even sent.
    pub(crate) fn is_over(&mut self, connection: &str) -> Verdict {
        let call = self.call(connection, "echo", json!({ "text": "too late" }))?;
        self.ended(&call)?.is("NotSent", &["Closed"]).map_err(|failure| failure.at("a call after the end"))
    }

    // The end.

    /// Closes everything. It has to hold no more than in the beginning, leave no process running, have ended each call
    /// once, and exit with code 0 and without output that looks like a crash.
    pub(crate) fn finish(mut self, context: &mut CheckContext) -> Verdict {
        for name in std::mem::take(&mut self.open) {
            self.close(&name)?;
        }
        if let Some(baseline) = self.baseline {
            let now = baseline.are_back(self.process())?;
            let grown = now.resident.saturating_sub(baseline.resident);
            context.note(format!("{} descriptors, {} threads", now.descriptors, now.threads));
            context.note_memory("grown by", grown);
        }
        descendants::none_left(&self.folder)?;
        descendants::all_reaped(self.process())?;
        drop(self.input.take());
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            ensure!(start.elapsed() < CHECK_TIMEOUT, "the client under test does not end");
            std::thread::sleep(Duration::from_millis(1));
        };
        self.errors.finish();
        if let Some(line) = crash_line(&self.errors.text()) {
            fail!("standard error looks like a crash: {line}");
        }
        ensure!(status.code() == Some(0), "the client under test ended with {status}");
        self.judge()
    }

    /// Each call ended once, or was dropped before.
    fn judge(&self) -> Verdict {
        self.output.wait_for_end()?;
        let (lines, _) = &*self.output.lines.lock().unwrap_or_else(PoisonError::into_inner);
        for line in lines {
            ensure!(line["invalid_command"].is_null(), "invalid command: {line}");
        }
        for call in &self.calls {
            let ends = lines.iter().filter(|line| line["call"] == **call).count();
            let dropped = lines.iter().any(|line| line["dropped"] == **call);
            ensure!(ends == 1 || (ends == 0 && dropped), "{call} ended {ends} times");
        }
        Ok(())
    }
}

impl Drop for ClientUnderTest {
    fn drop(&mut self) {
        // An ended child gives an error here, which is what we want it to be.
        let _ = self.child.kill();
        let _ = self.child.wait();
        descendants::end_all(&self.folder);
    }
}

impl ReceivedLines {
    fn take(&self, line: &str) {
        let value = serde_json::from_str(line).unwrap_or_else(|_| json!({ "invalid_command": line }));
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).0.push(value);
        self.more.notify_all();
    }

    fn end(&self) {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        self.more.notify_all();
    }

    /// Waits for a line. Each is looked at once.
    fn wait<T>(&self, what: &str, mut look: impl FnMut(&Value) -> Option<T>) -> Verdict<T> {
        let deadline = Instant::now() + CHECK_TIMEOUT;
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let mut looked = 0;
        loop {
            if let Some(found) = lines.0[looked..].iter().find_map(&mut look) {
                return Ok(found);
            }
            looked = lines.0.len();
            let left = deadline.saturating_duration_since(Instant::now());
            ensure!(!lines.1, "the client under test ended while the check waited for {what}");
            ensure!(!left.is_zero(), "waited {CHECK_TIMEOUT:?} for {what}");
            lines = self.more.wait_timeout(lines, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn wait_for_end(&self) -> Verdict {
        let start = Instant::now();
        while !self.lines.lock().unwrap_or_else(PoisonError::into_inner).1 {
            ensure!(
                start.elapsed() < CHECK_TIMEOUT,
                "the output of the client under test is open although it has ended"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

impl CallResult {
    fn of(line: &Value) -> Self {
        let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        Self { ends: text("ends"), kind: text("kind"), text: text("text"), words: text("words") }
    }

    /// It has to have been answered with that text.
    pub(crate) fn done(&self, text: &str) -> Verdict {
        ensure!(self.ends == "Done" && self.text == text, "expected the answer {text:?}: {self}");
        Ok(())
    }

    /// It has to have failed with that outcome, and be an error of one of these kinds.
    pub(crate) fn is(&self, outcome: &str, kinds: &[&str]) -> Verdict {
        let right = self.ends == outcome && kinds.contains(&self.kind.as_str());
        ensure!(right, "expected {outcome} by {kinds:?}: {self}");
        Ok(())
    }
}

impl std::fmt::Display for CallResult {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {} {:?} {}", self.ends, self.kind, self.text, self.words)
    }
}
