//! The client that is measured, as a user gets it.

use bench_client::{Calls, Failure, Options, TEXT, TOOL, check};
use bench_kit::era::Era;
use clap::Args;
use serde_json::json;
use steadfast::transport::child::Command;
use steadfast::{Client, Revision, client};

#[derive(Args)]
struct Nothing {}

fn main() -> Result<(), Failure> {
    bench_client::run(connect, async |Connected(client)| {
        client.close().await;
        Ok(())
    })
}

async fn connect(options: Options<Nothing>) -> Result<Connected, Failure> {
    let connecting = match (&options.url, options.server.split_first()) {
        (Some(url), _) => Client::connect(url.as_str()),
        (None, Some((program, arguments))) => Client::connect(Command::new(program).args(arguments)),
        (None, None) => return Err("neither a URL nor a command".into()),
    };
    let era = match options.era {
        Era::Initialize => client::NegotiationMode::Handshake(Revision::V2025_11_25),
        Era::Stateless => client::NegotiationMode::Stateless,
    };
    Ok(Connected(connecting.negotiation(era).await?))
}

struct Connected(Client);

impl Calls for Connected {
    async fn call(&self) -> Result<(), Failure> {
        let result = self.0.call_tool(TOOL, json!({"text": TEXT})).await?;
        check(result.content.first().and_then(|content| content.as_text()))
    }
}
