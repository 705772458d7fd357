//! What a call costs whose argument, and whose answer, has n bytes.

use crate::pipe::Call;
use crate::trial::Trial;
use std::io;

/// A call costs something of its own and something for each byte, so it is divided by (1 + size in KiB): small sizes
/// show the one, large sizes the other.
pub(super) fn measure(trial: &Trial<'_>) -> io::Result<f64> {
    let cost = trial.over_pipes(0, |server, pipe| {
        let echo = Call::echo("echo", &"x".repeat(trial.n));
        pipe.call(&echo)?;
        server.settle()?;
        trial.effort.cpu_per_call(server, || pipe.call(&echo))
    })?;
    Ok(cost / (1.0 + trial.n as f64 / 1024.0))
}
