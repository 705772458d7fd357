//! The server that is measured: the tools of the others, on Streamable HTTP.

use bench_kit::endpoint::{PATH, announce, end_with_input};
use clap::{Parser, ValueEnum};
use std::net::TcpListener;
use std::time::Duration;
use steadfast::prelude::*;
use steadfast::transport::http::{HttpServerOptions, HttpService};

#[derive(Parser)]
struct Options {
    /// Who accepts connections.
    #[arg(long, default_value = "own")]
    mount: Mount,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mount {
    /// `serve_http`.
    Own,
    /// The tower service in an axum router.
    Axum,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let options = Options::parse();
    end_with_input();
    let listener = TcpListener::bind("127.0.0.1:0")?;
    announce(listener.local_addr()?)?;
    match options.mount {
        Mount::Own => Reference.serve_http_on(listener).path(PATH).await?,
        Mount::Axum => {
            use axum::serve::ListenerExt;
            listener.set_nonblocking(true)?;
            let listener = tokio::net::TcpListener::from_std(listener)?.tap_io(|stream| {
                // Without it events wait for acknowledgements; a stream that is closed already needs it no more.
                let _ = stream.set_nodelay(true);
            });
            let service = HttpService::new(Reference, HttpServerOptions::new());
            axum::serve(listener, axum::Router::new().route_service(PATH, service)).await?;
        }
    }
    Ok(())
}

struct Reference;

#[server(name = "steadfast")]
impl Reference {
    /// Adds two integers
    #[tool]
    async fn add(
        &self,
        /// The first number.
        a: i64,
        /// The second number.
        b: i64,
    ) -> String {
        a.wrapping_add(b).to_string()
    }

    /// Answers with that much text
    #[tool]
    async fn blob(
        &self,
        /// How much.
        bytes: usize,
    ) -> String {
        "x".repeat(bytes)
    }

    /// Waits, and answers
    #[tool]
    async fn wait(
        &self,
        /// How long.
        ms: u64,
    ) -> String {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        "waited".to_owned()
    }

    /// Reports progress, waits, and answers
    #[tool]
    async fn report(
        &self,
        /// How long.
        ms: u64,
        ctx: Context,
    ) -> String {
        ctx.progress_of(1.0, 2.0);
        tokio::time::sleep(Duration::from_millis(ms)).await;
        "reported".to_owned()
    }
}
