//! Trouble on purpose: what handlers do that no handler should, and what a cancellation finds.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use steadfast::prelude::*;

use super::Reference;

#[server(part = trouble)]
impl Reference {
    /// Sleeps, and is gone at once when it is cancelled.
    #[tool]
    async fn sleep(&self, ms: u64) -> String {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        format!("slept {ms} ms")
    }

    /// Reports progress once and sleeps; when it is cancelled, appends a line to the file that the environment variable
    /// CLEANUP_LOG names.
    #[tool]
    async fn slow_cleanup(&self, ms: u64, ctx: Context) -> String {
        let id = ctx.request_id();
        ctx.on_cancel(async move {
            if let Err(error) = log_cleanup(&id.to_string()) {
                tracing::warn!(request = %id, %error, "the cleanup could not be written");
            }
        });
        // So that a client knows that there is something to cancel.
        ctx.progress(0.0, "sleeping");
        tokio::time::sleep(Duration::from_millis(ms)).await;
        format!("slept {ms} ms")
    }

    /// Panics.
    #[tool]
    async fn panic(&self) -> String {
        panic!("a secret that no peer may read")
    }

    /// Blocks a thread: a plain function that sleeps.
    #[tool]
    fn block_thread(&self, ms: u64) -> String {
        std::thread::sleep(Duration::from_millis(ms));
        format!("blocked a thread for {ms} ms")
    }

    /// Blocks a worker, as no async function should. With `progress`, reports some first.
    #[tool]
    async fn block_worker(&self, ms: u64, progress: Option<bool>, ctx: Context) -> String {
        if progress.unwrap_or(false) {
            ctx.progress(0.5, "about to block");
        }
        std::thread::sleep(Duration::from_millis(ms));
        format!("blocked a worker for {ms} ms")
    }

    /// Sleeps behind a shield: it goes on when it is cancelled.
    #[tool]
    async fn stubborn(&self, ms: u64, ctx: Context) -> String {
        ctx.shield(tokio::time::sleep(Duration::from_millis(ms))).await;
        format!("slept {ms} ms, whatever happened")
    }

    /// Prints to standard output, which is the protocol's: the text goes to standard error.
    #[tool]
    async fn print(&self, text: String) -> &'static str {
        println!("{text}");
        "printed"
    }

    /// Starts a child process that reads its standard input, and returns what it read: nothing.
    #[tool]
    fn spawn_reader(&self, #[arg(default = 200)] ms: u64, ctx: Context) -> steadfast::Result<String> {
        let mut child = std::process::Command::new("cat").stdin(Stdio::inherit()).stdout(Stdio::piped()).spawn()?;
        for _ in 0..ms.div_ceil(10) {
            if ctx.is_cancelled() || child.try_wait()?.is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        // It has ended already if all is well.
        let _ = child.kill();
        Ok(String::from_utf8_lossy(&child.wait_with_output()?.stdout).into_owned())
    }
}

fn log_cleanup(id: &str) -> std::io::Result<()> {
    let Some(path) = std::env::var_os("CLEANUP_LOG") else { return Ok(()) };
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
    // One write, so that lines of several do not mix.
    file.write_all(format!("cleaned up after request {id}\n").as_bytes())
}
