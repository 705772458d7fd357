//! Tools of the reference server that misbehave on purpose, and tools to test cancellation with.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use steadfast::prelude::*;

use super::CliReferenceServer;

#[server(part = trouble)]
impl CliReferenceServer {
    /// Sleeps. The tool stops at once when its request is cancelled.
    #[tool]
    async fn sleep(&self, ms: u64) -> String {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        format!("slept {ms} ms")
    }

    /// Sends one progress notification and sleeps. When its request is cancelled, the tool appends a line to the file named by
    /// the environment variable CLEANUP_LOG.
    #[tool]
    async fn slow_cleanup(&self, ms: u64, ctx: Context) -> String {
        let id = ctx.request_id();
        ctx.on_cancel(async move {
            if let Err(error) = log_cleanup(&id.to_string()) {
                tracing::warn!(request = %id, %error, "failed to write to CLEANUP_LOG");
            }
        });
        // Lets a client know that the tool runs and can be cancelled.
        ctx.progress(0.0, "sleeping");
        tokio::time::sleep(Duration::from_millis(ms)).await;
        format!("slept {ms} ms")
    }

    /// Panics.
    #[tool]
    async fn panic(&self) -> String {
        panic!("a secret that no peer may read")
    }

    /// Blocks a thread: this tool is a synchronous function that sleeps.
    #[tool]
    fn block_thread(&self, ms: u64) -> String {
        std::thread::sleep(Duration::from_millis(ms));
        format!("this tool has blocked its thread for {ms} ms, as requested")
    }

    /// Blocks an async worker thread, as no async function should. With `progress`, the tool sends a progress notification
    /// first.
    #[tool]
    async fn block_worker(&self, ms: u64, progress: Option<bool>, ctx: Context) -> String {
        if progress.unwrap_or(false) {
            ctx.progress(0.5, "about to block");
        }
        std::thread::sleep(Duration::from_millis(ms));
        format!("this tool has blocked its async worker thread for {ms} ms, as requested")
    }

    /// Sleeps in a shield, which a cancellation does not stop.
    #[tool]
    async fn stubborn(&self, ms: u64, ctx: Context) -> String {
        ctx.shield(tokio::time::sleep(Duration::from_millis(ms))).await;
        format!("slept {ms} ms, cancelled or not")
    }

    /// Prints the argument `text` to standard output. Standard output is reserved for the protocol, so the text goes
    /// to standard error.
    #[tool]
    async fn print(&self, text: String) -> &'static str {
        println!("{text}");
        "printed"
    }

    /// Starts a child process that reads the server's standard input, and returns what the child process read: nothing.
    #[tool]
    fn spawn_reader(&self, #[arg(default = 200)] ms: u64, ctx: Context) -> steadfast::ToolResult<String> {
        let mut child = std::process::Command::new("cat").stdin(Stdio::inherit()).stdout(Stdio::piped()).spawn()?;
        for _ in 0..ms.div_ceil(10) {
            if ctx.is_cancelled() || child.try_wait()?.is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        // An error means that it has exited already, as it should.
        let _ = child.kill();
        Ok(String::from_utf8_lossy(&child.wait_with_output()?.stdout).into_owned())
    }
}

fn log_cleanup(id: &str) -> std::io::Result<()> {
    let Some(path) = std::env::var_os("CLEANUP_LOG") else { return Ok(()) };
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
    // A single write, so that lines of concurrent calls do not mix.
    file.write_all(format!("cleaned up after request {id}\n").as_bytes())
}
