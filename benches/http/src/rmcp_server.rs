//! The peer to beat: a server on rmcp 3.8.0 with the same tools.
//!
//! It is written the way rmcp's own documentation writes one, except where something that its users can do is faster: the
//! router is built once and shared, and an answer that is alone is JSON instead of a stream. It never carries a setting
//! that would slow rmcp down, nor a hand-written path that its users would not have.

use bench_kit::endpoint::{PATH, announce, end_with_input};
use clap::Parser;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler, schemars, tool, tool_handler, tool_router};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

#[derive(Parser)]
struct Options {
    /// Leaves TCP_NODELAY off, as rmcp's examples do.
    #[arg(long)]
    nagle: bool,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    use axum::serve::ListenerExt;
    let Options { nagle } = Options::parse();
    end_with_input();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    announce(listener.local_addr()?)?;
    let listener = listener.tap_io(move |stream| {
        // A stream that is closed already needs it no more.
        let _ = stream.set_nodelay(!nagle);
    });
    let server = Reference { tool_router: Arc::new(Reference::tool_router()) };
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default().with_json_response(true),
    );
    axum::serve(listener, axum::Router::new().route_service(PATH, service)).await?;
    Ok(())
}

#[derive(Clone)]
struct Reference {
    tool_router: Arc<ToolRouter<Self>>,
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
    /// How much.
    bytes: usize,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Wait {
    /// How long.
    ms: u64,
}

#[tool_router]
impl Reference {
    #[tool(description = "Adds two integers")]
    async fn add(&self, Parameters(Add { a, b }): Parameters<Add>) -> String {
        a.wrapping_add(b).to_string()
    }

    #[tool(description = "Answers with that much text")]
    async fn blob(&self, Parameters(Blob { bytes }): Parameters<Blob>) -> String {
        "x".repeat(bytes)
    }

    #[tool(description = "Waits, and answers")]
    async fn wait(&self, Parameters(Wait { ms }): Parameters<Wait>) -> String {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        "waited".to_owned()
    }

    #[tool(description = "Reports progress, waits, and answers")]
    async fn report(&self, Parameters(Wait { ms }): Parameters<Wait>, context: RequestContext<RoleServer>) -> String {
        if let Some(token) = context.meta.get_progress_token() {
            let progress = ProgressNotificationParam::new(token, 1.0).with_total(2.0);
            // A client that is gone is none of a tool's business.
            let _ = context.peer.notify_progress(progress).await;
        }
        tokio::time::sleep(Duration::from_millis(ms)).await;
        "reported".to_owned()
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Reference {}
