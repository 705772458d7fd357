//! Log messages that a server sends to its client.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::meta::Meta;
use crate::setters::setters;

/// How severe a log message is: the levels of syslog (RFC 5424), least severe first.
///
/// ```
/// use steadfast_model::LoggingLevel;
/// assert!(LoggingLevel::Error > LoggingLevel::Info);
/// assert_eq!(serde_json::to_string(&LoggingLevel::Emergency).unwrap(), r#""emergency""#);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoggingLevel {
    /// Details for debugging.
    Debug,
    /// Normal operation.
    Info,
    /// Normal, but significant.
    Notice,
    /// Log level `warning`: something may go wrong soon.
    Warning,
    /// Something went wrong.
    Error,
    /// Log level `critical`: a component has failed.
    Critical,
    /// Log level `alert`: a person has to act now.
    Alert,
    /// Log level `emergency`: the system is unusable.
    Emergency,
}

impl LoggingLevel {
    /// Every log level, least severe first.
    pub const ALL: &'static [Self] = &[
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// The level's name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

impl fmt::Display for LoggingLevel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The parameters of `notifications/message`, with which a server sends a log message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LoggingMessageParams {
    /// The level of the log message.
    pub level: LoggingLevel,
    /// The name of the logger that the log message comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logger: Option<String>,
    /// The log message: a string or any other JSON value.
    pub data: Value,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl LoggingMessageParams {
    /// A log message with this level.
    pub fn new(level: LoggingLevel, data: impl Into<Value>) -> Self {
        Self { level, logger: None, data: data.into(), meta: None }
    }
}

setters!(LoggingMessageParams { with_logger(logger: String), with_meta(meta: Meta) });

/// The parameters of `logging/setLevel` (up to 2025-11-25; since then each request carries the log level in `_meta`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SetLevelParams {
    /// The minimum level of the log messages that the client wants.
    pub level: LoggingLevel,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl SetLevelParams {
    /// Asks the server for log messages of this level and above.
    pub fn new(level: LoggingLevel) -> Self {
        Self { level, meta: None }
    }
}

setters!(SetLevelParams { with_meta(meta: Meta) });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_ordered_and_named_as_on_the_wire() {
        assert!(LoggingLevel::ALL.is_sorted());
        for level in LoggingLevel::ALL {
            assert_eq!(serde_json::to_value(level).unwrap(), level.as_str());
        }
    }
}
