//! The revisions of the protocol: an enumerated set, never compared as strings.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};

/// Defines [`Revision`], the list of all revisions and their names on the wire from one list.
macro_rules! revisions {
    ($($(#[doc = $doc:literal])+ $(#[cfg $cfg:tt])? $variant:ident = $name:literal;)+) => {
        /// A revision of the Model Context Protocol.
        ///
        /// Protocol revisions are ordered by age: an older revision is less than a newer one. Code that depends on a
        /// difference between revisions asks for the difference by name ([`Revision::is_stateless`],
        /// [`Revision::has_batches`]) instead of comparing dates.
        ///
        /// ```
        /// use steadfast_model::Revision;
        /// assert_eq!(Revision::parse("2025-06-18"), Some(Revision::V2025_06_18));
        /// assert_eq!(Revision::parse("1999-01-01"), None);
        /// assert!(Revision::LATEST.is_stateless());
        /// assert!(Revision::V2024_11_05 < Revision::LATEST_STATEFUL);
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Revision {
            $($(#[doc = $doc])+ $(#[cfg $cfg])? $variant,)+
        }

        impl Revision {
            /// Every protocol revision that this crate knows, oldest first.
            pub const ALL: &'static [Self] = &[$($(#[cfg $cfg])? Self::$variant),+];

            /// The date that names this revision on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($(#[cfg $cfg])? Self::$variant => $name,)+
                }
            }
        }
    };
}

// To add a revision, add a line here. It then has the methods, the properties and the JSON of its predecessor, clients
// and servers negotiate it, and it is `LATEST`. What it changes is written in three places of this crate and in no other:
// a column of the table in `method` (messages that it adds, removes or moves), the encoders in `wire` (members that it adds
// or removes), and the properties below (everything else, such as headers or the form of errors).
// The last line exists in tests only and shows that this is all: `.ci/run` runs the tests of this crate and of
// `steadfast-proto` with `--cfg future_revision`.
revisions! {
    /// 2024-11-05, the first.
    V2024_11_05 = "2024-11-05";
    /// 2025-03-26, the revision that added audio, tool annotations and batches.
    V2025_03_26 = "2025-03-26";
    /// 2025-06-18, the revision that added structured output, elicitation, titles and resource links.
    V2025_06_18 = "2025-06-18";
    /// 2025-11-25, the revision that added icons, tools in sampling, URL elicitation and experimental tasks.
    /// 2025-11-25 is the last revision with a handshake.
    V2025_11_25 = "2025-11-25";
    /// 2026-07-28, the first stateless revision: it has no handshake, and each request carries the metadata of its
    /// client.
    V2026_07_28 = "2026-07-28";
    /// A second stateless revision, for tests.
    #[cfg(any(test, future_revision))]
    V2999_12_31 = "2999-12-31";
}

impl Revision {
    /// The newest revision.
    pub const LATEST: Self = Self::ALL[Self::ALL.len() - 1];

    /// The newest revision whose connections are opened with `initialize`.
    pub const LATEST_STATEFUL: Self = Self::V2025_11_25;

    /// The protocol revision of this name, if this crate knows it.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|revision| revision.as_str() == name)
    }

    /// The revisions without a handshake, oldest first: their requests name the revision in `_meta`.
    pub const fn stateless() -> &'static [Self] {
        let (_, stateless) = Self::ALL.split_at(Self::V2026_07_28.index());
        stateless
    }

    /// True if the revision has no handshake and no sessions: each request carries the revision, the client and its
    /// capabilities. Since 2026-07-28.
    ///
    /// Servers of a stateless revision send no requests: they ask in a result for the input that they need from the client.
    /// Clients of a stateless revision subscribe with `subscriptions/listen` and set the log level with each request.
    pub const fn is_stateless(self) -> bool {
        self.index() >= Self::V2026_07_28.index()
    }

    /// True if the revision allows JSON-RPC batches: several messages in a JSON array. Only in 2025-03-26.
    pub const fn has_batches(self) -> bool {
        matches!(self, Self::V2025_03_26)
    }

    /// True if tools of this revision have output schemas and `structuredContent`. Since 2025-06-18.
    pub const fn has_structured_output(self) -> bool {
        self.index() >= Self::V2025_06_18.index()
    }

    /// True if an error response without an id is written with `"id": null`. 2025-11-25 made the member optional.
    pub const fn requires_null_id(self) -> bool {
        self.index() < Self::V2025_11_25.index()
    }

    /// True if a request can fail with the error that asks the client to show URLs to its user first. Only in 2025-11-25.
    pub const fn has_url_elicitation_error(self) -> bool {
        matches!(self, Self::V2025_11_25)
    }

    /// True if the revision has the experimental tasks that are part of the protocol itself. Only in 2025-11-25.
    pub const fn has_experimental_tasks(self) -> bool {
        matches!(self, Self::V2025_11_25)
    }

    /// True if the revision has tasks as an extension that client and server declare. Since 2026-07-28.
    pub const fn has_tasks_extension(self) -> bool {
        self.index() >= Self::V2026_07_28.index()
    }

    /// True if an HTTP event stream of this revision begins with an event without a message, so that the client has an id to
    /// resume from. Only in 2025-11-25: older clients cannot read an event without a message, and stateless revisions do not
    /// resume streams.
    pub const fn has_priming_events(self) -> bool {
        matches!(self, Self::V2025_11_25)
    }

    /// The position of this revision in [`Revision::ALL`].
    pub(crate) const fn index(self) -> usize {
        self as usize
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
    fn every_name_round_trips() {
        for (position, &revision) in Revision::ALL.iter().enumerate() {
            assert_eq!(revision.index(), position);
            assert_eq!(Revision::parse(revision.as_str()), Some(revision));
            let json = serde_json::to_string(&revision).unwrap();
            assert_eq!(serde_json::from_str::<Revision>(&json).unwrap(), revision);
        }
    }

    #[test]
    fn stateless_revisions_are_the_newest() {
        let filtered: Vec<_> = Revision::ALL.iter().copied().filter(|revision| revision.is_stateless()).collect();
        assert_eq!(filtered, Revision::stateless());
        assert_eq!(Revision::stateless(), [Revision::V2026_07_28, Revision::V2999_12_31]);
        assert!(!Revision::LATEST_STATEFUL.is_stateless());
        assert_eq!(Revision::LATEST_STATEFUL.index() + 1, Revision::V2026_07_28.index());
    }

    #[test]
    fn an_added_revision_is_the_latest_and_inherits_the_properties_of_its_predecessor() {
        let added = Revision::LATEST;
        assert_eq!(added, Revision::V2999_12_31);
        assert!(added.is_stateless() && added.has_structured_output() && added.has_tasks_extension());
        assert!(!added.has_batches() && !added.requires_null_id() && !added.has_priming_events());
        assert!(!added.has_experimental_tasks() && !added.has_url_elicitation_error());
    }
}
