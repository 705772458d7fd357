//! The server that is measured: as many tools as it is told, on stdio or on Streamable HTTP.
//!
//! Its limits are so high that the bench reaches its largest n, and its timeouts so long that none of them ends
//! anything while the bench measures.

use bench_kit::endpoint::{PATH, announce, end_with_input};
use clap::{Parser, ValueEnum};
use schemars::JsonSchema;
use serde::Deserialize;
use std::net::TcpListener;
use std::time::Duration;
use steadfast::prelude::*;
use steadfast::transport::http::HttpServerOptions;
use steadfast::{Error, Limits};

#[derive(Parser)]
struct Options {
    /// How many tools there are, named `tool_0` and so on, besides those that are always there.
    #[arg(long, default_value_t = 0)]
    tools: usize,

    /// Where clients connect.
    #[arg(long, default_value = "stdio")]
    transport: Transport,
}

#[derive(Clone, Copy, ValueEnum)]
enum Transport {
    Stdio,
    Http,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let options = Options::parse();
    let server = server(options.tools)?;
    match options.transport {
        Transport::Stdio => server.serve_stdio().limits(limits()).await?,
        Transport::Http => {
            end_with_input();
            let listener = TcpListener::bind("127.0.0.1:0")?;
            announce(listener.local_addr()?)?;
            server.serve_http_on(listener).path(PATH).options(http_options()).await?;
        }
    }
    Ok(())
}

fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.message_bytes = 64 << 20;
    limits.outbox_bytes = 64 << 20;
    limits.in_flight = 1_000_000;
    limits.in_flight_bytes = 1 << 30;
    limits.subscriptions = 1_000_000;
    limits
}

fn http_options() -> HttpServerOptions {
    let minutes = Duration::from_secs(600);
    HttpServerOptions::new()
        .limits(limits())
        .max_sessions(1_000_000)
        .max_connections(1_000_000)
        .head_timeout(minutes)
        .comment_interval(minutes)
}

struct Growth;

#[server(name = "steadfast")]
impl Growth {
    /// Says the text back
    #[tool]
    async fn echo(
        &self,
        /// What to say back.
        text: String,
    ) -> String {
        text
    }

    /// Sleeps, and answers
    #[tool]
    async fn sleep(
        &self,
        /// How long.
        ms: u64,
    ) -> String {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        "slept".to_owned()
    }

    /// Changes the resource
    #[tool]
    async fn touch(&self, ctx: Context) -> String {
        ctx.resource_updated("growth://one");
        "touched".to_owned()
    }

    /// The resource that changes
    #[resource("growth://one")]
    async fn one(&self) -> String {
        "one".to_owned()
    }
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// What to say back.
    text: String,
}

/// The server with `tools` more tools, each of which says its text back like `echo`.
fn server(tools: usize) -> Result<Server, Error> {
    let numbered = (0..tools).map(|number| {
        ServerTool::new(format!("tool_{number}"))
            .description("Says the text back")
            .input::<Echo>()
            .handler(|Echo { text }: Echo| async move { text })
    });
    Growth.into_server().merge(Server::builder("numbered", "1.0.0").tools(numbered))
}
