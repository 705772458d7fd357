//! Log records that a peer can cause: limited in number, and written without blocking the driver.
//!
//! A log subscriber may write to a pipe that is full, and then block. So log records that a peer can cause go to a
//! log thread, and are dropped if that thread does not keep up. Each connection may log only a limited number of such
//! records in a second.

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

/// How many records one connection may log in one second.
const MAX_RECORDS_PER_SECOND: u32 = 20;

/// The log of one connection, with its rate limit.
#[derive(Default)]
pub(crate) struct RateLimitedLog {
    /// The start of the current second.
    second: Moment,
    /// The number of records that the connection has logged in the current second.
    records: u32,
    /// Records dropped since the last one that was written.
    dropped: u64,
}

/// A log record that a peer can cause.
pub(crate) enum PeerWarningRecord {
    /// The core reports a message that does not follow the protocol, or comes too late.
    Protocol(ProtocolWarning),
    /// The transport failed.
    #[cfg(feature = "http-client")]
    Transport {
        level: Level,
        what: &'static str,
        /// The beginning of the reason, which may be text of the peer.
        why: String,
    },
}

struct QueuedPeerWarning {
    record: PeerWarningRecord,
    dropped: u64,
}

impl RateLimitedLog {
    /// Queues a record for the log thread, or drops it.
    pub(crate) fn write(&mut self, now: Moment, record: PeerWarningRecord) {
        if record.level() > LevelFilter::current() {
            return;
        }
        if now.since(self.second) >= Duration::from_secs(1) {
            (self.second, self.records) = (now, 0);
        }
        let queued = QueuedPeerWarning { record, dropped: self.dropped };
        if self.records >= MAX_RECORDS_PER_SECOND || sender().is_none_or(|sender| sender.try_send(queued).is_err()) {
            self.dropped += 1;
            return;
        }
        self.records += 1;
        self.dropped = 0;
    }
}

impl PeerWarningRecord {
    #[cfg(feature = "http-client")]
    pub(crate) fn transport(level: Level, what: &'static str, why: &str) -> Self {
        Self::Transport { level, what, why: excerpt(why).into_owned() }
    }

    /// The highest level that a record of this kind may have.
    fn level(&self) -> Level {
        match self {
            Self::Protocol(_) => Level::WARN,
            #[cfg(feature = "http-client")]
            Self::Transport { level, .. } => *level,
        }
    }
}

/// The queue of the log thread, which is started by the first call.
fn sender() -> Option<&'static SyncSender<QueuedPeerWarning>> {
    static SENDER: OnceLock<Option<SyncSender<QueuedPeerWarning>>> = OnceLock::new();
    let start = || {
        let (sender, records) = sync_channel::<QueuedPeerWarning>(256);
        let thread = std::thread::Builder::new().name("steadfast-log".to_owned());
        thread.spawn(move || records.into_iter().for_each(|queued| emit(&queued))).ok()?;
        Some(sender)
    };
    SENDER.get_or_init(start).as_ref()
}

fn emit(queued: &QueuedPeerWarning) {
    let dropped = queued.dropped;
    if dropped > 0 {
        tracing::warn!(dropped, "log rate limit reached: records about a peer were dropped");
    }
    match &queued.record {
        PeerWarningRecord::Protocol(warning) => emit_protocol_warning(warning),
        #[cfg(feature = "http-client")]
        PeerWarningRecord::Transport { level: Level::ERROR, what, why } => tracing::error!(why, "{what}"),
        #[cfg(feature = "http-client")]
        PeerWarningRecord::Transport { level: Level::WARN, what, why } => tracing::warn!(why, "{what}"),
        #[cfg(feature = "http-client")]
        PeerWarningRecord::Transport { what, why, .. } => tracing::debug!(why, "{what}"),
    }
}

fn emit_protocol_warning(warning: &ProtocolWarning) {
    let text = |id: &Option<RequestId>| id.as_ref().map_or_else(|| "unknown".to_owned(), RequestId::to_string);
    match warning {
        ProtocolWarning::Refused { id, why } => tracing::warn!(request = %text(id), "message rejected: {why}"),
        ProtocolWarning::Cancelled { id, reason } => {
            tracing::debug!(request = %id, reason, "request cancelled by the peer");
        }
        ProtocolWarning::LateCancel(id) => {
            tracing::debug!(request = %id, "cancellation of a request that is not in flight");
        }
        ProtocolWarning::MalformedCancel => tracing::warn!("cancellation without a request id"),
        ProtocolWarning::LateAnswer(key) => {
            tracing::debug!(%key, "response of a handler dropped: its request has already ended");
        }
        ProtocolWarning::UnknownResponse(id) => tracing::warn!(call = %text(id), "response with an unknown id"),
        ProtocolWarning::UnknownNotification(method) => {
            tracing::debug!(method, "notification that this revision does not have");
        }
        _ => tracing::debug!(?warning, "protocol warning"),
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

    /// Records the fields of all events.
    #[derive(Clone, Default)]
    struct Recorder(Arc<Mutex<String>>);

    impl Visit for Recorder {
        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            write!(self.0.lock().unwrap(), "{field}={value:?} ").unwrap();
        }
    }

    impl Subscriber for Recorder {
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
    fn the_reason_of_a_cancellation_is_logged_with_its_request() {
        let recorder = Recorder::default();
        let warning = ProtocolWarning::Cancelled { id: RequestId::from(7), reason: "no longer needed".to_owned() };
        tracing::subscriber::with_default(recorder.clone(), || emit_protocol_warning(&warning));
        let text = recorder.0.lock().unwrap();
        assert!(text.contains("request=7") && text.contains("no longer needed"), "{text}");
    }
}
