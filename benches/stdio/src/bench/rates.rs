//! Requests per CPU second and per second, of every tool asked in every way.

use crate::child::{Server, Until};
use crate::contestants::Contestant;
use crate::options::Options;
use crate::workload::Tool;
use bench_kit::mode::Mode;
use bench_kit::rates;
use std::io;
use std::process::Command;
use std::time::Duration;

/// One tool asked in one way, of everyone.
pub(crate) struct Cell {
    pub(crate) tool: Tool,
    pub(crate) mode: Mode,
    pub(crate) rates: rates::Cell,
}

/// A server hung if a step takes longer than this.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn measure(contestants: &[Contestant], options: &Options) -> io::Result<Vec<Cell>> {
    let mut cells = Vec::new();
    for &tool in &options.tools {
        for mode in Mode::ALL {
            let drive = |turn: usize| drive(&contestants[turn], tool, mode, options);
            let rates = rates::Cell::measure(contestants.len(), options.running.rounds(), drive)?;
            cells.push(Cell { tool, mode, rates });
        }
    }
    Ok(cells)
}

/// One contestant once, in a new process: where a process happens to lie in memory is worth a tenth and more.
fn drive(contestant: &Contestant, tool: Tool, mode: Mode, options: &Options) -> io::Result<rates::Taken> {
    let (window, slice) = (mode.window(options.window.into()), options.running.slice());
    let line = contestant.command_line(options.era, tool);
    let mut command = Command::new(&line[0]);
    command.args(&line[1..]);
    let patience = PATIENCE + slice;
    let mut server = Server::open(contestant.name(), &mut command, options.era, tool, patience)?;
    server.drive(window, Until::Elapsed(slice / 3))?;
    let taken = server.drive(window, Until::Elapsed(slice))?;
    server.end()?;
    Ok(taken)
}
