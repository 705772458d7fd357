//! Sets of scopes, as tokens carry them and challenges name them.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// A set of scopes, in alphabetical order. It never contains a quote, a backslash or anything but visible ASCII,
/// so it can be written into a header without escaping.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scopes(BTreeSet<Box<str>>);

impl Scopes {
    /// No scope at all.
    pub const fn none() -> Self {
        Self(BTreeSet::new())
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether exactly this scope is in it.
    pub fn contains(&self, scope: &str) -> bool {
        self.0.contains(scope)
    }

    /// The scopes, in alphabetical order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(AsRef::as_ref)
    }

    /// The union of both sets.
    pub fn union(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// The scopes of a list; values that are not valid scopes are skipped.
    pub fn lenient<'a>(scopes: impl IntoIterator<Item = &'a str>) -> Self {
        Self(scopes.into_iter().filter(|scope| is_scope(scope)).map(Box::from).collect())
    }

    /// This set without one scope.
    pub fn without(mut self, scope: &str) -> Self {
        self.0.remove(scope);
        self
    }
}

/// Separated by spaces, as in a `scope` parameter.
impl fmt::Display for Scopes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, scope) in self.iter().enumerate() {
            if index > 0 {
                formatter.write_str(" ")?;
            }
            formatter.write_str(scope)?;
        }
        Ok(())
    }
}

/// Parses scopes that are separated by spaces.
impl FromStr for Scopes {
    type Err = InvalidScope;

    fn from_str(text: &str) -> Result<Self, InvalidScope> {
        Self::try_from_iter(text.split(' ').filter(|part| !part.is_empty()))
    }
}

impl Scopes {
    /// Collects scopes.
    pub fn try_from_iter<'a>(scopes: impl IntoIterator<Item = &'a str>) -> Result<Self, InvalidScope> {
        let mut set = BTreeSet::new();
        for scope in scopes {
            if !is_scope(scope) {
                return Err(InvalidScope(scope.to_owned()));
            }
            set.insert(Box::from(scope));
        }
        Ok(Self(set))
    }
}

impl Serialize for Scopes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

/// The error for a text that is not a valid scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidScope(String);

impl fmt::Display for InvalidScope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?} is not a valid scope", self.0)
    }
}

impl std::error::Error for InvalidScope {}

/// A `scope-token` of RFC 6749 (section 3.3).
fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_read_and_written_with_spaces_between() {
        let scopes: Scopes = "files:write  files:read files:read".parse().unwrap();
        assert_eq!(scopes.to_string(), "files:read files:write");
    }

    #[test]
    fn characters_that_break_a_header_are_refused_in_scopes() {
        for wrong in ["a\"b", "a\\b", "a\nb", "é"] {
            assert!(wrong.parse::<Scopes>().is_err(), "{wrong:?}");
        }
        assert!(Scopes::try_from_iter(["a b"]).is_err());
        assert_eq!(Scopes::lenient(["good", "a\"b"]).to_string(), "good");
    }
}
