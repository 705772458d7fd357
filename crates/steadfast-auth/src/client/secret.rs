//! Secret text: tokens, client secrets, code verifiers.

use std::fmt;

use serde::{Deserialize, Deserializer, Serializer};
use zeroize::Zeroizing;

/// A secret text. A [`Secret`] has no `Display` and no `Serialize`, its `Debug` output is redacted, and its memory is zeroed
/// when it is dropped. The text is available only through [`Secret::expose`].
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// The secret text. The caller must not log the secret text, nor send it to any host but the one that it is for.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(redacted)")
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

/// Serializes a secret for a token store. Fields opt in with `serialize_with`, so that no secret is written by accident.
pub(super) fn reveal<S: Serializer>(secret: &Secret, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(secret.expose())
}

/// Serializes an optional secret for a token store.
#[allow(clippy::ref_option, reason = "serde requires this signature")]
pub(super) fn reveal_option<S: Serializer>(secret: &Option<Secret>, serializer: S) -> Result<S::Ok, S::Error> {
    match secret {
        Some(secret) => serializer.serialize_some(secret.expose()),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_not_in_its_debug_form() {
        let secret = Secret::new("s3cr3t");
        assert_eq!(format!("{secret:?} {secret:#?}"), "Secret(redacted) Secret(redacted)");
        assert_eq!(secret.expose(), "s3cr3t");
    }
}
