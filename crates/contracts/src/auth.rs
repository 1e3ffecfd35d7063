//! Accounts, sessions and who may do what.

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

/// Accounts one batch may ask for. At 300 bytes each the answer stays below 64 kB.
pub const MAX_USERS_PER_BATCH: usize = 200;

/// Sign-ins one page of the history may list.
pub const MAX_HISTORY_PER_PAGE: u32 = 100;

/// Revocations one answer may list. At 150 bytes each it stays below 1 MB.
pub const MAX_REVOCATIONS_PER_PAGE: usize = 5_000;

service! {
    /// Accounts, sessions and who may do what.
    pub trait Auth as "auth" -> Error {
        /// Makes an account and signs its owner in.
        async fn register(Register) -> SignedIn;
        /// Signs in with address and password.
        async fn login(Login) -> LoginOutcome;
        /// Shows the second factor after the first, and signs in.
        async fn pass_second_factor(PassSecondFactor) -> SignedIn;
        /// Exchanges a refresh token for a new pair. The old one is worth nothing afterwards.
        async fn refresh(Refresh) -> SignedIn;
        /// Ends a session, or all of the user's. Asking twice is as good as asking once.
        @idempotent async fn logout(Logout) -> Done;
        /// The calling user's account.
        @idempotent async fn me(Me) -> Account;
        /// Changes what the calling user may change about their own account.
        @idempotent async fn change_profile(ChangeProfile) -> Account;
        /// Sets a new password, ends every session and opens a new one for the caller.
        async fn change_password(ChangePassword) -> SignedIn;
        /// Mails a link with which a new password can be set. The answer is the same for unknown addresses.
        async fn forgot_password(ForgotPassword) -> Done;
        /// Sets a new password with a mailed link and ends every session.
        async fn reset_password(ResetPassword) -> Done;
        /// Mails the calling user a link that proves their address.
        async fn request_email_verification(RequestEmailVerification) -> Done;
        /// Proves an address with a mailed link.
        async fn verify_email(VerifyEmail) -> Done;
        /// Closes the calling user's account. Personal data is erased after a while.
        async fn delete_account(DeleteAccount) -> Done;
        /// Makes a secret for the calling user's authenticator app.
        async fn enrol_second_factor(EnrolSecondFactor) -> Enrolment;
        /// Turns the calling user's second factor on, ends every session and opens a new one for the caller.
        async fn confirm_second_factor(ConfirmSecondFactor) -> SecondFactorConfirmed;
        /// Turns the calling user's second factor off, ends every session and opens a new one for the caller.
        async fn disable_second_factor(DisableSecondFactor) -> SignedIn;
        /// Replaces the calling user's recovery codes.
        async fn renew_recovery_codes(RenewRecoveryCodes) -> RecoveryCodes;
        /// Turns somebody's second factor off and ends their sessions. For the platform itself.
        async fn reset_second_factor(ResetSecondFactor) -> Done;
        /// Begins to verify who the calling user is.
        async fn start_identity(StartIdentity) -> IdentityStarted;
        /// Asks the provider who the calling user is and keeps it. A person has one account.
        async fn complete_identity(CompleteIdentity) -> Account;
        /// Who a user is. For admins and for other roles.
        @idempotent async fn identity(IdentityOf) -> KnownIdentity;
        /// The calling user's sessions, the last used first.
        @idempotent async fn sessions(ListSessions) -> Sessions;
        /// Ends one of the calling user's sessions.
        async fn end_session(EndSession) -> Done;
        /// The calling user's sign-ins, newest first.
        @idempotent async fn login_history(ListLogins) -> Logins;
        /// Names of accounts. For admins and for other roles.
        @idempotent async fn users(UsersOf) -> Users;
        /// Gives an account another role and ends its sessions. For admins.
        @idempotent async fn set_role(SetRole) -> Account;
        /// Sessions that ended lately: whoever checks access tokens must refuse theirs. For other roles.
        @idempotent async fn revocations(RevocationsSince) -> Revocations;
        /// The providers with whose accounts somebody can sign in.
        @idempotent async fn providers(ListProviders) -> Providers;
        /// Signs in with Google's ID token. Makes an account for somebody new who agreed to the terms.
        async fn google(GoogleSignIn) -> GoogleSignedIn;
        /// Sends a browser to a provider to sign in there.
        async fn begin_trip(BeginTrip) -> Trip;
        /// Takes a browser back from a provider: it signed in, may sign up, or linked an account.
        async fn end_trip(EndTrip) -> TripEnd;
        /// Makes the account that a trip offered, and signs its owner in.
        async fn sign_up(SignUp) -> LoginOutcome;
        /// By what means the calling user can sign in.
        @idempotent async fn linked_accounts(ListLinked) -> LinkedAccounts;
        /// Makes an account elsewhere a way into the calling user's account.
        async fn link_account(LinkAccount) -> LinkOutcome;
        /// Makes it no longer one. The last way in stays.
        async fn unlink_account(UnlinkAccount) -> Done;
        /// Makes sure that there is an admin. For the platform itself.
        async fn ensure_admin(EnsureAdmin) -> Admin;
    }
}

/// A text that must not be seen in logs: a password or a token. `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sensitive(String);

impl Sensitive {
    /// Wraps a secret text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself. Whoever calls this says in the code that they mean to use the secret.
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

/// Where a request comes from, for the sign-in history and for slowing down guessers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The client's IP address, from a trusted hop. Empty when nobody knows.
    pub address: String,
    /// The `User-Agent` the client gave itself.
    pub agent: String,
}

/// Done, and there is nothing to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {}
