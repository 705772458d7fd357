//! What a call costs beside n others that are not answered yet, on one connection.

use crate::http::request::SHORT_TEXT;
use crate::pipe::Call;
use crate::trial::Trial;
use serde_json::json;
use std::io;

/// How many calls are sent before an answer is waited for: with refusals of all of them, the pipes still have room.
const BATCH: usize = 250;

/// Longer than the time budget: none of them is answered before the process ends.
const SLEEP_MILLISECONDS: u64 = 600_000;

pub(super) fn measure(trial: &Trial<'_>) -> io::Result<f64> {
    trial.over_pipes(0, |server, pipe| {
        let sleep = Call::new("sleep", &json!({"ms": SLEEP_MILLISECONDS}), "slept");
        let echo = Call::echo("echo", SHORT_TEXT);
        let mut rest = trial.n;
        while rest > 0 {
            let batch = rest.min(BATCH);
            pipe.send(&sleep, batch)?;
            // A refused `sleep` would be answered before this.
            pipe.call(&echo)?;
            rest -= batch;
        }
        server.settle()?;
        trial.effort.cpu_per_call(server, || pipe.call(&echo))
    })
}
