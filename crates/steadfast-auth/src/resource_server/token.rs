//! An access token that is not shown by accident.

use std::fmt;

/// Limit of the length of an access token, in bytes. Longer access tokens are rejected before they are decoded.
const MAX_BYTES: usize = 16 * 1024;

/// An access token as the client sent it.
///
/// An [`AccessToken`] has no `Display`, its `Debug` output is redacted, and it is not `Clone`. The text is available only
/// through [`AccessToken::expose`].
pub struct AccessToken(String);

impl AccessToken {
    /// Parses a token: only characters that a bearer token may have, up to a maximum length.
    pub fn parse(text: &str) -> Option<Self> {
        let body = text.trim_end_matches('=');
        let well_formed = !body.is_empty() && body.bytes().all(is_token_byte);
        (well_formed && text.len() <= MAX_BYTES).then(|| Self(text.to_owned()))
    }

    /// The text of the access token, for token verifiers. The text of the token must not be logged, stored or sent to
    /// any server but the authorization server that issued it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// A copy, for a verifier that takes the token by value.
    pub(super) fn duplicate(&self) -> Self {
        Self(self.0.clone())
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AccessToken(redacted)")
    }
}

/// The characters that RFC 6750 (section 2.1) allows in a token before its padding.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_not_in_its_debug_form() {
        let token = AccessToken::parse("s3cr3t").unwrap();
        assert_eq!(format!("{token:?} {token:#?}"), "AccessToken(redacted) AccessToken(redacted)");
    }

    #[test]
    fn only_what_may_be_a_bearer_token_is_one() {
        assert!(AccessToken::parse("abc-._~+/019==").is_some());
        for wrong in ["", "=", "a b", "a,b", "a=b", "a\"b", "ä", "a\tb"] {
            assert!(AccessToken::parse(wrong).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn a_token_beyond_the_limit_is_refused() {
        assert!(AccessToken::parse(&"a".repeat(MAX_BYTES)).is_some());
        assert!(AccessToken::parse(&"a".repeat(MAX_BYTES + 1)).is_none());
    }
}
