//! The JSON that the benches write, brought into the one form of [`measurements`](super::measurements).
//!
//! It only names loads and contestants alike. It never computes anything.

use serde::Deserialize;

use super::measurements::{Contestant, Counted, CountedLoad, HttpRun, Load, Memory, Start, StdioRun};

/// `benches/stdio`: rates.
#[derive(Deserialize)]
pub(crate) struct StdioRates {
    revision: String,
    window: u32,
    cells: Vec<StdioCell>,
}

#[derive(Deserialize)]
struct StdioCell {
    tool: String,
    mode: String,
    servers: Vec<Contestant>,
}

impl From<StdioRates> for StdioRun {
    fn from(StdioRates { revision, window, cells }: StdioRates) -> Self {
        let load = |cell: StdioCell| Load { load: format!("{} {}", cell.tool, cell.mode), contestants: cell.servers };
        Self { revision, window, loads: cells.into_iter().map(load).collect() }
    }
}

/// `benches/stdio --callgrind`.
#[derive(Deserialize)]
pub(crate) struct StdioCounts {
    cells: Vec<StdioCountsCell>,
}

#[derive(Deserialize)]
struct StdioCountsCell {
    tool: String,
    mode: String,
    servers: Vec<Counted>,
}

impl From<StdioCounts> for Vec<CountedLoad> {
    fn from(counts: StdioCounts) -> Self {
        let load = |cell: StdioCountsCell| CountedLoad {
            load: format!("{} {}", cell.tool, cell.mode),
            contestants: cell.servers,
        };
        counts.cells.into_iter().map(load).collect()
    }
}

/// `benches/stdio --parts start,memory`.
#[derive(Deserialize)]
pub(crate) struct StdioStart {
    pub(crate) servers: Vec<Start>,
}

/// `benches/http --parts cpu,memory`.
#[derive(Deserialize)]
pub(crate) struct HttpRates {
    cpu: Vec<HttpLoad>,
    memory: Vec<Memory>,
}

#[derive(Deserialize)]
struct HttpLoad {
    load: String,
    of: HttpServers,
}

#[derive(Deserialize)]
struct HttpServers {
    servers: Vec<Contestant>,
}

impl From<HttpRates> for HttpRun {
    fn from(HttpRates { cpu, memory }: HttpRates) -> Self {
        let load = |of: HttpLoad| Load { load: of.load, contestants: of.of.servers };
        Self { loads: cpu.into_iter().map(load).collect(), session_memory: memory }
    }
}

/// `benches/http --callgrind`.
#[derive(Deserialize)]
pub(crate) struct HttpCounts {
    counts: Vec<HttpCountsLoad>,
}

#[derive(Deserialize)]
struct HttpCountsLoad {
    load: String,
    servers: Vec<Counted>,
}

impl From<HttpCounts> for Vec<CountedLoad> {
    fn from(counts: HttpCounts) -> Self {
        let load = |of: HttpCountsLoad| CountedLoad { load: of.load, contestants: of.servers };
        counts.counts.into_iter().map(load).collect()
    }
}

/// `benches/client`.
#[derive(Deserialize)]
pub(crate) struct ClientRates {
    transports: Vec<ClientTransport>,
}

#[derive(Deserialize)]
struct ClientTransport {
    transport: String,
    cells: Vec<ClientCell>,
}

#[derive(Deserialize)]
struct ClientCell {
    revision: String,
    mode: String,
    clients: Vec<Contestant>,
}

impl From<ClientRates> for Vec<Load> {
    fn from(rates: ClientRates) -> Self {
        let of_transport = |ClientTransport { transport, cells }: ClientTransport| {
            cells.into_iter().map(move |ClientCell { revision, mode, clients }| Load {
                load: format!("{transport} {revision} {mode}"),
                contestants: clients,
            })
        };
        rates.transports.into_iter().flat_map(of_transport).collect()
    }
}
