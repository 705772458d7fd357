//! An access token, kept from view.

use std::fmt;

/// The longest token that is looked at. Longer ones are refused before anybody decodes them.
const LONGEST: usize = 16 * 1024;

/// An access token as the client sent it.
///
/// It has no `Display`, its `Debug` shows nothing of it, and it is not `Clone`: whoever wants the text has to say so with
/// [`Token::expose`].
pub struct Token(String);

impl Token {
    /// Reads the text of a token: the characters that a bearer token may have, and not too many of them.
    pub fn parse(text: &str) -> Option<Self> {
        let body = text.trim_end_matches('=');
        let well_formed = !body.is_empty() && body.bytes().all(is_token_byte);
        (well_formed && text.len() <= LONGEST).then(|| Self(text.to_owned()))
    }

    /// The text itself, for those who check it. It must not be logged, stored or sent to anybody but the authorization
    /// server that issued it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// For a verifier that wants a token of its own.
    pub(super) fn duplicate(&self) -> Self {
        Self(self.0.clone())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(redacted)")
    }
}

/// What RFC 6750 (section 2.1) lets a token be made of, before its padding.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_not_in_its_debug_form() {
        let token = Token::parse("s3cr3t").unwrap();
        assert_eq!(format!("{token:?} {token:#?}"), "Token(redacted) Token(redacted)");
    }

    #[test]
    fn only_what_may_be_a_bearer_token_is_one() {
        assert!(Token::parse("abc-._~+/019==").is_some());
        for wrong in ["", "=", "a b", "a,b", "a=b", "a\"b", "ä", "a\tb"] {
            assert!(Token::parse(wrong).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn a_token_beyond_the_limit_is_refused() {
        assert!(Token::parse(&"a".repeat(LONGEST)).is_some());
        assert!(Token::parse(&"a".repeat(LONGEST + 1)).is_none());
    }
}
