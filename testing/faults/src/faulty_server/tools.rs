//! What a server that misbehaves does to a call, by the name of the tool.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use serde_json::Value;

use super::streams::{complain, die, say};
use super::{FaultyServer, OFFSPRING_MODE, behavior};
use crate::failure::{Verdict, fail};

impl FaultyServer {
    pub(super) fn called(&mut self, id: &str, params: &Value) -> Verdict {
        let (tool, arguments) = (params["name"].as_str().unwrap_or_default(), &params["arguments"]);
        let text = |name: &str| arguments[name].as_str().unwrap_or_default();
        self.note(&format!("called {} {id}", text("mark")))?;
        match tool {
            "echo" => say(self.answer(id, text("text")).as_bytes())?,
            "die" => self.die(id, text("phase"), text("by"))?,
            "die_once" if self.noted(&format!("called {} ", text("mark")))? == 1 => die(text("by"))?,
            "die_once" => say(self.answer(id, "again").as_bytes())?,
            "hang" => {}
            "late" => self.late.push(id.to_owned()),
            "say" => {
                say(&bytes(text("front"), id))?;
                let times = arguments["times"].as_u64().unwrap_or(0);
                let repeated = bytes(text("repeat"), id);
                // In pieces: the huge ones should not be huge here.
                let piece = repeated.repeat(usize::try_from(times).unwrap_or(0).min(1024));
                for _ in 0..times / 1024 {
                    say(&piece)?;
                }
                say(&bytes(text("back"), id))?;
            }
            "say_in_pieces" => {
                for piece in arguments["pieces"].as_array().into_iter().flatten() {
                    say(&bytes(piece.as_str().unwrap_or_default(), id))?;
                }
            }
            "close_output" => {
                // Standard output is replaced by one that is not read.
                let nowhere = std::fs::File::options().write(true).open("/dev/null")?;
                rustix::stdio::dup2_stdout(&nowhere)?;
            }
            "flood" => self.flood(id, arguments)?,
            "fork" => self.fork(id, text("kind"))?,
            _ => fail!("no tool {tool}"),
        }
        if self.behavior == behavior::ONE_CALL {
            die("exit")?;
        }
        Ok(())
    }

    fn die(&self, id: &str, phase: &str, by: &str) -> Verdict {
        let answer = self.answer(id, "last words");
        let bytes = answer.as_bytes();
        match phase {
            "after_reading" => {}
            "in_the_answer" => say(&bytes[..bytes.len() / 2])?,
            "before_the_newline" => say(&bytes[..bytes.len() - 1])?,
            "after_the_answer" => say(bytes)?,
            _ => fail!("no phase {phase}"),
        }
        die(by)
    }

    /// Complains for megabytes, then answers.
    fn flood(&self, id: &str, arguments: &Value) -> Verdict {
        let end = if arguments["lines"] == true { b'\n' } else { b'.' };
        let mut piece = vec![b'!'; 1023];
        piece.push(end);
        let piece = piece.repeat(64);
        for _ in 0..arguments["mib"].as_u64().unwrap_or(0) * 16 {
            complain(&piece)?;
        }
        say(self.answer(id, "flooded").as_bytes())
    }

    /// Starts a process that has all of our streams, and says which.
    fn fork(&self, id: &str, kind: &str) -> Verdict {
        let this = std::env::current_exe()?;
        let mut command = match kind {
            "stubborn" => {
                let mut command = Command::new("sh");
                command.args(["-c", "trap '' TERM; exec \"$0\" \"$@\""]).arg(this);
                command
            }
            _ => Command::new(this),
        };
        command.args([OFFSPRING_MODE, &self.journal_path]);
        if kind == "escaped" {
            command.process_group(0);
        }
        let offspring = command.spawn()?;
        say(self.answer(id, &offspring.id().to_string()).as_bytes())
    }
}

/// The bytes that a text stands for: each character is one, and `@` is the id of the call.
fn bytes(text: &str, id: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for letter in text.chars() {
        match u8::try_from(u32::from(letter)) {
            Ok(b'@') => bytes.extend_from_slice(id.as_bytes()),
            Ok(byte) => bytes.push(byte),
            Err(_) => bytes.extend_from_slice(letter.to_string().as_bytes()),
        }
    }
    bytes
}
