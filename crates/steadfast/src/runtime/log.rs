//! Log lines that a peer can provoke: few, and never in the driver's way.
//!
//! A subscriber may write to a standard error that nobody reads, and then block. So these lines are handed to a thread, and
//! dropped if it does not keep up; and a connection says only so much a second.

use std::sync::OnceLock;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use steadfast_model::RequestId;
#[cfg(feature = "http-client")]
use steadfast_model::error::excerpt;
use steadfast_proto::Moment;
use steadfast_proto::connection::ProtocolWarning;
use tracing::Level;
use tracing::level_filters::LevelFilter;

/// Lines of one connection in one second.
const LINES: u32 = 20;

/// What one connection has said lately.
#[derive(Default)]
pub(crate) struct RateLimitedLog {
    second: Moment,
    lines: u32,
    dropped: u64,
}

/// What there is to say.
pub(crate) enum PeerLogRecord {
    /// The core found a message odd.
    Odd(ProtocolWarning),
    /// Something went wrong with what carries messages.
    #[cfg(feature = "http-client")]
    Carrying {
        level: Level,
        what: &'static str,
        /// In somebody's words, which may be the peer's: the beginning of them.
        why: String,
    },
}

struct LogLine {
    record: PeerLogRecord,
    dropped: u64,
}

impl RateLimitedLog {
    pub(crate) fn note(&mut self, now: Moment, record: PeerLogRecord) {
        if record.level() > LevelFilter::current() {
            return;
        }
        if now.since(self.second) >= Duration::from_secs(1) {
            (self.second, self.lines) = (now, 0);
        }
        let line = LogLine { record, dropped: self.dropped };
        if self.lines >= LINES || sender().is_none_or(|sender| sender.try_send(line).is_err()) {
            self.dropped += 1;
            return;
        }
        self.lines += 1;
        self.dropped = 0;
    }
}

impl PeerLogRecord {
    #[cfg(feature = "http-client")]
    pub(crate) fn carrying(level: Level, what: &'static str, why: &str) -> Self {
        Self::Carrying { level, what, why: excerpt(why).into_owned() }
    }

    /// The most important of what is said of it.
    fn level(&self) -> Level {
        match self {
            Self::Odd(_) => Level::WARN,
            #[cfg(feature = "http-client")]
            Self::Carrying { level, .. } => *level,
        }
    }
}

fn sender() -> Option<&'static SyncSender<LogLine>> {
    static SENDER: OnceLock<Option<SyncSender<LogLine>>> = OnceLock::new();
    let start = || {
        let (sender, lines) = sync_channel::<LogLine>(256);
        let thread = std::thread::Builder::new().name("steadfast-log".to_owned());
        thread.spawn(move || lines.into_iter().for_each(|line| write(&line))).ok()?;
        Some(sender)
    };
    SENDER.get_or_init(start).as_ref()
}

fn write(line: &LogLine) {
    let dropped = line.dropped;
    if dropped > 0 {
        tracing::warn!(dropped, "lines about what a peer did were left out");
    }
    match &line.record {
        PeerLogRecord::Odd(oddity) => write_odd(oddity),
        #[cfg(feature = "http-client")]
        PeerLogRecord::Carrying { level: Level::ERROR, what, why } => tracing::error!(why, "{what}"),
        #[cfg(feature = "http-client")]
        PeerLogRecord::Carrying { level: Level::WARN, what, why } => tracing::warn!(why, "{what}"),
        #[cfg(feature = "http-client")]
        PeerLogRecord::Carrying { what, why, .. } => tracing::debug!(why, "{what}"),
    }
}

fn write_odd(oddity: &ProtocolWarning) {
    let text = |id: &Option<RequestId>| id.as_ref().map_or_else(|| "unknown".to_owned(), RequestId::to_string);
    match oddity {
        ProtocolWarning::Refused { id, why } => tracing::warn!(request = %text(id), "refused a message: {why}"),
        ProtocolWarning::Cancelled { id, reason } => tracing::debug!(request = %id, reason, "cancelled by the peer"),
        ProtocolWarning::LateCancel(id) => {
            tracing::debug!(request = %id, "a cancellation of a request that is not open")
        }
        ProtocolWarning::MalformedCancel => tracing::warn!("a cancellation that names no request"),
        ProtocolWarning::LateAnswer(key) => tracing::debug!(%key, "a handler answered a request that had ended"),
        ProtocolWarning::UnknownResponse(id) => tracing::warn!(call = %text(id), "an answer to nothing that waits"),
        ProtocolWarning::UnknownNotification(method) => {
            tracing::debug!(method, "a notification that this revision does not have");
        }
        _ => tracing::debug!(?oddity, "something odd"),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::{Debug, Write as _};
    use std::sync::{Arc, Mutex};

    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    use super::*;

    /// Keeps what is said.
    #[derive(Clone, Default)]
    struct Heard(Arc<Mutex<String>>);

    impl Visit for Heard {
        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            write!(self.0.lock().unwrap(), "{field}={value:?} ").unwrap();
        }
    }

    impl Subscriber for Heard {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }
        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }
        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn event(&self, event: &Event<'_>) {
            event.record(&mut self.clone());
        }
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    #[test]
    fn the_reason_of_a_cancellation_is_written_with_its_request() {
        let heard = Heard::default();
        let oddity = ProtocolWarning::Cancelled { id: RequestId::from(7), reason: "no longer needed".to_owned() };
        tracing::subscriber::with_default(heard.clone(), || write_odd(&oddity));
        let text = heard.0.lock().unwrap();
        assert!(text.contains("request=7") && text.contains("no longer needed"), "{text}");
    }
}
