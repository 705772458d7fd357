//! A client that exists to be killed: this program starts itself in this mode, and the check kills it.
//!
//! It starts a server with pipes of its own, opens the conversation, makes calls that last, says so in one line, and
//! waits. With its death both pipes close, and nothing else happens to the server.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;

use crate::client::Client;
use crate::era::Era;
use crate::failure::{Failure, Verdict};
use crate::limits::{BLOCK_MS, LONG_MS};
use crate::process::launch::Launch;

/// The first argument that turns the command into such a client: `PROGRAM REVISION CLEANUP_LOG` follow.
pub const CLIENT_MODE: &str = "--play-client";

/// Plays the client until it is killed. Prints the process id of the server when its calls run.
pub fn play_client(arguments: &[String]) -> ExitCode {
    match play(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn play(arguments: &[String]) -> Verdict {
    let [program, revision, cleanup_log] = arguments else {
        return Err(Failure("expected PROGRAM REVISION CLEANUP_LOG".to_owned()));
    };
    let era = if revision == Era::V2026_07_28.revision() { Era::V2026_07_28 } else { Era::V2025_11_25 };
    let launch = Launch::new(Path::new(program)).cleanup_log(Path::new(cleanup_log));
    let mut client = Client::start(&launch, era)?;
    client.open()?;
    client.call("slow_cleanup", json!({ "ms": LONG_MS }))?;
    client.call("sleep", json!({ "ms": LONG_MS }))?;
    client.call("block_thread", json!({ "ms": BLOCK_MS }))?;
    client.let_them_run()?;
    println!("{}", client.server.process());
    std::io::stdout().flush()?;
    // Long enough for any check, and not for ever, should the check itself die first.
    std::thread::sleep(Duration::from_millis(2 * LONG_MS));
    Ok(())
}
