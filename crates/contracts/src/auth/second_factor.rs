//! The second factor: six digits from an authenticator app, or a recovery code.

use serde::{Deserialize, Serialize};
use urr_kernel::Timestamp;

use super::{Origin, OwnerProof, Sensitive, SignedIn};

/// The first factor was right and a second one is needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondFactorNeeded {
    /// Says that the first factor was shown. Good for a few minutes and for nothing but [`PassSecondFactor`].
    pub challenge: Sensitive,
    /// Until when.
    pub expires_at: Timestamp,
}

/// Shows the second factor and signs in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassSecondFactor {
    /// What [`SecondFactorNeeded`] said.
    pub challenge: Sensitive,
    /// Six digits, or a recovery code.
    pub code: Sensitive,
    /// Where the request comes from.
    pub origin: Origin,
}

/// Begins to turn on the calling user's second factor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnrolSecondFactor {
    /// Proof that it is the owner who asks.
    pub proof: OwnerProof,
    /// Where the request comes from.
    pub origin: Origin,
}

/// What an authenticator app needs. Told once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enrolment {
    /// The secret in Base32, to be typed.
    pub secret: Sensitive,
    /// The same as `otpauth://` URI, to be shown as a QR code.
    pub uri: Sensitive,
}

/// Turns the calling user's second factor on. Ends every session and opens a new one for the caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfirmSecondFactor {
    /// Six digits, as proof that the app has the secret.
    pub code: Sensitive,
    /// Where the request comes from.
    pub origin: Origin,
}

/// The second factor is on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondFactorConfirmed {
    /// The caller's new session.
    pub signed_in: SignedIn,
    /// Good once each, for the day the phone is lost. Told once.
    pub recovery_codes: Vec<Sensitive>,
}

/// Turns the calling user's second factor off. Ends every session and opens a new one for the caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisableSecondFactor {
    /// Proof of the first factor.
    pub proof: OwnerProof,
    /// Six digits, or a recovery code.
    pub code: Sensitive,
    /// Where the request comes from.
    pub origin: Origin,
}

/// Replaces the calling user's recovery codes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenewRecoveryCodes {
    /// Six digits, or one of the codes until now.
    pub code: Sensitive,
    /// Where the request comes from.
    pub origin: Origin,
}

/// New recovery codes. Told once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryCodes {
    /// Good once each.
    pub recovery_codes: Vec<Sensitive>,
}

/// Turns somebody's second factor off, for the person on call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResetSecondFactor {
    /// The account's address.
    pub email: String,
}
