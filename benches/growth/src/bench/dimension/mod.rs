//! The dimensions: what n is, which n are tried, and what is measured there.

mod argument_size;
mod connections;
mod requests_in_flight;
mod sessions;
mod subscribers;
mod tools;

use crate::trial::Trial;
use clap::ValueEnum;
use std::io;

/// Something that there can be more and more of.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Dimension {
    /// A call beside n others that are not answered yet, on one connection.
    RequestsInFlight,
    /// A call in one of n sessions.
    Sessions,
    /// A session that is opened and ended beside n others.
    SessionTurnover,
    /// A call of the last of n tools.
    Tools,
    /// A call with an argument of n bytes.
    ArgumentSize,
    /// A change that n streams listen for.
    Subscribers,
    /// A stream that is opened and closed beside n others.
    SubscriptionTurnover,
    /// A call beside n idle connections.
    Connections,
    /// The memory of n idle connections.
    ConnectionMemory,
}

impl Dimension {
    /// What it is called on the command line and in the report.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::RequestsInFlight => "requests-in-flight",
            Self::Sessions => "sessions",
            Self::SessionTurnover => "session-turnover",
            Self::Tools => "tools",
            Self::ArgumentSize => "argument-size",
            Self::Subscribers => "subscribers",
            Self::SubscriptionTurnover => "subscription-turnover",
            Self::Connections => "connections",
            Self::ConnectionMemory => "connection-memory",
        }
    }

    /// What a cost is counted in.
    pub(crate) const fn unit(self) -> &'static str {
        match self {
            Self::ConnectionMemory => "resident bytes",
            _ => "CPU microseconds",
        }
    }

    /// What a cost is the cost of.
    pub(crate) const fn per(self) -> &'static str {
        match self {
            Self::RequestsInFlight | Self::Sessions | Self::Tools | Self::Connections => "call",
            Self::SessionTurnover => "session opened and ended",
            Self::ArgumentSize => "call, divided by (1 + size in KiB)",
            Self::Subscribers => "notified subscriber",
            Self::SubscriptionTurnover => "subscription opened and closed",
            Self::ConnectionMemory => "idle connection",
        }
    }

    /// The n that are tried, in ascending order.
    pub(crate) const fn sizes(self, smoke: bool) -> &'static [usize] {
        if smoke {
            return &[10, 100];
        }
        match self {
            Self::RequestsInFlight => &[1, 10, 100, 1_000, 10_000, 100_000],
            Self::Sessions | Self::SessionTurnover => &[1, 10, 100, 1_000, 10_000, 20_000],
            Self::ArgumentSize => &[10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000],
            Self::Tools | Self::Subscribers | Self::SubscriptionTurnover | Self::Connections => {
                &[1, 10, 100, 1_000, 10_000]
            }
            // Memory comes in pages, of which a few connections need none.
            Self::ConnectionMemory => &[100, 1_000, 10_000],
        }
    }

    /// The cost for one server at one n.
    pub(crate) fn measure(self, trial: &Trial<'_>) -> io::Result<f64> {
        match self {
            Self::RequestsInFlight => requests_in_flight::measure(trial),
            Self::Sessions => sessions::measure(trial),
            Self::SessionTurnover => sessions::measure_turnover(trial),
            Self::Tools => tools::measure(trial),
            Self::ArgumentSize => argument_size::measure(trial),
            Self::Subscribers => subscribers::measure(trial),
            Self::SubscriptionTurnover => subscribers::measure_turnover(trial),
            Self::Connections => connections::measure(trial),
            Self::ConnectionMemory => connections::measure_memory(trial),
        }
    }
}
