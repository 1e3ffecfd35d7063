//! The service: its parts, and the trait's methods.

use std::sync::Arc;

use async_trait::async_trait;
use urr_contracts::auth::{
    Account, Admin, Auth, BeginRedirect, ChangePassword, ChangeProfile, CompleteIdentity, CompleteRedirect,
    ConfirmSecondFactor, DeleteAccount, DisableSecondFactor, Done, EndSession, EnrolSecondFactor, Enrolment,
    EnsureAdmin, Error, ForgotPassword, GoogleSignIn, GoogleSignedIn, IdentityOf, IdentityStarted,
    KnownIdentity, LinkAccount, LinkOutcome, LinkedAccounts, ListLinked, ListLogins, ListProviders,
    ListSessions, Login, LoginOutcome, Logins, Logout, Me, PassSecondFactor, Providers, RecoveryCodes,
    RedirectCompleted, RedirectSignIn, Refresh, Register, RenewRecoveryCodes, RequestEmailVerification,
    ResetPassword, ResetSecondFactor, Revocation, Revocations, RevocationsSince, SecondFactorConfirmed,
    Sessions, SetRole, SignUp, SignedIn, StartIdentity, UnlinkAccount, Users, UsersOf, VerifyEmail,
};
use urr_db::Db;
use urr_kernel::{Clock, Ids};
use urr_mail::{Mailer, Mails};
use urr_passes::{
    Key, Secret,
    access::{Signer, Verifier},
    challenge::Challenges,
    succession::{self, Succession},
};
use urr_rpc::Ctx;

use crate::{
    accounts::{self, closing, roles, verification},
    identity::{self, provider::IdentityProvider},
    lockout::{brake::Brake, limit::LoginLimit},
    passwords::{self, Pool},
    pii::{Pii, Vault},
    scans::Scans,
    second_factor,
    sessions::{ending, history, login, refresh},
    settings::Settings,
    social::{self, Social, StateTokenKinds, linking, redirect, sign_up},
};

/// Called after a revocation is committed, so that verifiers in this process need not poll for it.
pub type OnRevoked = Arc<dyn Fn(&[Revocation]) + Send + Sync>;

/// The parts of the service.
pub struct Parts {
    /// The domain's own database.
    pub db: Db,
    /// The clock.
    pub clock: Clock,
    /// Source of ids, tokens and nonces.
    pub ids: Ids,
    /// Keys of access tokens: the first signs, all verify.
    pub access_keys: Vec<Key>,
    /// Keys of challenges: the first signs, all verify.
    pub challenge_keys: Vec<Key>,
    /// Secrets of state tokens and of refresh token succession: the first signs, all verify.
    pub secrets: Vec<Secret>,
    /// How personal data is stored.
    pub pii: Pii,
    /// Sign-in providers.
    pub social: Social,
    /// The transport of mails.
    pub mailer: Arc<dyn Mailer>,
    /// Identity provider. `None`: identity verification is off.
    pub identity: Option<Arc<dyn IdentityProvider>>,
    /// Called with new revocations.
    pub on_revoked: OnRevoked,
    /// Limit of attempts per account; `None`: no limit.
    pub login_limit: Option<Arc<dyn LoginLimit>>,
    /// The settings.
    pub settings: Settings,
}

/// The local implementation of `Auth`.
pub struct Service {
    pub(crate) db: Db,
    pub(crate) clock: Clock,
    pub(crate) ids: Ids,
    pub(crate) signer: Signer,
    pub(crate) verifier: Verifier,
    pub(crate) challenges: Challenges,
    pub(crate) state_tokens: StateTokenKinds,
    pub(crate) succession: Succession,
    pub(crate) vault: Vault,
    pub(crate) social: Social,
    pub(crate) pool: Pool,
    pub(crate) brake: Brake,
    pub(crate) scans: Scans,
    pub(crate) mails: Mails,
    pub(crate) identity: Option<Arc<dyn IdentityProvider>>,
    pub(crate) on_revoked: OnRevoked,
    pub(crate) login_limit: Option<Arc<dyn LoginLimit>>,
    pub(crate) settings: Settings,
}

impl Service {
    /// Creates the service and starts the hashing threads.
    ///
    /// # Panics
    /// If there is no key or secret to sign with.
    pub(crate) fn new(parts: Parts) -> Self {
        let newest = parts.access_keys.first().expect("access tokens need a key").clone();
        let mails = Mails::new(parts.db.clone(), parts.clock.clone(), parts.ids.clone(), parts.mailer);
        Self {
            db: parts.db,
            mails,
            signer: Signer::new(newest, parts.settings.access_lifetime),
            verifier: Verifier::new(parts.access_keys),
            challenges: Challenges::new(parts.challenge_keys),
            state_tokens: StateTokenKinds::new(&parts.secrets),
            succession: Succession::new(parts.secrets.iter().map(succession::key)),
            vault: Vault::new(parts.pii),
            social: parts.social,
            pool: Pool::start(parts.settings.hashing, parts.ids.clone()),
            brake: Brake::new(parts.clock.clone()),
            scans: Scans::new(),
            clock: parts.clock,
            ids: parts.ids,
            identity: parts.identity,
            on_revoked: parts.on_revoked,
            login_limit: parts.login_limit,
            settings: parts.settings,
        }
    }

    /// Reports revocations to verifiers in this process. Call after the commit only.
    pub(crate) fn announce(&self, ended: &[Revocation]) {
        if !ended.is_empty() {
            (self.on_revoked)(ended);
        }
    }
}

#[async_trait]
impl Auth for Service {
    async fn register(&self, ctx: &Ctx, request: Register) -> Result<SignedIn, Error> {
        ctx.answer("register", accounts::register(self, &request).await)
    }

    async fn login(&self, ctx: &Ctx, request: Login) -> Result<LoginOutcome, Error> {
        ctx.answer("login", login::login(self, &request).await)
    }

    async fn pass_second_factor(&self, ctx: &Ctx, request: PassSecondFactor) -> Result<SignedIn, Error> {
        ctx.answer("pass_second_factor", second_factor::pass(self, &request).await)
    }

    async fn refresh(&self, ctx: &Ctx, request: Refresh) -> Result<SignedIn, Error> {
        ctx.answer("refresh", refresh::refresh(self, &request).await)
    }

    async fn logout(&self, ctx: &Ctx, request: Logout) -> Result<Done, Error> {
        ctx.answer("logout", ending::logout(self, ctx, &request).await)
    }

    async fn me(&self, ctx: &Ctx, _: Me) -> Result<Account, Error> {
        ctx.answer("me", accounts::me(self, ctx).await)
    }

    async fn change_profile(&self, ctx: &Ctx, request: ChangeProfile) -> Result<Account, Error> {
        ctx.answer("change_profile", accounts::change_profile(self, ctx, &request).await)
    }

    async fn change_password(&self, ctx: &Ctx, request: ChangePassword) -> Result<SignedIn, Error> {
        ctx.answer("change_password", passwords::change(self, ctx, &request).await)
    }

    async fn forgot_password(&self, ctx: &Ctx, request: ForgotPassword) -> Result<Done, Error> {
        ctx.answer("forgot_password", passwords::forgot(self, &request).await)
    }

    async fn reset_password(&self, ctx: &Ctx, request: ResetPassword) -> Result<Done, Error> {
        ctx.answer("reset_password", passwords::reset(self, &request).await)
    }

    async fn request_email_verification(
        &self,
        ctx: &Ctx,
        _: RequestEmailVerification,
    ) -> Result<Done, Error> {
        ctx.answer("request_email_verification", verification::request(self, ctx).await)
    }

    async fn verify_email(&self, ctx: &Ctx, request: VerifyEmail) -> Result<Done, Error> {
        ctx.answer("verify_email", verification::verify(self, ctx, &request).await)
    }

    async fn delete_account(&self, ctx: &Ctx, request: DeleteAccount) -> Result<Done, Error> {
        ctx.answer("delete_account", closing::delete_account(self, ctx, &request).await)
    }

    async fn enrol_second_factor(&self, ctx: &Ctx, request: EnrolSecondFactor) -> Result<Enrolment, Error> {
        ctx.answer("enrol_second_factor", second_factor::enrol(self, ctx, &request).await)
    }

    async fn confirm_second_factor(
        &self,
        ctx: &Ctx,
        request: ConfirmSecondFactor,
    ) -> Result<SecondFactorConfirmed, Error> {
        ctx.answer("confirm_second_factor", second_factor::confirm(self, ctx, &request).await)
    }

    async fn disable_second_factor(
        &self,
        ctx: &Ctx,
        request: DisableSecondFactor,
    ) -> Result<SignedIn, Error> {
        ctx.answer("disable_second_factor", second_factor::disable(self, ctx, &request).await)
    }

    async fn renew_recovery_codes(
        &self,
        ctx: &Ctx,
        request: RenewRecoveryCodes,
    ) -> Result<RecoveryCodes, Error> {
        ctx.answer("renew_recovery_codes", second_factor::renew_codes(self, ctx, &request).await)
    }

    async fn reset_second_factor(&self, ctx: &Ctx, request: ResetSecondFactor) -> Result<Done, Error> {
        ctx.answer("reset_second_factor", second_factor::reset(self, ctx, &request).await)
    }

    async fn start_identity(&self, ctx: &Ctx, _: StartIdentity) -> Result<IdentityStarted, Error> {
        ctx.answer("start_identity", identity::start(self, ctx).await)
    }

    async fn complete_identity(&self, ctx: &Ctx, request: CompleteIdentity) -> Result<Account, Error> {
        ctx.answer("complete_identity", identity::complete(self, ctx, request).await)
    }

    async fn identity(&self, ctx: &Ctx, request: IdentityOf) -> Result<KnownIdentity, Error> {
        ctx.answer("identity", identity::identity(self, ctx, request).await)
    }

    async fn sessions(&self, ctx: &Ctx, request: ListSessions) -> Result<Sessions, Error> {
        ctx.answer("sessions", ending::sessions(self, ctx, request).await)
    }

    async fn end_session(&self, ctx: &Ctx, request: EndSession) -> Result<Done, Error> {
        ctx.answer("end_session", ending::end_session(self, ctx, request).await)
    }

    async fn login_history(&self, ctx: &Ctx, request: ListLogins) -> Result<Logins, Error> {
        ctx.answer("login_history", history::login_history(self, ctx, request).await)
    }

    async fn users(&self, ctx: &Ctx, request: UsersOf) -> Result<Users, Error> {
        ctx.answer("users", roles::users(self, ctx, &request).await)
    }

    async fn set_role(&self, ctx: &Ctx, request: SetRole) -> Result<Account, Error> {
        ctx.answer("set_role", roles::set_role(self, ctx, request).await)
    }

    async fn revocations(&self, ctx: &Ctx, request: RevocationsSince) -> Result<Revocations, Error> {
        ctx.answer("revocations", ending::revocations(self, ctx, request).await)
    }

    async fn providers(&self, _: &Ctx, _: ListProviders) -> Result<Providers, Error> {
        Ok(social::providers(self))
    }

    async fn google(&self, ctx: &Ctx, request: GoogleSignIn) -> Result<GoogleSignedIn, Error> {
        ctx.answer("google", social::google(self, &request).await)
    }

    async fn begin_trip(&self, ctx: &Ctx, request: BeginRedirect) -> Result<RedirectSignIn, Error> {
        ctx.answer("begin_trip", redirect::begin(self, &request).await)
    }

    async fn end_trip(&self, ctx: &Ctx, request: CompleteRedirect) -> Result<RedirectCompleted, Error> {
        ctx.answer("end_trip", redirect::end(self, ctx, &request).await)
    }

    async fn sign_up(&self, ctx: &Ctx, request: SignUp) -> Result<LoginOutcome, Error> {
        ctx.answer("sign_up", sign_up::sign_up(self, &request).await)
    }

    async fn linked_accounts(&self, ctx: &Ctx, _: ListLinked) -> Result<LinkedAccounts, Error> {
        ctx.answer("linked_accounts", linking::linked_accounts(self, ctx).await)
    }

    async fn link_account(&self, ctx: &Ctx, request: LinkAccount) -> Result<LinkOutcome, Error> {
        ctx.answer("link_account", linking::link(self, ctx, &request).await)
    }

    async fn unlink_account(&self, ctx: &Ctx, request: UnlinkAccount) -> Result<Done, Error> {
        ctx.answer("unlink_account", linking::unlink(self, ctx, &request).await)
    }

    async fn ensure_admin(&self, ctx: &Ctx, request: EnsureAdmin) -> Result<Admin, Error> {
        ctx.answer("ensure_admin", roles::ensure_admin(self, ctx, &request).await)
    }
}
