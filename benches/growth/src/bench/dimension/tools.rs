//! What a call costs of the last of n tools.

use crate::http::request::SHORT_TEXT;
use crate::pipe::Call;
use crate::trial::Trial;
use std::io;

pub(super) fn measure(trial: &Trial<'_>) -> io::Result<f64> {
    trial.over_pipes(trial.n, |server, pipe| {
        let last = Call::echo(&format!("tool_{}", trial.n - 1), SHORT_TEXT);
        pipe.call(&last)?;
        server.settle()?;
        trial.effort.cpu_per_call(server, || pipe.call(&last))
    })
}
