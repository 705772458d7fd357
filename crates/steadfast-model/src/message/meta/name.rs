//! How keys of `_meta` and extensions may be named: `prefix/name`, where the prefix names the owner.

use std::fmt;

use super::key;

/// Why the name of a `_meta` key or of an extension is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidMetaKey {
    /// The prefix of the `_meta` key (the part before the slash) is not labels joined by dots.
    Prefix,
    /// The name in the `_meta` key (the part after the slash, or the whole key without one) contains an invalid character, or
    /// begins or ends with one.
    Name,
    /// The identifier of an extension has no prefix that names its owner, as in `com.example/name`.
    NoPrefix,
    /// The `_meta` key is reserved by the protocol: the library sets it itself.
    Protocol,
}

impl fmt::Display for InvalidMetaKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Prefix => {
                "a prefix is labels joined by dots, as in `com.example/`; each begins with a letter, ends with \
                 a letter or a digit, and has letters, digits and hyphens between"
            }
            Self::Name => {
                "a name begins and ends with a letter or a digit, and has letters, digits, hyphens, underscores and dots \
                 between"
            }
            Self::NoPrefix => "the identifier of an extension needs a prefix that names its owner, as in `com.example/name`",
            Self::Protocol => "the key is reserved: only this library may add it to `_meta`",
        })
    }
}

impl std::error::Error for InvalidMetaKey {}

/// Checks a key that a user of this crate wants to add to `_meta`.
///
/// Prefixes of the protocol, such as `io.modelcontextprotocol/`, are accepted: official extensions have keys with them. The
/// `_meta` keys that the protocol itself defines are refused.
///
/// ```
/// use steadfast_model::meta::{InvalidMetaKey, check_key};
/// assert_eq!(check_key("com.example/colour"), Ok(()));
/// assert_eq!(check_key("colour"), Ok(()));
/// assert_eq!(check_key("example com/colour"), Err(InvalidMetaKey::Prefix));
/// assert_eq!(check_key("progressToken"), Err(InvalidMetaKey::Protocol));
/// ```
pub fn check_key(text: &str) -> Result<(), InvalidMetaKey> {
    const OWN: &[&str] = &[
        key::PROGRESS_TOKEN,
        key::PROTOCOL_VERSION,
        key::CLIENT_INFO,
        key::CLIENT_CAPABILITIES,
        key::LOG_LEVEL,
        key::SUBSCRIPTION_ID,
        key::SERVER_INFO,
        key::RELATED_TASK,
    ];
    if OWN.contains(&text) {
        return Err(InvalidMetaKey::Protocol);
    }
    check(text)
}

/// Checks the identifier of an extension: like a `_meta` key, but the prefix is required.
///
/// ```
/// use steadfast_model::meta::{InvalidMetaKey, check_extension};
/// assert_eq!(check_extension("com.example/colours"), Ok(()));
/// assert_eq!(check_extension("colours"), Err(InvalidMetaKey::NoPrefix));
/// ```
pub fn check_extension(text: &str) -> Result<(), InvalidMetaKey> {
    if !text.contains('/') {
        return Err(InvalidMetaKey::NoPrefix);
    }
    check(text)
}

/// Whether a name has a prefix that is reserved for the protocol and its official extensions: the second label is
/// `modelcontextprotocol` or `mcp`.
pub fn is_reserved(text: &str) -> bool {
    let second = text.split_once('/').and_then(|(prefix, _)| prefix.split('.').nth(1));
    matches!(second, Some("modelcontextprotocol" | "mcp"))
}

fn check(text: &str) -> Result<(), InvalidMetaKey> {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    if prefix.is_some_and(|prefix| !prefix.split('.').all(is_label)) {
        return Err(InvalidMetaKey::Prefix);
    }
    // An empty name is valid.
    if name.is_empty() || is_name(name) { Ok(()) } else { Err(InvalidMetaKey::Name) }
}

fn is_label(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.ends_with(|last: char| last.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.ends_with(|last: char| last.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_names_and_prefixes_are_accepted() {
        for good in [
            "a",
            "7",
            "a.b_c-d",
            "traceparent",
            "x/y",
            "com.example/y",
            "com.ex-4mple.mcp/v1.2",
            "com.example/",
            "",
            "io.modelcontextprotocol/ui",
        ] {
            assert_eq!(check_key(good), Ok(()), "{good}");
        }
    }

    #[test]
    fn invalid_names_are_refused_with_the_reason() {
        for bad in ["/a", ".com/a", "com./a", "4com/a", "com-/a", "com_x/a", "com example/a", "dé/a", "-a/b"] {
            assert_eq!(check_key(bad), Err(InvalidMetaKey::Prefix), "{bad}");
        }
        for bad in ["_a", "a_", "-", "a b", "com.example/a/b", "com.example/.a", "ä", "a\n", "$schema"] {
            assert_eq!(check_key(bad), Err(InvalidMetaKey::Name), "{bad}");
        }
    }

    #[test]
    fn the_keys_that_the_protocol_writes_are_its_own() {
        assert_eq!(check_key(key::SERVER_INFO), Err(InvalidMetaKey::Protocol));
        assert_eq!(check_key(key::SUBSCRIPTION_ID), Err(InvalidMetaKey::Protocol));
        assert_eq!(check_key(key::TRACEPARENT), Ok(()));
    }

    #[test]
    fn an_extension_needs_a_prefix() {
        assert_eq!(check_extension("com.example/colours"), Ok(()));
        assert_eq!(check_extension("colours"), Err(InvalidMetaKey::NoPrefix));
        assert_eq!(check_extension("com..example/colours"), Err(InvalidMetaKey::Prefix));
    }

    #[test]
    fn the_second_label_makes_a_prefix_reserved() {
        for reserved in ["io.modelcontextprotocol/a", "dev.mcp/a", "org.modelcontextprotocol.api/a", "com.mcp.tools/a"]
        {
            assert!(is_reserved(reserved), "{reserved}");
        }
        for free in ["com.example.mcp/a", "mcp/a", "mcp", "com.example/mcp"] {
            assert!(!is_reserved(free), "{free}");
        }
    }
}
