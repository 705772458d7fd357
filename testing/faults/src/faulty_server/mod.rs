//! A server that misbehaves on stdio: this program starts itself in this mode, and the client under test connects to it.
//!
//! How it begins is a behavior that it is started with; what it does to a call is named by the tool that is called. What it
//! saw goes into a journal, a line each, so that a check knows what reached it.

mod streams;
mod tools;

use std::fs::File;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use serde_json::{Value, json};

use crate::failure::{Failure, Verdict, fail};
use crate::limits::LONG_MS;
use streams::{LineReader, die, say};

/// The first argument that turns the command into such a server: `JOURNAL REVISION BEHAVIOR` follow.
pub const SERVER_MODE: &str = "--play-server";

/// The same for a process that such a server starts and does not stop. `JOURNAL` follows.
pub const OFFSPRING_MODE: &str = "--play-offspring";

/// What a server does apart from its tools, as the last argument names it.
pub(crate) mod behavior {
    /// Nothing wrong by itself.
    pub(crate) const HONEST: &str = "honest";
    /// Ends before it reads anything.
    pub(crate) const GONE_AT_ONCE: &str = "gone_at_once";
    /// Ends when it has read how the conversation opens.
    pub(crate) const GONE_IN_OPENING: &str = "gone_in_opening";
    /// Ends in the middle of its answer to that.
    pub(crate) const GONE_IN_OPENING_ANSWER: &str = "gone_in_opening_answer";
    /// Never answers the opening.
    pub(crate) const MUTE: &str = "mute";
    /// Answers the opening with something that is not an answer to it.
    pub(crate) const WRONG: &str = "wrong";
    /// Answers the opening among garbage.
    pub(crate) const NOISY: &str = "noisy";
    /// Ends once a call lies in its pipe, unread.
    pub(crate) const EXITS_UNREAD: &str = "exits_unread";
    /// The same by SIGKILL.
    pub(crate) const KILLED_UNREAD: &str = "killed_unread";
    /// Does not read any more once the conversation is open.
    pub(crate) const DEAF: &str = "deaf";
    /// Goes on when its standard input has ended.
    pub(crate) const STUBBORN: &str = "stubborn";
    /// Ends before it reads anything, unless it is the first of its kind.
    pub(crate) const ONLY_ONCE: &str = "only_once";
    /// Ends after each call that it has answered, to be started again.
    pub(crate) const ONE_CALL: &str = "one_call";
}

/// Plays the server until its standard input ends.
pub fn play_server(arguments: &[String]) -> ExitCode {
    let [journal, revision, behavior] = arguments else {
        eprintln!("expected JOURNAL REVISION BEHAVIOR");
        return ExitCode::FAILURE;
    };
    let outcome = FaultyServer::new(journal, revision, behavior).and_then(|mut server| server.run());
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

/// Plays a process that outlives its parent: it holds its inherited pipes, and does nothing.
pub fn play_offspring() -> ExitCode {
    rest();
    ExitCode::SUCCESS
}

/// Long enough for any check, and not for ever, should the check itself die first.
fn rest() {
    std::thread::sleep(Duration::from_millis(2 * LONG_MS));
}

struct FaultyServer {
    journal: File,
    /// For its offspring: by the path of the journal a check finds all processes that belong to it.
    journal_path: String,
    revision: String,
    behavior: String,
    /// Calls to answer when they are cancelled.
    late: Vec<String>,
}

impl FaultyServer {
    fn new(journal_path: &str, revision: &str, behavior: &str) -> Verdict<Self> {
        let journal = File::options().create(true).append(true).open(journal_path)?;
        Ok(Self {
            journal,
            journal_path: journal_path.to_owned(),
            revision: revision.to_owned(),
            behavior: behavior.to_owned(),
            late: Vec::new(),
        })
    }

    /// Writes down what was seen. Appending is atomic for so few bytes.
    fn note(&mut self, words: &str) -> Verdict {
        Ok(self.journal.write_all(format!("{words}\n").as_bytes())?)
    }

    /// How often something that begins like that was seen, by all who write into the journal.
    fn noted(&self, beginning: &str) -> Verdict<usize> {
        let text = std::fs::read_to_string(&self.journal_path)?;
        Ok(text.lines().filter(|line| line.starts_with(beginning)).count())
    }

    fn run(&mut self) -> Verdict {
        self.note(&format!("started {}", std::process::id()))?;
        let again = self.noted("started ")? > 1;
        if self.behavior == behavior::GONE_AT_ONCE || (again && self.behavior == behavior::ONLY_ONCE) {
            return Ok(());
        }
        // Byte by byte where something has to stay in the pipe.
        let careful =
            [behavior::EXITS_UNREAD, behavior::KILLED_UNREAD, behavior::DEAF].contains(&self.behavior.as_str());
        let mut input = LineReader::new(if careful { 1 } else { 64 * 1024 });
        while let Some(line) = input.line()? {
            let Ok(message) = serde_json::from_slice::<Value>(&line) else { fail!("the client wrote no JSON") };
            self.handle(&message)?;
        }
        self.note("end of input")?;
        if self.behavior == behavior::STUBBORN {
            rest();
        }
        Ok(())
    }

    fn handle(&mut self, message: &Value) -> Verdict {
        let id = message["id"].to_string();
        match message["method"].as_str() {
            Some("initialize") => self.open(
                &id,
                &json!({ "protocolVersion": self.revision, "capabilities": { "tools": {} },
                    "serverInfo": { "name": "play", "version": "1" } }),
            ),
            Some("server/discover") => {
                self.open(
                    &id,
                    &json!({ "resultType": "complete", "supportedVersions": [self.revision],
                        "capabilities": { "tools": {} } }),
                )?;
                self.opened()
            }
            Some("notifications/initialized") => self.opened(),
            Some("notifications/cancelled") => {
                let cancelled = message["params"]["requestId"].to_string();
                if self.late.contains(&cancelled) {
                    say(self.answer(&cancelled, "late").as_bytes())?;
                }
                self.note(&format!("cancelled {cancelled}"))
            }
            Some("tools/call") => self.called(&id, &message["params"]),
            _ => Ok(()),
        }
    }

    /// Answers the request that opens the conversation.
    fn open(&mut self, id: &str, result: &Value) -> Verdict {
        let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n");
        match self.behavior.as_str() {
            behavior::GONE_IN_OPENING => die("exit"),
            behavior::GONE_IN_OPENING_ANSWER => {
                say(&answer.as_bytes()[..answer.len() / 2])?;
                die("exit")
            }
            behavior::MUTE => Ok(()),
            behavior::WRONG => {
                say(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"shape\":7}}}}\n").as_bytes())
            }
            behavior::NOISY => {
                say(b"\n\xff\xfe\n{\"jsonrpc\":\n[]\nnull\nhello, I am a banner\n{\"jsonrpc\":\"2.0\",\"id\":424242,\"result\":{}}\n")?;
                say(answer.as_bytes())
            }
            _ => say(answer.as_bytes()),
        }
    }

    /// The conversation is open; what comes next are calls.
    fn opened(&mut self) -> Verdict {
        self.note("open")?;
        let by = match self.behavior.as_str() {
            behavior::EXITS_UNREAD => "exit",
            behavior::KILLED_UNREAD => "kill",
            behavior::DEAF => {
                rest();
                return Err(Failure("the check did not end this server in time".to_owned()));
            }
            _ => return Ok(()),
        };
        poll(&mut [PollFd::new(&rustix::stdio::stdin(), PollFlags::IN)], None)?;
        self.note("a call lies unread")?;
        die(by)
    }

    /// A good answer with that text.
    fn answer(&self, id: &str, text: &str) -> String {
        let mut result = json!({ "content": [{ "type": "text", "text": text }] });
        if self.revision.as_str() >= "2026" {
            result["resultType"] = Value::from("complete");
        }
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n")
    }
}
