//! Sets of OAuth scopes, as in access tokens and in `WWW-Authenticate` challenges.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// A set of OAuth scopes, in alphabetical order. A scope never contains a quote, a backslash or anything but visible ASCII, so
/// the set can be written into an HTTP header without escaping.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scopes(BTreeSet<Box<str>>);

impl Scopes {
    /// An empty set of OAuth scopes.
    pub const fn none() -> Self {
        Self(BTreeSet::new())
    }

    /// Whether this set of OAuth scopes is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this set of OAuth scopes contains exactly the scope `scope`.
    pub fn contains(&self, scope: &str) -> bool {
        self.0.contains(scope)
    }

    /// The OAuth scopes of this set, in alphabetical order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(AsRef::as_ref)
    }

    /// The union of two sets of OAuth scopes.
    pub fn union(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Collects OAuth scopes from a list; values that are not valid scopes are skipped.
    pub fn lenient<'a>(scopes: impl IntoIterator<Item = &'a str>) -> Self {
        Self(scopes.into_iter().filter(|scope| is_scope(scope)).map(Box::from).collect())
    }

    /// Removes one scope from this set of OAuth scopes.
    pub fn without(mut self, scope: &str) -> Self {
        self.0.remove(scope);
        self
    }
}

/// Writes the scopes separated by spaces, as in an OAuth `scope` parameter.
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

/// Parses OAuth scopes that are separated by spaces.
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

/// The error for a text that is not a valid OAuth scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidScope(String);

impl fmt::Display for InvalidScope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?} is not a valid OAuth scope", self.0)
    }
}

impl std::error::Error for InvalidScope {}

/// Whether a text is a `scope-token` of RFC 6749 (section 3.3).
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
