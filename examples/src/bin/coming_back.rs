//! A server that dies, and a client that comes back: what is made again, and what only its caller can decide.
//!
//! The program starts itself as the server. A process of it works through two calls, and dies of the second: the work is done,
//! and nobody is told. What it writes down stays.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::json;
use steadfast::client::{CallOutcome, Reconnect};
use steadfast::prelude::*;
use steadfast::transport::child::Command;
use steadfast::{CallToolResult, Error, Outcome};

struct Bank {
    book: PathBuf,
    calls: AtomicU32,
}

/// A bank with a good memory and bad health.
#[server(name = "bank")]
impl Bank {
    /// Pays once more each time that it is called.
    #[tool]
    fn pay(&self, amount: u32) -> steadfast::Result<String> {
        writeln!(OpenOptions::new().append(true).open(&self.book)?, "{amount}")?;
        self.live_or_die();
        Ok(format!("paid {amount}"))
    }

    /// What was paid.
    #[tool(read_only)]
    fn paid(&self) -> steadfast::Result<u32> {
        let paid = fs::read_to_string(&self.book)?.lines().filter_map(|line| line.parse::<u32>().ok()).sum();
        self.live_or_die();
        Ok(paid)
    }

    /// Locks the door. It does not matter how often.
    #[tool(idempotent)]
    fn lock(&self) -> &'static str {
        self.live_or_die();
        "the door is locked"
    }

    fn live_or_die(&self) {
        if self.calls.fetch_add(1, Ordering::Relaxed) == 1 {
            std::process::exit(1);
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, book] = arguments.as_slice()
        && flag == "--as-server"
    {
        return Bank { book: book.into(), calls: AtomicU32::new(0) }.serve_stdio().await;
    }
    let book = std::env::temp_dir().join(format!("steadfast-bank-{}", std::process::id()));
    File::create_new(&book).map_err(not_started)?;
    let visited = visit(&book).await;
    fs::remove_file(&book).map_err(not_started)?;
    visited
}

async fn visit(book: &Path) -> Result<(), Error> {
    let program = std::env::current_exe().map_err(not_started)?;
    // A process is started again only if somebody says so.
    let policy = Reconnect::default().attempts(4).first_pause(Duration::from_millis(20));
    let client = Client::connect(Command::new(program).arg("--as-server").arg(book)).reconnect(policy).await?;
    println!("at first: {} is paid", text(&client.call_tool("paid", ()).await?));

    // The process dies of this. Nothing is sent twice: the caller has to look, and says what is to be done.
    match client.call_tool("pay", json!({ "amount": 5 })).outcome().await {
        CallOutcome::Answered(receipt) => println!("{}", text(&receipt)),
        CallOutcome::NotSent(error) => println!("nothing was paid, and trying again does no harm: {error}"),
        CallOutcome::Refused(error) | CallOutcome::Unusable(error) | CallOutcome::Cancelled(error) => {
            return Err(error);
        }
        CallOutcome::Unknown(unknown) => {
            println!("paid or not, nobody knows: {}", unknown.error());
            // This call needs a connection, and that is when there is another process.
            let paid = client.call_tool("paid", ()).await?;
            println!("came back: {} is paid", text(&paid));
            if text(&paid) == "0" {
                println!("{}", text(&unknown.call_again().await?));
            }
        }
    }

    // The second process dies of this. It does no harm twice, so the client makes it again by itself, in a third one.
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
