//! The revisions of the protocol: an enumerated set, never compared as strings.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};

/// A revision of the Model Context Protocol.
///
/// ```
/// use steadfast_model::Revision;
/// assert_eq!(Revision::parse("2025-06-18"), Some(Revision::V2025_06_18));
/// assert_eq!(Revision::parse("1999-01-01"), None);
/// assert!(Revision::LATEST.is_modern());
/// assert!(Revision::V2024_11_05 < Revision::LATEST_LEGACY);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// 2024-11-05, the first.
    V2024_11_05,
    /// 2025-03-26: audio, tool annotations, batches.
    V2025_03_26,
    /// 2025-06-18: structured output, elicitation, titles, resource links.
    V2025_06_18,
    /// 2025-11-25: icons, tools in sampling, URL elicitation, experimental tasks. The last with a handshake.
    V2025_11_25,
    /// 2026-07-28: no handshake, each request says all that it needs.
    V2026_07_28,
}

impl Revision {
    /// Every revision, oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];

    /// The newest revision.
    pub const LATEST: Self = Self::V2026_07_28;

    /// The newest revision that opens with `initialize`.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;

    /// The date that names this revision on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The revision of that name, if it is one that we know.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == name)
    }

    /// True if requests stand alone (no handshake): 2026-07-28 and later.
    pub const fn is_modern(self) -> bool {
        matches!(self, Self::V2026_07_28)
    }

    /// The position in [`Revision::ALL`].
    pub(crate) const fn index(self) -> usize {
        match self {
            Self::V2024_11_05 => 0,
            Self::V2025_03_26 => 1,
            Self::V2025_06_18 => 2,
            Self::V2025_11_25 => 3,
            Self::V2026_07_28 => 4,
        }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Serialize for Revision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Revision {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = std::borrow::Cow::<'_, str>::deserialize(deserializer)?;
        Self::parse(&name).ok_or_else(|| D::Error::custom(format_args!("unknown protocol revision {name:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back() {
        for (position, revision) in Revision::ALL.into_iter().enumerate() {
            assert_eq!(revision.index(), position);
            assert_eq!(Revision::parse(revision.as_str()), Some(revision));
            let json = serde_json::to_string(&revision).unwrap();
            assert_eq!(serde_json::from_str::<Revision>(&json).unwrap(), revision);
        }
    }

    #[test]
    fn only_the_newest_needs_no_handshake() {
        let modern: Vec<_> = Revision::ALL.into_iter().filter(|revision| revision.is_modern()).collect();
        assert_eq!(modern, [Revision::LATEST]);
    }
}
