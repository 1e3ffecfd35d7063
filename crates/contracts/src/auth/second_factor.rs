//! The second factor: six digits from an authenticator app, or a recovery code.

use serde::{Deserialize, Serialize};
use urr_kernel::Timestamp;

use super::{Origin, OwnerProof, Sensitive, SignedIn};

/// The first factor was accepted; a second one is required.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondFactorNeeded {
    /// Proof of the first factor. Valid for a few minutes, only for [`PassSecondFactor`].
    pub challenge: Sensitive,
    /// Expiry of the challenge.
    pub expires_at: Timestamp,
}

/// Completes a sign-in with the second factor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassSecondFactor {
    /// Challenge from [`SecondFactorNeeded`].
    pub challenge: Sensitive,
    /// Six digits, or a recovery code.
    pub code: Sensitive,
    /// Origin of the request.
    pub origin: Origin,
}

/// Starts to turn on the calling user's second factor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnrolSecondFactor {
    /// Proof that the caller owns the account.
    pub proof: OwnerProof,
    /// Origin of the request.
    pub origin: Origin,
}

/// Data for an authenticator app. Returned once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enrolment {
    /// The secret in Base32, for typing.
    pub secret: Sensitive,
    /// The secret as an `otpauth://` URI, for a QR code.
    pub uri: Sensitive,
}

/// Turns the calling user's second factor on. Ends every session and opens a new one for the
/// caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfirmSecondFactor {
    /// Six digits, which prove that the app has the secret.
    pub code: Sensitive,
    /// Origin of the request.
    pub origin: Origin,
}

/// The second factor is on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondFactorConfirmed {
    /// The caller's new session.
    pub signed_in: SignedIn,
    /// One-time codes in case the phone is lost. Returned once.
    pub recovery_codes: Vec<Sensitive>,
}

/// Turns the calling user's second factor off. Ends every session and opens a new one for the
/// caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisableSecondFactor {
    /// Proof of the first factor.
    pub proof: OwnerProof,
    /// Six digits, or a recovery code.
    pub code: Sensitive,
    /// Origin of the request.
    pub origin: Origin,
}

/// Replaces the calling user's recovery codes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenewRecoveryCodes {
    /// Six digits, or one of the current recovery codes.
    pub code: Sensitive,
    /// Origin of the request.
    pub origin: Origin,
}

/// New recovery codes. Returned once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryCodes {
    /// One-time codes.
    pub recovery_codes: Vec<Sensitive>,
}

/// Turns a user's second factor off. For operators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResetSecondFactor {
    /// E-mail address of the account.
    pub email: String,
}
