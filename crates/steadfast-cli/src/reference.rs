//! The reference server: tools that let people try the laws by hand.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use steadfast::prelude::*;

pub(crate) struct Reference;

/// Tools to try what a server does when handlers block, panic or are cancelled, and when the connection closes.
#[server(name = "steadfast", title = "Steadfast reference server")]
impl Reference {
    /// Returns the text.
    #[tool(read_only, idempotent)]
    async fn echo(&self, text: String) -> String {
        text
    }

    /// Adds two numbers.
    #[tool(read_only, idempotent)]
    async fn add(&self, a: f64, b: f64) -> String {
        (a + b).to_string()
    }

    /// Returns that much text.
    #[tool(read_only, idempotent)]
    async fn blob(
        &self,
        /// How many bytes
        #[arg(default = 65_536)]
        bytes: usize,
    ) -> steadfast::Result<String> {
        const MOST: usize = 64 << 20;
        if bytes > MOST {
            return Err(ToolError::new(format!("at most {MOST} bytes")));
        }
        Ok("x".repeat(bytes))
    }

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

    /// Asks the client for its roots, and waits for the answer (revisions up to 2025-11-25).
    #[tool(read_only)]
    async fn ask_roots(&self, ctx: Context) -> steadfast::Result<String> {
        let roots = ctx.roots().await?;
        let names: Vec<&str> = roots.roots.iter().map(|root| root.uri.as_str()).collect();
        Ok(names.join("\n"))
    }

    /// Reports progress in steps.
    #[tool]
    async fn progress(
        &self,
        /// How many steps
        steps: u32,
        /// How long each takes
        #[arg(default = 10)]
        ms: u64,
        ctx: Context,
    ) -> String {
        for step in 1..=steps {
            ctx.progress_of(f64::from(step), f64::from(steps));
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        format!("{steps} steps")
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
