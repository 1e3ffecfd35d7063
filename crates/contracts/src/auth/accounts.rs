//! Accounts: create, change, verify and close.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use urr_kernel::{Role, Timestamp, UserId};

use super::{Language, Origin, OwnerProof, Sensitive};

/// Status of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccountStatus {
    /// In use.
    Active,
    /// No sign-in for a year. Signing in reactivates it.
    Dormant,
    /// Closed by its owner.
    Deleted,
}

/// Terms that users agree to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TermsKind {
    /// Terms of service. Required.
    Service,
    /// Privacy policy. Required.
    Privacy,
    /// Advertising e-mails. Optional.
    Marketing,
}

/// Agreement or refusal of one text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreement {
    /// The text.
    pub kind: TermsKind,
    /// Version of the text that was shown; the current one if absent.
    pub version: Option<String>,
    /// Whether the user agreed.
    pub agreed: bool,
}

/// Creates an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Register {
    /// E-mail address, also the sign-in name.
    pub email: String,
    /// At least 8 characters.
    pub password: Sensitive,
    /// 1 to 100 characters.
    pub name: String,
    /// Korean or international phone number.
    pub phone: Option<String>,
    /// Agreements to the terms. Service and privacy are required.
    pub agreements: Vec<Agreement>,
    /// Language of e-mails.
    pub language: Language,
    /// Origin of the request.
    pub origin: Origin,
}

/// An account as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Id of the account.
    pub id: UserId,
    /// Normalised e-mail address.
    pub email: String,
    /// Whether the address is verified.
    pub email_verified: bool,
    /// Display name.
    pub name: String,
    /// In E.164 form.
    pub phone: Option<String>,
    /// Role of the account.
    pub role: Role,
    /// Status of the account.
    pub status: AccountStatus,
    /// Language of e-mails.
    pub language: Language,
    /// Whether the owner agreed to advertising e-mails.
    pub marketing: bool,
    /// Whether signing in needs a second factor.
    pub second_factor: bool,
    /// When the owner's identity was verified; `None` if it was not.
    pub identity_verified_at: Option<Timestamp>,
    /// Creation time.
    pub created_at: Timestamp,
}

/// Requests the calling user's account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Me {}

/// Changes the calling user's account. `None` leaves a field unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeProfile {
    /// 1 to 100 characters.
    pub name: Option<String>,
    /// Korean or international phone number; an empty string removes it.
    pub phone: Option<String>,
    /// Language of e-mails.
    pub language: Option<Language>,
    /// Whether the owner agreed to advertising e-mails.
    pub marketing: Option<bool>,
}

/// Sets a new password.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangePassword {
    /// Current password.
    pub current: Sensitive,
    /// New password.
    pub new: Sensitive,
    /// Origin of the request.
    pub origin: Origin,
}

/// Requests a link to set a new password.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgotPassword {
    /// E-mail address of the account.
    pub email: String,
}

/// Sets a new password with a mailed link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResetPassword {
    /// Token from the link.
    pub token: Sensitive,
    /// New password.
    pub new: Sensitive,
    /// Origin of the request.
    pub origin: Origin,
}

/// Requests a link to verify the calling user's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestEmailVerification {}

/// Verifies an address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyEmail {
    /// Token from the link.
    pub token: Sensitive,
    /// Password of the account, required if the caller is not signed in to it.
    pub password: Option<Sensitive>,
    /// Origin of the request.
    pub origin: Origin,
}

/// Closes the calling user's account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteAccount {
    /// Proof that the caller owns the account.
    pub proof: OwnerProof,
    /// Origin of the request.
    pub origin: Origin,
}

/// Requests the names of accounts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsersOf {
    /// 1 to [`MAX_USERS_PER_BATCH`](super::MAX_USERS_PER_BATCH) accounts.
    pub users: Vec<UserId>,
}

/// The requested accounts that exist, in no particular order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Users {
    /// Unknown and erased accounts are omitted.
    pub users: Vec<User>,
}

/// The part of an account that other roles may see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// Id of the account.
    pub id: UserId,
    /// E-mail address.
    pub email: String,
    /// Display name.
    pub name: String,
    /// Role of the account.
    pub role: Role,
}

/// Changes the role of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetRole {
    /// The user.
    pub user: UserId,
    /// The new role.
    pub role: Role,
}

/// Ensures that an admin exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnsureAdmin {
    /// E-mail address of the admin.
    pub email: String,
    /// Display name of a new admin.
    pub name: String,
    /// Password of a new admin; `None` generates one.
    pub password: Option<Sensitive>,
    /// Promotes an existing account with this address and keeps its password. The caller must trust
    /// its owner: anyone can register any address.
    pub promote: bool,
    /// Does nothing if any admin exists.
    pub only_if_none: bool,
}

/// Result of [`EnsureAdmin`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admin {
    /// The account that is now admin; `None` if one existed and nothing changed.
    pub user: Option<UserId>,
    /// Whether the account was created by this call.
    pub new: bool,
    /// The generated password. It is shown once and cannot be recovered.
    pub password: Option<Sensitive>,
}
