//! The peer to beat: a client on rmcp 3.8.0.
//!
//! It is written the way rmcp's own documentation writes one, except where `--pooled` asks for what its users can do to be
//! faster over HTTP: a reqwest client of their own that keeps connections, which rmcp's default one does not, and as many
//! requests at a time as are made, where the default is sixteen. It never carries a setting that would slow rmcp down, nor
//! a hand-written path that its users would not have.

use bench_client::{Calls, Failure, Options, TEXT, TOOL, check};
use bench_kit::era::Era;
use clap::Args;
use rmcp::model::{CallToolRequestParams, ProtocolVersion};
use rmcp::service::RunningService;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient};
use tokio::process::Command;

#[derive(Args)]
struct Http {
    /// Keeps connections, and makes as many requests at a time as are asked for.
    #[arg(long)]
    pooled: bool,
}

fn main() -> Result<(), Failure> {
    rustls::crypto::ring::default_provider().install_default().map_err(|_| "there is a provider already")?;
    bench_client::run(connect, async |Connected(client)| {
        client.cancel().await?;
        Ok(())
    })
}

async fn connect(options: Options<Http>) -> Result<Connected, Failure> {
    let lifecycle = match options.era {
        Era::Initialize => ClientLifecycleMode::Initialize,
        Era::Stateless => ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] },
    };
    let client = match (options.url, options.server.split_first()) {
        (Some(url), _) if options.more.pooled => ().serve_with_lifecycle(pooled(url), lifecycle).await?,
        (Some(url), _) => ().serve_with_lifecycle(StreamableHttpClientTransport::from_uri(url), lifecycle).await?,
        (None, Some((program, arguments))) => {
            let mut command = Command::new(program);
            command.args(arguments);
            ().serve_with_lifecycle(TokioChildProcess::new(command)?, lifecycle).await?
        }
        (None, None) => return Err("neither a URL nor a command".into()),
    };
    Ok(Connected(client))
}

fn pooled(url: String) -> StreamableHttpClientTransport<reqwest::Client> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(url);
    config.max_concurrent_requests = 1024;
    StreamableHttpClientTransport::with_client(reqwest::Client::new(), config)
}

struct Connected(RunningService<RoleClient, ()>);

impl Calls for Connected {
    async fn call(&self) -> Result<(), Failure> {
        let params = CallToolRequestParams::new(TOOL).with_arguments(rmcp::object!({"text": TEXT}));
        let result = self.0.call_tool(params).await?;
        check(result.content.first().and_then(|content| content.as_text()).map(|content| content.text.as_str()))
    }
}
