//! How a client gets tokens for a server, keeps them, and shows them.
mod authorize;
mod challenge;
mod credentials;
mod discovery;
mod dpop;
mod error;
mod flow;
mod pkce;
mod profile;
mod random;
mod reach;
mod registration;
mod scope;
mod secret;
mod store;
mod token;

pub use challenge::{Challenge, Scheme};
pub use credentials::{ClientKey, Credential};
pub use dpop::Dpop;
pub use error::{Error, Refusal};
pub use flow::{Command, Event, Flow, Outcome, Situation};
pub use profile::{Grant, IdentityProvider, PreRegistered, Profile};
pub use random::{NoRandomness, Randomness, SystemRandomness};
pub use registration::Registration;
pub use secret::Secret;
pub use store::{FileStore, Key, Later, Lock, MemoryStore, StoreError, TokenStore};
pub use token::Tokens;
