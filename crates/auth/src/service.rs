//! The service: its parts, and the trait's methods.

use std::sync::Arc;

use async_trait::async_trait;
use urr_contracts::auth::{
    Account, Admin, Auth, BeginTrip, ChangePassword, ChangeProfile, CompleteIdentity, ConfirmSecondFactor,
    DeleteAccount, DisableSecondFactor, Done, EndSession, EndTrip, EnrolSecondFactor, Enrolment, EnsureAdmin,
    Error, ForgotPassword, GoogleSignIn, GoogleSignedIn, IdentityOf, IdentityStarted, KnownIdentity,
    LinkAccount, LinkOutcome, LinkedAccounts, ListLinked, ListLogins, ListProviders, ListSessions, Login,
    LoginOutcome, Logins, Logout, Me, PassSecondFactor, Providers, RecoveryCodes, Refresh, Register,
    RenewRecoveryCodes, RequestEmailVerification, ResetPassword, ResetSecondFactor, Revocation, Revocations,
    RevocationsSince, SecondFactorConfirmed, Sessions, SetRole, SignUp, SignedIn, StartIdentity, Trip,
    TripEnd, UnlinkAccount, Users, UsersOf, VerifyEmail,
};
use urr_db::Db;
use urr_kernel::{Actor, Clock, Ids, Role, UserId};
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
    round::Rounds,
    second_factor,
    sessions::{ending, history, login, refresh},
    settings::Settings,
    social::{self, SlipKinds, Social, linking, sign_up, trip},
    trouble::Trouble,
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
    /// Secrets of slips and of refresh token succession: the first signs, all verify.
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
    pub(crate) slips: SlipKinds,
    pub(crate) succession: Succession,
    pub(crate) vault: Vault,
    pub(crate) social: Social,
    pub(crate) pool: Pool,
    pub(crate) brake: Brake,
    pub(crate) rounds: Rounds,
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
            slips: SlipKinds::new(&parts.secrets),
            succession: Succession::new(parts.secrets.iter().map(succession::key)),
            vault: Vault::new(parts.pii),
            social: parts.social,
            pool: Pool::start(parts.settings.hashing, parts.ids.clone()),
            brake: Brake::new(parts.clock.clone()),
            rounds: Rounds::new(),
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

/// Returns the caller's id, or `Required` if there is none.
pub(crate) fn signed_in(ctx: &Ctx) -> Result<UserId, Error> {
    ctx.actor.user().ok_or(Error::Required)
}

/// Returns an error unless the caller is an admin or another role.
pub(crate) fn admin(ctx: &Ctx) -> Result<(), Error> {
    if ctx.actor.is_admin() {
        return Ok(());
    }
    signed_in(ctx)?;
    match ctx.actor {
        Actor::User { role: Role::UnprovenAdmin, .. } => Err(Error::SecondFactorRequired),
        _ => Err(Error::AdminRequired),
    }
}

/// Maps internal errors to public ones.
macro_rules! answer {
    ($ctx:ident, $method:literal, $work:expr) => {
        $work.await.map_err(|trouble: Trouble| trouble.reveal($ctx, $method))
    };
}

#[async_trait]
impl Auth for Service {
    async fn register(&self, ctx: &Ctx, request: Register) -> Result<SignedIn, Error> {
        answer!(ctx, "register", accounts::register(self, &request))
    }

    async fn login(&self, ctx: &Ctx, request: Login) -> Result<LoginOutcome, Error> {
        answer!(ctx, "login", login::login(self, &request))
    }

    async fn pass_second_factor(&self, ctx: &Ctx, request: PassSecondFactor) -> Result<SignedIn, Error> {
        answer!(ctx, "pass_second_factor", second_factor::pass(self, &request))
    }

    async fn refresh(&self, ctx: &Ctx, request: Refresh) -> Result<SignedIn, Error> {
        answer!(ctx, "refresh", refresh::refresh(self, &request))
    }

    async fn logout(&self, ctx: &Ctx, request: Logout) -> Result<Done, Error> {
        answer!(ctx, "logout", ending::logout(self, ctx, &request))
    }

    async fn me(&self, ctx: &Ctx, _: Me) -> Result<Account, Error> {
        answer!(ctx, "me", accounts::me(self, ctx))
    }

    async fn change_profile(&self, ctx: &Ctx, request: ChangeProfile) -> Result<Account, Error> {
        answer!(ctx, "change_profile", accounts::change_profile(self, ctx, &request))
    }

    async fn change_password(&self, ctx: &Ctx, request: ChangePassword) -> Result<SignedIn, Error> {
        answer!(ctx, "change_password", passwords::change(self, ctx, &request))
    }

    async fn forgot_password(&self, ctx: &Ctx, request: ForgotPassword) -> Result<Done, Error> {
        answer!(ctx, "forgot_password", passwords::forgot(self, &request))
    }

    async fn reset_password(&self, ctx: &Ctx, request: ResetPassword) -> Result<Done, Error> {
        answer!(ctx, "reset_password", passwords::reset(self, &request))
    }

    async fn request_email_verification(
        &self,
        ctx: &Ctx,
        _: RequestEmailVerification,
    ) -> Result<Done, Error> {
        answer!(ctx, "request_email_verification", verification::request(self, ctx))
    }

    async fn verify_email(&self, ctx: &Ctx, request: VerifyEmail) -> Result<Done, Error> {
        answer!(ctx, "verify_email", verification::verify(self, ctx, &request))
    }

    async fn delete_account(&self, ctx: &Ctx, request: DeleteAccount) -> Result<Done, Error> {
        answer!(ctx, "delete_account", closing::delete_account(self, ctx, &request))
    }

    async fn enrol_second_factor(&self, ctx: &Ctx, request: EnrolSecondFactor) -> Result<Enrolment, Error> {
        answer!(ctx, "enrol_second_factor", second_factor::enrol(self, ctx, &request))
    }

    async fn confirm_second_factor(
        &self,
        ctx: &Ctx,
        request: ConfirmSecondFactor,
    ) -> Result<SecondFactorConfirmed, Error> {
        answer!(ctx, "confirm_second_factor", second_factor::confirm(self, ctx, &request))
    }

    async fn disable_second_factor(
        &self,
        ctx: &Ctx,
        request: DisableSecondFactor,
    ) -> Result<SignedIn, Error> {
        answer!(ctx, "disable_second_factor", second_factor::disable(self, ctx, &request))
    }

    async fn renew_recovery_codes(
        &self,
        ctx: &Ctx,
        request: RenewRecoveryCodes,
    ) -> Result<RecoveryCodes, Error> {
        answer!(ctx, "renew_recovery_codes", second_factor::renew_codes(self, ctx, &request))
    }

    async fn reset_second_factor(&self, ctx: &Ctx, request: ResetSecondFactor) -> Result<Done, Error> {
        answer!(ctx, "reset_second_factor", second_factor::reset(self, ctx, &request))
    }

    async fn start_identity(&self, ctx: &Ctx, _: StartIdentity) -> Result<IdentityStarted, Error> {
        answer!(ctx, "start_identity", identity::start(self, ctx))
    }

    async fn complete_identity(&self, ctx: &Ctx, request: CompleteIdentity) -> Result<Account, Error> {
        answer!(ctx, "complete_identity", identity::complete(self, ctx, request))
    }

    async fn identity(&self, ctx: &Ctx, request: IdentityOf) -> Result<KnownIdentity, Error> {
        answer!(ctx, "identity", identity::identity(self, ctx, request))
    }

    async fn sessions(&self, ctx: &Ctx, request: ListSessions) -> Result<Sessions, Error> {
        answer!(ctx, "sessions", ending::sessions(self, ctx, request))
    }

    async fn end_session(&self, ctx: &Ctx, request: EndSession) -> Result<Done, Error> {
        answer!(ctx, "end_session", ending::end_session(self, ctx, request))
    }

    async fn login_history(&self, ctx: &Ctx, request: ListLogins) -> Result<Logins, Error> {
        answer!(ctx, "login_history", history::login_history(self, ctx, request))
    }

    async fn users(&self, ctx: &Ctx, request: UsersOf) -> Result<Users, Error> {
        answer!(ctx, "users", roles::users(self, ctx, &request))
    }

    async fn set_role(&self, ctx: &Ctx, request: SetRole) -> Result<Account, Error> {
        answer!(ctx, "set_role", roles::set_role(self, ctx, request))
    }

    async fn revocations(&self, ctx: &Ctx, request: RevocationsSince) -> Result<Revocations, Error> {
        answer!(ctx, "revocations", ending::revocations(self, ctx, request))
    }

    async fn providers(&self, _: &Ctx, _: ListProviders) -> Result<Providers, Error> {
        Ok(social::providers(self))
    }

    async fn google(&self, ctx: &Ctx, request: GoogleSignIn) -> Result<GoogleSignedIn, Error> {
        answer!(ctx, "google", social::google(self, &request))
    }

    async fn begin_trip(&self, ctx: &Ctx, request: BeginTrip) -> Result<Trip, Error> {
        answer!(ctx, "begin_trip", trip::begin(self, &request))
    }

    async fn end_trip(&self, ctx: &Ctx, request: EndTrip) -> Result<TripEnd, Error> {
        answer!(ctx, "end_trip", trip::end(self, ctx, &request))
    }

    async fn sign_up(&self, ctx: &Ctx, request: SignUp) -> Result<LoginOutcome, Error> {
        answer!(ctx, "sign_up", sign_up::sign_up(self, &request))
    }

    async fn linked_accounts(&self, ctx: &Ctx, _: ListLinked) -> Result<LinkedAccounts, Error> {
        answer!(ctx, "linked_accounts", linking::linked_accounts(self, ctx))
    }

    async fn link_account(&self, ctx: &Ctx, request: LinkAccount) -> Result<LinkOutcome, Error> {
        answer!(ctx, "link_account", linking::link(self, ctx, &request))
    }

    async fn unlink_account(&self, ctx: &Ctx, request: UnlinkAccount) -> Result<Done, Error> {
        answer!(ctx, "unlink_account", linking::unlink(self, ctx, &request))
    }

    async fn ensure_admin(&self, ctx: &Ctx, request: EnsureAdmin) -> Result<Admin, Error> {
        answer!(ctx, "ensure_admin", roles::ensure_admin(self, ctx, &request))
    }
}
