//! Accounts: making, changing, proving and closing them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use urr_kernel::{Role, Timestamp, UserId};

use super::{Language, Origin, OwnerProof, Sensitive};

/// Where an account is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccountStatus {
    /// In use.
    Active,
    /// Nobody signed in for a year. Signing in wakes it.
    Dormant,
    /// Closed by its owner.
    Deleted,
}

/// What people agree to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TermsKind {
    /// The terms of service. Without them there is no account.
    Service,
    /// How personal data is handled. Without it there is no account.
    Privacy,
    /// Advertising mails. Free to refuse.
    Marketing,
}

/// One decision about one text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreement {
    /// Which text.
    pub kind: TermsKind,
    /// Which version of it was shown; the current one if it is not said.
    pub version: Option<String>,
    /// Yes or no.
    pub agreed: bool,
}

/// Makes an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Register {
    /// The address, which is also the name to sign in with.
    pub email: String,
    /// At least 8 characters.
    pub password: Sensitive,
    /// 1 to 100 characters.
    pub name: String,
    /// Korean or international.
    pub phone: Option<String>,
    /// What was agreed to. Service and privacy are required.
    pub agreements: Vec<Agreement>,
    /// The language of mails.
    pub language: Language,
    /// Where the request comes from.
    pub origin: Origin,
}

/// An account as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Whose.
    pub id: UserId,
    /// The address, normalised.
    pub email: String,
    /// Whether the owner proved the address.
    pub email_verified: bool,
    /// What to call the owner.
    pub name: String,
    /// In E.164 form.
    pub phone: Option<String>,
    /// What the account may do.
    pub role: Role,
    /// Where it is in its life.
    pub status: AccountStatus,
    /// The language of mails.
    pub language: Language,
    /// Whether advertising mails are welcome.
    pub marketing: bool,
    /// Whether signing in needs a second factor.
    pub second_factor: bool,
    /// When somebody vouched for who the owner is. `None`: nobody did.
    pub identity_verified_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// Asks for the calling user's account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Me {}

/// Changes the calling user's account. What is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeProfile {
    /// 1 to 100 characters.
    pub name: Option<String>,
    /// Korean or international; empty removes it.
    pub phone: Option<String>,
    /// The language of mails.
    pub language: Option<Language>,
    /// Whether advertising mails are welcome.
    pub marketing: Option<bool>,
}

/// Sets a new password.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangePassword {
    /// The password until now.
    pub current: Sensitive,
    /// The password from now on.
    pub new: Sensitive,
    /// Where the request comes from.
    pub origin: Origin,
}

/// Asks for a link to set a new password.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgotPassword {
    /// The account's address.
    pub email: String,
}

/// Sets a new password with a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResetPassword {
    /// What the link carries.
    pub token: Sensitive,
    /// The password from now on.
    pub new: Sensitive,
    /// Where the request comes from.
    pub origin: Origin,
}

/// Asks for a link to prove the calling user's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestEmailVerification {}

/// Proves an address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyEmail {
    /// What the link carries.
    pub token: Sensitive,
    /// The account's password, if whoever follows the link is not signed in to it.
    pub password: Option<Sensitive>,
    /// Where the request comes from.
    pub origin: Origin,
}

/// Closes the calling user's account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteAccount {
    /// Proof that it is the owner who asks.
    pub proof: OwnerProof,
    /// Where the request comes from.
    pub origin: Origin,
}

/// Asks for the names of accounts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsersOf {
    /// Which ones, 1 to [`MAX_USERS_PER_BATCH`](super::MAX_USERS_PER_BATCH).
    pub users: Vec<UserId>,
}

/// The accounts that exist of those asked for, in no particular order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Users {
    /// Without unknown and erased ones.
    pub users: Vec<User>,
}

/// What other roles may know of an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// Whose.
    pub id: UserId,
    /// The address.
    pub email: String,
    /// What to call the owner.
    pub name: String,
    /// What the account may do.
    pub role: Role,
}

/// Gives an account another role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetRole {
    /// Whose.
    pub user: UserId,
    /// From now on.
    pub role: Role,
}

/// Makes sure that there is an admin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnsureAdmin {
    /// The admin's address.
    pub email: String,
    /// What to call a new admin.
    pub name: String,
    /// The password of a new admin. `None`: one is made up.
    pub password: Option<Sensitive>,
    /// Makes an account that has the address already the admin, with the password it has. Whoever says so vouches for its owner:
    /// anybody can register with any address.
    pub promote: bool,
    /// Does nothing if there is an admin already, whatever their address.
    pub only_if_none: bool,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admin {
    /// The account that is admin now. `None`: there was an admin, and nothing changed.
    pub user: Option<UserId>,
    /// Whether the account was made just now.
    pub new: bool,
    /// The password that was made up for it. It is told once and nobody can find it out again.
    pub password: Option<Sensitive>,
}
