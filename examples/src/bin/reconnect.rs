//! A server that crashes, and a client that reconnects: which calls are retried, and which the caller has to decide about.
//!
//! The program starts itself as the server. Each server process crashes in its second call, after the work is done and before the
//! response is sent. Payments are stored in a file, which survives.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::json;
use steadfast::client::{CallOutcome, ReconnectPolicy};
use steadfast::prelude::*;
use steadfast::transport::child::Command;
use steadfast::{CallToolResult, Error, Outcome};

struct Bank {
    ledger: PathBuf,
    calls: AtomicU32,
}

/// A bank that crashes often and loses nothing.
#[server(name = "bank")]
impl Bank {
    /// Makes a payment: not idempotent.
    #[tool]
    fn pay(&self, amount: u32) -> steadfast::ToolResult<String> {
        writeln!(OpenOptions::new().append(true).open(&self.ledger)?, "{amount}")?;
        self.crash_in_second_call();
        Ok(format!("paid {amount}"))
    }

    /// The sum of all payments.
    #[tool(read_only)]
    fn paid(&self) -> steadfast::ToolResult<u32> {
        let paid = fs::read_to_string(&self.ledger)?.lines().filter_map(|line| line.parse::<u32>().ok()).sum();
        self.crash_in_second_call();
        Ok(paid)
    }

    /// Locks the door: idempotent.
    #[tool(idempotent)]
    fn lock(&self) -> &'static str {
        self.crash_in_second_call();
        "the door is locked"
    }

    fn crash_in_second_call(&self) {
        if self.calls.fetch_add(1, Ordering::Relaxed) == 1 {
            std::process::exit(1);
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, ledger] = arguments.as_slice()
        && flag == "--as-server"
    {
        return Bank { ledger: ledger.into(), calls: AtomicU32::new(0) }.serve_stdio().await;
    }
    let ledger = std::env::temp_dir().join(format!("steadfast-bank-{}", std::process::id()));
    File::create_new(&ledger).map_err(not_started)?;
    let result = run_client(&ledger).await;
    fs::remove_file(&ledger).map_err(not_started)?;
    result
}

async fn run_client(ledger: &Path) -> Result<(), Error> {
    let program = std::env::current_exe().map_err(not_started)?;
    // A server process is restarted only with a reconnect policy.
    let policy = ReconnectPolicy::default().attempts(4).first_pause(Duration::from_millis(20));
    let client = Client::connect(Command::new(program).arg("--as-server").arg(ledger)).reconnect(policy).await?;
    println!("at first: {} is paid", text(&client.call_tool("paid", ()).await?));

    // The process crashes in this call. It is not retried: the caller checks, and decides.
    match client.call_tool("pay", json!({ "amount": 5 })).outcome().await {
        CallOutcome::Completed(receipt) => println!("{}", text(&receipt)),
        CallOutcome::NotSent(error) => println!("the request was not sent, safe to retry: {error}"),
        CallOutcome::Refused(error) | CallOutcome::Unusable(error) | CallOutcome::Cancelled(error) => {
            return Err(error);
        }
        CallOutcome::Unknown(unknown) => {
            println!("the outcome of the payment is unknown: {}", unknown.error());
            // This call reconnects: it starts a new process.
            let paid = client.call_tool("paid", ()).await?;
            println!("reconnected: {} is paid", text(&paid));
            if text(&paid) == "0" {
                println!("{}", text(&unknown.call_again().await?));
            }
        }
    }

    // The second process crashes in this call. It is idempotent, so the client retries it by itself, in a third process.
    println!("{}", text(&client.call_tool("lock", ()).idempotent().await?));
    client.close().await;
    Ok(())
}

fn text(result: &CallToolResult) -> &str {
    result.content.first().and_then(Content::as_text).unwrap_or_default()
}

fn not_started(error: io::Error) -> Error {
    Error::transport(Outcome::NotSent, error)
}
