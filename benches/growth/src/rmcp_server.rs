//! The peer: a server on rmcp 3.8.0 with the same tools, on stdio or on Streamable HTTP.
//!
//! It is written the way rmcp's own documentation writes one, except where something that its users can do is faster:
//! the router is built once and shared, stdio is non-blocking pipes, and an HTTP answer that is alone is JSON instead
//! of a stream. Where rmcp has limits they are raised like those of the other server. It never carries a setting that
//! would slow rmcp down, nor a hand-written path that its users would not have.

use bench_kit::endpoint::{PATH, announce, end_with_input};
use clap::{Parser, ValueEnum};
use rmcp::handler::server::router::tool::{ToolRoute, ToolRouter};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{ServerCapabilities, ServerConfig, SubscriptionFilter};
use rmcp::service::SubscriptionContext;
use rmcp::transport::io::stdio_pipes;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, ServerHandler, ServiceExt, schemars, tool, tool_handler, tool_router};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

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
    let server = Growth::new(options.tools);
    match options.transport {
        Transport::Stdio => {
            server.serve(stdio_pipes()).await?.waiting().await?;
        }
        Transport::Http => serve_http(server).await?,
    }
    Ok(())
}

async fn serve_http(server: Growth) -> Result<(), Failure> {
    use axum::serve::ListenerExt;
    end_with_input();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    announce(listener.local_addr()?)?;
    let listener = listener.tap_io(|stream| {
        // A stream that is closed already needs it no more.
        let _ = stream.set_nodelay(true);
    });
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default()
            .with_json_response(true)
            .with_sse_keep_alive(Some(Duration::from_secs(600)))
            .with_max_request_body_bytes(64 << 20),
    );
    axum::serve(listener, axum::Router::new().route_service(PATH, service)).await?;
    Ok(())
}

const RESOURCE: &str = "growth://one";

#[derive(Clone)]
struct Growth {
    tool_router: Arc<ToolRouter<Self>>,
    /// How often the resource changed.
    changes: Arc<watch::Sender<u64>>,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Echo {
    /// What to say back.
    text: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Sleep {
    /// How long.
    ms: u64,
}

impl Growth {
    /// The server with `tools` more tools, each of which says its text back like `echo`.
    fn new(tools: usize) -> Self {
        let mut router = Self::tool_router();
        for number in 0..tools {
            let mut attributes = Self::echo_tool_attr();
            attributes.name = format!("tool_{number}").into();
            router.add_route(ToolRoute::new(attributes, Self::echo));
        }
        Self { tool_router: Arc::new(router), changes: Arc::new(watch::Sender::new(0)) }
    }
}

#[tool_router]
impl Growth {
    #[tool(description = "Says the text back")]
    async fn echo(&self, Parameters(Echo { text }): Parameters<Echo>) -> String {
        text
    }

    #[tool(description = "Sleeps, and answers")]
    async fn sleep(&self, Parameters(Sleep { ms }): Parameters<Sleep>) -> String {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        "slept".to_owned()
    }

    #[tool(description = "Changes the resource")]
    async fn touch(&self) -> String {
        self.changes.send_modify(|changes| *changes += 1);
        "touched".to_owned()
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Growth {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(
            ServerCapabilities::builder()
                .enable_tools()
                .enable_resources()
                .enable_resources_subscribe()
                .enable_resources_list_changed()
                .build(),
        )
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.changes.subscribe();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                changed = changes.changed() => {
                    changed.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
                    let notified = context.sink().notify_resource_updated(RESOURCE).await;
                    notified.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
                }
            }
        }
    }
}
