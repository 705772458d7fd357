//! Where unguessable values come from. It is an argument, so that a flow can be replayed in a test.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::Secret;

/// A source of randomness that nobody can guess.
pub trait Randomness: Send + Sync + 'static {
    /// Thirty-two bytes that were never given before.
    fn draw(&self) -> Result<[u8; 32], NoRandomness>;
}

/// The randomness of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemRandomness;

impl Randomness for SystemRandomness {
    fn draw(&self) -> Result<[u8; 32], NoRandomness> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|_| NoRandomness)?;
        Ok(bytes)
    }
}

/// The source has nothing to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRandomness;

impl fmt::Display for NoRandomness {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("there is no randomness to be had")
    }
}

impl std::error::Error for NoRandomness {}

/// Forty-three characters that nobody can guess, fit for a URL.
pub(super) fn unguessable(random: &dyn Randomness) -> Result<Secret, NoRandomness> {
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(random.draw()?)))
}

/// A source for tests: each draw is the number of the draw.
#[cfg(test)]
#[derive(Default)]
pub(super) struct Counted(std::sync::atomic::AtomicU8);

#[cfg(test)]
impl Randomness for Counted {
    fn draw(&self) -> Result<[u8; 32], NoRandomness> {
        Ok([self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed).wrapping_add(1); 32])
    }
}
