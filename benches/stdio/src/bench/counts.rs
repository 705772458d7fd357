//! Instructions and allocations per request, counted by valgrind.

use crate::child::{Server, Until};
use crate::contestants::Contestant;
use crate::options::Options;
use crate::workload::Tool;
use bench_kit::counts::{Cost, Count, Folder};
use bench_kit::mode::Mode;
use std::io;
use std::time::Duration;

/// One tool asked in one way, of everyone.
pub(crate) struct Cell {
    pub(crate) tool: Tool,
    pub(crate) mode: Mode,
    /// By contestant.
    pub(crate) costs: Vec<Cost>,
}

const PATIENCE: Duration = Duration::from_secs(300);

pub(crate) fn count(contestants: &[Contestant], options: &Options) -> io::Result<Vec<Cell>> {
    let folder = Folder::new(options.running.keep.as_deref())?;
    let mut cells = Vec::new();
    for &tool in &options.tools {
        for mode in Mode::ALL {
            let cost = |contestant| cost(contestant, tool, mode, &folder, options);
            let costs = contestants.iter().map(cost).collect::<io::Result<_>>()?;
            cells.push(Cell { tool, mode, costs });
        }
    }
    Ok(cells)
}

fn cost(contestant: &Contestant, tool: Tool, mode: Mode, folder: &Folder, options: &Options) -> io::Result<Cost> {
    let count = Count {
        folder,
        label: &format!("{}.{}.{}", contestant.name(), tool.name(), mode.name()),
        command_line: &contestant.command_line(options.era, tool),
        requests: match (options.running.smoke, tool) {
            (true, _) => (64, 128),
            (false, Tool::Blob) => (128, 512),
            (false, _) => (512, 2560),
        },
    };
    count.run(|command, requests| {
        let mut server = Server::open(contestant.name(), command, options.era, tool, PATIENCE)?;
        server.drive(mode.window(options.window.into()), Until::Answered(requests))?;
        server.end()
    })
}
