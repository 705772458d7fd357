//! The peer to beat: a server on rmcp 3.8.0 with the tools that the reference server has.
//!
//! It is written the way rmcp's own documentation writes one, except where a documented alternative is faster: the
//! router is kept in a field instead of being built again for each call, and `--transport pipes` uses the non-blocking
//! transport. It never carries a setting that would slow rmcp down, nor a hand-written path that its users would not
//! have.

use clap::{Parser, ValueEnum};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::transport::io::{stdio, stdio_pipes};
use rmcp::{ServerHandler, ServiceExt, schemars, tool, tool_handler, tool_router};
use serde::Deserialize;

#[derive(Parser)]
struct Options {
    /// Which of rmcp's two stdio transports to use.
    #[arg(long, default_value = "pipes")]
    transport: Transport,
    /// Which tokio runtime to run on; `multi` is what `#[tokio::main]` gives.
    #[arg(long, default_value = "multi")]
    threads: Threads,
}

#[derive(Clone, Copy, ValueEnum)]
enum Transport {
    /// `stdio`: each read and write on a blocking thread.
    Stdio,
    /// `stdio_pipes`: non-blocking pipes.
    Pipes,
}

#[derive(Clone, Copy, ValueEnum)]
enum Threads {
    Multi,
    Current,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let options = Options::parse();
    let mut runtime = match options.threads {
        Threads::Multi => tokio::runtime::Builder::new_multi_thread(),
        Threads::Current => tokio::runtime::Builder::new_current_thread(),
    };
    runtime.enable_all().build()?.block_on(serve(options.transport))
}

async fn serve(transport: Transport) -> Result<(), Failure> {
    let server = Reference::new();
    let running = match transport {
        Transport::Stdio => server.serve(stdio()).await?,
        Transport::Pipes => server.serve(stdio_pipes()).await?,
    };
    running.waiting().await?;
    Ok(())
}

#[derive(Clone)]
struct Reference {
    tool_router: ToolRouter<Self>,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Echo {
    /// What to say back.
    text: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Add {
    /// The first number.
    a: i64,
    /// The second number.
    b: i64,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Blob {
    /// How much text to answer with.
    #[serde(default = "Blob::usual")]
    bytes: usize,
}

impl Blob {
    const fn usual() -> usize {
        65_536
    }
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Sleep {
    /// How long.
    ms: u64,
}

#[tool_router]
impl Reference {
    fn new() -> Self {
        Self { tool_router: Self::tool_router() }
    }

    #[tool(description = "Says the text back")]
    async fn echo(&self, Parameters(Echo { text }): Parameters<Echo>) -> String {
        text
    }

    #[tool(description = "Adds two integers")]
    async fn add(&self, Parameters(Add { a, b }): Parameters<Add>) -> String {
        a.wrapping_add(b).to_string()
    }

    #[tool(description = "Waits, and answers")]
    async fn sleep(&self, Parameters(Sleep { ms }): Parameters<Sleep>) -> String {
        tokio::time::sleep(std::time::Duration::from_millis(ms)).await;
        "slept".to_owned()
    }

    #[tool(description = "Answers with that much text")]
    async fn blob(&self, Parameters(Blob { bytes }): Parameters<Blob>) -> String {
        "x".repeat(bytes)
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Reference {}
