//! The algorithms that a JWT access token may be signed with.

use jsonwebtoken::Algorithm as Library;

/// An asymmetric signature algorithm of JWT access tokens.
///
/// The JWT algorithms `none` and `HS256` are not supported: `none` is no signature, and `HS256` is symmetric, so that
/// an attacker could sign tokens with a public key that is mistaken for a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// EdDSA on Ed25519.
    EdDsa,
    /// RSA, PKCS #1 v1.5, with SHA-256.
    Rs256,
    /// RSA, PKCS #1 v1.5, with SHA-384.
    Rs384,
    /// RSA, PKCS #1 v1.5, with SHA-512.
    Rs512,
    /// RSA, PSS, with SHA-256.
    Ps256,
    /// RSA, PSS, with SHA-384.
    Ps384,
    /// RSA, PSS, with SHA-512.
    Ps512,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
    ];

    /// The signature algorithm with this name in the header of a JWT (`alg`).
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// The name of the signature algorithm in the header of a JWT (`alg`).
    pub fn name(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
        }
    }

    pub(super) fn library(self) -> Library {
        match self {
            Self::Es256 => Library::ES256,
            Self::Es384 => Library::ES384,
            Self::EdDsa => Library::EdDSA,
            Self::Rs256 => Library::RS256,
            Self::Rs384 => Library::RS384,
            Self::Rs512 => Library::RS512,
            Self::Ps256 => Library::PS256,
            Self::Ps384 => Library::PS384,
            Self::Ps512 => Library::PS512,
        }
    }

    /// The JWK key type and curve that this signature algorithm needs.
    pub(super) fn key_kind(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Es256 => ("EC", Some("P-256")),
            Self::Es384 => ("EC", Some("P-384")),
            Self::EdDsa => ("OKP", Some("Ed25519")),
            _ => ("RSA", None),
        }
    }
}
