//! The two forms that a conversation can have.

use clap::ValueEnum;

/// How a connection is opened and what each request carries.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Era {
    /// 2025-11-25: a handshake, then plain requests.
    #[value(name = "2025")]
    Initialize,
    /// 2026-07-28: `server/discover`, then requests that carry `_meta`.
    #[value(name = "2026")]
    Stateless,
}

impl Era {
    /// What it is called on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Initialize => "2025",
            Self::Stateless => "2026",
        }
    }

    /// The revision of the protocol.
    pub const fn revision(self) -> &'static str {
        match self {
            Self::Initialize => "2025-11-25",
            Self::Stateless => "2026-07-28",
        }
    }
}
