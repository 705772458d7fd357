//! One server at one n: a process of its own that is killed when its time budget is over.

use crate::effort::Effort;
use crate::pipe::Pipe;
use crate::servers::{Server, Transport};
use bench_kit::endpoint::Endpoint;
use bench_kit::process::Subject;
use std::io;

/// One server at one n.
pub(crate) struct Trial<'a> {
    pub(crate) server: &'a Server,
    pub(crate) n: usize,
    pub(crate) effort: &'a Effort,
}

impl Trial<'_> {
    /// Starts the server on pipes, with that many tools besides those that are always there, and opens the connection.
    /// The process is killed at the end: how it would end by itself is not measured.
    pub(crate) fn over_pipes(
        &self,
        tools: usize,
        measure: impl FnOnce(&Subject, &mut Pipe) -> io::Result<f64>,
    ) -> io::Result<f64> {
        let mut command = self.server.command(Transport::Stdio, tools);
        let (subject, input, output) = Subject::start(self.server.name(), &mut command, self.effort.budget)?;
        let watch = subject.watch();
        let outcome = Pipe::open(input, output).and_then(|mut pipe| measure(&subject, &mut pipe));
        watch.end("on pipes", outcome)
    }

    /// Starts the server on HTTP. The process is killed at the end, as with pipes.
    pub(crate) fn over_http(&self, measure: impl FnOnce(&Endpoint) -> io::Result<f64>) -> io::Result<f64> {
        let mut command = self.server.command(Transport::Http, 0);
        let endpoint = Endpoint::start(self.server.name(), &mut command, self.effort.budget)?;
        let watch = endpoint.subject.watch();
        watch.end("on HTTP", measure(&endpoint))
    }
}
