//! The two ways to ask.

use serde::Serialize;

/// How the calls are asked.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// One at a time: each waits for the answer to the last.
    Serial,
    /// A window that is kept full.
    Pipelined,
}

impl Mode {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Serial, Self::Pipelined];

    /// What it is called in a table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Serial => "serial",
            Self::Pipelined => "pipelined",
        }
    }

    /// How many calls are in flight.
    pub const fn window(self, pipelined: u64) -> u64 {
        match self {
            Self::Serial => 1,
            Self::Pipelined => pipelined,
        }
    }
}
