//! The source of randomness of the OAuth client. The source of randomness is passed to an OAuth flow, so that a test
//! can replay the flow.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::Secret;

/// A cryptographically secure source of randomness.
pub trait RandomSource: Send + Sync + 'static {
    /// Returns 32 new random bytes.
    fn draw(&self) -> Result<[u8; 32], RandomUnavailable>;
}

/// A [`RandomSource`] that uses the randomness of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemRandomness;

impl RandomSource for SystemRandomness {
    fn draw(&self) -> Result<[u8; 32], RandomUnavailable> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|_| RandomUnavailable)?;
        Ok(bytes)
    }
}

/// A [`RandomSource`] failed to provide random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomUnavailable;

impl fmt::Display for RandomUnavailable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the source of randomness failed")
    }
}

impl std::error::Error for RandomUnavailable {}

/// Returns a new secret of 43 random characters that need no escaping in a URL.
pub(super) fn random_secret(random: &dyn RandomSource) -> Result<Secret, RandomUnavailable> {
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(random.draw()?)))
}

/// A source of randomness for tests: the n-th call returns bytes of value n.
#[cfg(test)]
#[derive(Default)]
pub(super) struct CountingRandomness(std::sync::atomic::AtomicU8);

#[cfg(test)]
impl RandomSource for CountingRandomness {
    fn draw(&self) -> Result<[u8; 32], RandomUnavailable> {
        Ok([self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed).wrapping_add(1); 32])
    }
}
