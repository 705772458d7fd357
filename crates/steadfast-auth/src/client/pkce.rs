//! Proof key for code exchange (RFC 7636), only with S256.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use super::Secret;
use super::random::{RandomSource, RandomUnavailable, random_secret};

/// The PKCE code verifier: a secret of the client that started the authorization.
pub(super) struct CodeVerifier(Secret);

impl CodeVerifier {
    pub(super) fn draw(random: &dyn RandomSource) -> Result<Self, RandomUnavailable> {
        random_secret(random).map(Self)
    }

    /// The PKCE code challenge for the authorization request.
    pub(super) fn challenge(&self) -> String {
        digest(self.0.expose())
    }

    /// The PKCE code verifier for the token request.
    pub(super) fn into_secret(self) -> Secret {
        self.0
    }
}

/// SHA-256 in base64url.
pub(super) fn digest(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_that_of_the_rfc() {
        // The example of RFC 7636, appendix B.
        let verifier = CodeVerifier(Secret::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"));
        assert_eq!(verifier.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn a_verifier_is_long_enough_and_never_the_same() {
        let random = super::super::random::CountingRandomness::default();
        let first = CodeVerifier::draw(&random).unwrap().into_secret();
        assert_eq!(first.expose().len(), 43);
        assert_ne!(first, CodeVerifier::draw(&random).unwrap().into_secret());
    }
}
