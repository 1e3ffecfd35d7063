//! Accounts, sessions, sign-in and roles.

mod accounts;
mod error;
mod identity;
mod second_factor;
mod sessions;
mod social;

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
pub use urr_kernel::Language;
use urr_rpc::service;

pub use self::{accounts::*, error::Error, identity::*, second_factor::*, sessions::*, social::*};

/// Accounts per batch. At 300 bytes each a reply stays below 64 kB.
pub const MAX_USERS_PER_BATCH: usize = 200;

/// Sign-ins per page of the history.
pub const MAX_HISTORY_PER_PAGE: u32 = 100;

/// Revocations per reply. At 150 bytes each it stays below 1 MB.
pub const MAX_REVOCATIONS_PER_PAGE: usize = 5_000;

service! {
    /// Accounts, sessions, sign-in and roles.
    pub trait Auth as "auth" -> Error {
        /// Creates an account and signs its owner in.
        async fn register(Register) -> SignedIn;
        /// Signs in with e-mail address and password.
        async fn login(Login) -> LoginOutcome;
        /// Completes a sign-in with the second factor.
        async fn pass_second_factor(PassSecondFactor) -> SignedIn;
        /// Exchanges a refresh token for a new pair of tokens. The old one becomes invalid.
        async fn refresh(Refresh) -> SignedIn;
        /// Ends one session of the user, or all of them.
        @idempotent async fn logout(Logout) -> Done;
        /// Returns the calling user's account.
        @idempotent async fn me(Me) -> Account;
        /// Changes the calling user's profile.
        @idempotent async fn change_profile(ChangeProfile) -> Account;
        /// Sets a new password, ends every session and opens a new one for the caller.
        async fn change_password(ChangePassword) -> SignedIn;
        /// Mails a link to set a new password. The reply is the same for unknown addresses.
        async fn forgot_password(ForgotPassword) -> Done;
        /// Sets a new password with a mailed link and ends every session.
        async fn reset_password(ResetPassword) -> Done;
        /// Mails the calling user a link to verify their address.
        async fn request_email_verification(RequestEmailVerification) -> Done;
        /// Verifies an address with a mailed link.
        async fn verify_email(VerifyEmail) -> Done;
        /// Closes the calling user's account. Personal data is erased after a retention period.
        async fn delete_account(DeleteAccount) -> Done;
        /// Creates a secret for the calling user's authenticator app.
        async fn enrol_second_factor(EnrolSecondFactor) -> Enrolment;
        /// Turns the calling user's second factor on, ends every session and opens a new one for
        /// the caller.
        async fn confirm_second_factor(ConfirmSecondFactor) -> SecondFactorConfirmed;
        /// Turns the calling user's second factor off, ends every session and opens a new one for
        /// the caller.
        async fn disable_second_factor(DisableSecondFactor) -> SignedIn;
        /// Replaces the calling user's recovery codes.
        async fn renew_recovery_codes(RenewRecoveryCodes) -> RecoveryCodes;
        /// Turns a user's second factor off and ends their sessions. For the platform itself.
        async fn reset_second_factor(ResetSecondFactor) -> Done;
        /// Starts an identity verification of the calling user.
        async fn start_identity(StartIdentity) -> IdentityStarted;
        /// Gets the verified identity of the calling user from the provider and stores it. A person
        /// may have one account.
        async fn complete_identity(CompleteIdentity) -> Account;
        /// Returns the verified identity of a user. For admins and other roles.
        @idempotent async fn identity(IdentityOf) -> KnownIdentity;
        /// Returns the calling user's sessions, most recently used first.
        @idempotent async fn sessions(ListSessions) -> Sessions;
        /// Ends one of the calling user's sessions.
        async fn end_session(EndSession) -> Done;
        /// Returns the calling user's sign-ins, newest first.
        @idempotent async fn login_history(ListLogins) -> Logins;
        /// Returns names of accounts. For admins and other roles.
        @idempotent async fn users(UsersOf) -> Users;
        /// Changes the role of an account and ends its sessions. For admins.
        @idempotent async fn set_role(SetRole) -> Account;
        /// Returns recently ended sessions, whose access tokens must be rejected. For other roles.
        @idempotent async fn revocations(RevocationsSince) -> Revocations;
        /// Returns the enabled social sign-in providers.
        @idempotent async fn providers(ListProviders) -> Providers;
        /// Signs in with a Google ID token. Creates an account for a new user who agreed to the
        /// terms.
        async fn google(GoogleSignIn) -> GoogleSignedIn;
        /// Starts a redirect sign-in at a provider.
        async fn begin_trip(BeginRedirect) -> RedirectSignIn;
        /// Completes a redirect sign-in: the user is signed in, is offered an account, or has
        /// linked one.
        async fn end_trip(CompleteRedirect) -> RedirectCompleted;
        /// Creates the account offered by a redirect sign-in, and signs its owner in.
        async fn sign_up(SignUp) -> LoginOutcome;
        /// Returns the sign-in methods of the calling user.
        @idempotent async fn linked_accounts(ListLinked) -> LinkedAccounts;
        /// Links an account of a provider to the calling user's account.
        async fn link_account(LinkAccount) -> LinkOutcome;
        /// Removes such a link. The last sign-in method cannot be removed.
        async fn unlink_account(UnlinkAccount) -> Done;
        /// Ensures that an admin exists. For the platform itself.
        async fn ensure_admin(EnsureAdmin) -> Admin;
    }
}

/// A secret string, such as a password or a token. `Debug` does not print it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sensitive(String);

impl Sensitive {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the secret. The name makes each use visible in code review.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl JsonSchema for Sensitive {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Sensitive".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

impl fmt::Debug for Sensitive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sensitive(…)")
    }
}

/// Origin of a request, for the sign-in history and the throttling of password guesses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Client IP address from a trusted hop. Empty if unknown.
    pub address: String,
    /// `User-Agent` header of the client.
    pub agent: String,
}

/// Success without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {}
