//! The log of the command: lines on standard error, written by a separate thread.
//!
//! A client that starts a server need not read the server's standard error, and a full pipe blocks the writer. A server
//! therefore never waits for its log: log lines go to a thread through a bounded queue, and are dropped when the queue is full.
//! At exit the command waits briefly until the last log lines are written.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Maximum length of the queue of log lines. When the queue is full, further log lines are dropped.
const QUEUE_LENGTH: usize = 1024;
/// At exit, if no log line was written for this long, the reader of standard error is taken to be gone.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// An entry in the queue of the log thread.
enum LogQueueEntry {
    Line(Vec<u8>),
    /// A flush marker: the log thread drops the marker once all earlier lines are written.
    Flush(#[allow(dead_code, reason = "dropping the sender is the message")] SyncSender<()>),
}

static LINES: OnceLock<SyncSender<LogQueueEntry>> = OnceLock::new();
static WRITTEN: AtomicUsize = AtomicUsize::new(0);

/// Starts logging with the filter in `RUST_LOG`, or from the given level up if `RUST_LOG` is not set.
pub(crate) fn start(level: &str) {
    let (lines, waiting) = sync_channel::<LogQueueEntry>(QUEUE_LENGTH);
    let thread = std::thread::Builder::new().name("log".to_owned());
    let started = thread.spawn(move || {
        for entry in waiting {
            if let LogQueueEntry::Line(line) = entry {
                // There is nowhere left to report a failure of standard error.
                let _ = io::stderr().write_all(&line);
                WRITTEN.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    if started.is_err() || LINES.set(lines.clone()).is_err() {
        return;
    }
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(LogWriterFactory(lines)).with_ansi(false).init();
    // Panics of tools are logged too: the default hook writes to standard error directly, and could block.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let payload = panic.payload();
        let text =
            payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("no text");
        tracing::error!(place, "panicked: {text}");
    }));
}

/// Waits until the queued log lines are written to standard error, or until standard error is not read for a while.
pub(crate) fn finish() {
    let Some(lines) = LINES.get() else { return };
    let (done, written) = sync_channel(0);
    if lines.try_send(LogQueueEntry::Flush(done)).is_err() {
        // The queue is full: the thread is blocked.
        return;
    }
    let mut so_far = WRITTEN.load(Ordering::Relaxed);
    // Nothing is ever sent on this channel: it only disconnects.
    while written.recv_timeout(FLUSH_TIMEOUT) == Err(RecvTimeoutError::Timeout) {
        let now = WRITTEN.load(Ordering::Relaxed);
        if now == so_far {
            return;
        }
        so_far = now;
    }
}

struct LogWriterFactory(SyncSender<LogQueueEntry>);

impl<'a> MakeWriter<'a> for LogWriterFactory {
    type Writer = LogEventWriter<'a>;

    fn make_writer(&'a self) -> LogEventWriter<'a> {
        LogEventWriter { lines: &self.0, line: Vec::new() }
    }
}

/// The log line of one event, which is queued when this writer is dropped.
struct LogEventWriter<'a> {
    lines: &'a SyncSender<LogQueueEntry>,
    line: Vec<u8>,
}

impl Write for LogEventWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for LogEventWriter<'_> {
    fn drop(&mut self) {
        // If the queue is full the line is dropped: see the module docs.
        let _ = self.lines.try_send(LogQueueEntry::Line(std::mem::take(&mut self.line)));
    }
}
