//! Every signed token: sign, verify, claims, key separation.
//!
//! Tokens are issued and verified by this product alone, so there is one algorithm, HMAC-SHA-256,
//! and nothing in a token chooses how it is verified.

pub mod access;
pub mod challenge;
mod compact;
pub mod entry;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod hop;
mod jwt;
mod keys;
pub mod queue_ticket;
pub mod state_token;
pub mod succession;
pub mod visitor;
pub mod vwr_pass;
pub mod vwr_ticket;

pub use keys::{Key, Secret, WeakSecret};

/// Why a token is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is genuine but has expired.
    #[error("the token has expired")]
    Expired,
    /// It is not ours, was modified, or is of another kind.
    #[error("the token is not valid")]
    Invalid,
}
