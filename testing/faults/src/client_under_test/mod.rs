//! The client under test: a program on the library that takes orders from the check, and reports the outcomes.
//!
//! It is judged by what it says, by what the fault servers saw, and by what the kernel says that it holds.

mod call_result;
mod connections;
mod output;

pub(crate) mod journal;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::check_context::CheckContext;
use crate::era::Era;
use crate::failure::{Failure, Verdict, ensure, fail};
use crate::limits::{CHECK_TIMEOUT, CLIENT_DEADLINE_MS};
use crate::process::descendants;
use crate::process::resources::Resources;
use crate::process::standard_error::{StderrMode, StderrReader, crash_line};
pub(crate) use call_result::CallResult;
pub(crate) use connections::{FaultyServerOptions, StdioConnection};
use output::ReceivedLines;

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
        let call = self.call(connection, "echo", json!({ "text": "round trip" }))?;
        self.ended(&call)?.done("round trip").map_err(|failure| failure.at("another call"))
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
