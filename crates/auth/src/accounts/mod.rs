//! Accounts: registration, reading, changing and closing.

pub(crate) mod closing;
pub(crate) mod import;
pub(crate) mod roles;
pub(crate) mod routes;
pub(crate) mod rules;
pub(crate) mod store;
pub(crate) mod verification;

use std::time::Duration;

use urr_contracts::auth::{
    Account, AccountStatus, ChangeProfile, Error, LoginMethod, Register, SignedIn, TermsKind,
};
use urr_db::{Tx, transaction};
use urr_kernel::{CommonError, Role, UserId};
use urr_rpc::Ctx;

use crate::{
    Failure, lockout, mail, passwords,
    service::Service,
    sessions::{self, Opened},
};
use rules::NewAccount;

/// An account id that never exists. Reading and writing with it costs the same as for a real one.
pub(crate) const NOBODY: UserId = UserId::from_uuid(uuid::Uuid::nil());

/// Minimum interval between mails to an owner whose address is used in a registration.
const TELL_OWNER_EVERY: Duration = Duration::from_hours(24);

/// Creates an account and signs it in. A registered address is refused with `AlreadyRegistered`,
/// and its owner gets a mail.
pub(crate) async fn register(service: &Service, request: &Register) -> Result<SignedIn, Failure> {
    let new = rules::check(request, &service.settings.terms_version)?;
    passwords::rules::check(request.password.expose(), &new.email, &new.name)?;
    let origin = sessions::rules::clean(&request.origin);
    lockout::check_registration(service, &origin)?;
    let hash = service.pool.enter()?.make(request.password.expose()).await?;
    let account = Account {
        id: service.ids.next(),
        email: new.email.clone(),
        email_verified: false,
        name: new.name.clone(),
        phone: new.phone.clone(),
        role: Role::User,
        status: AccountStatus::Active,
        language: request.language,
        marketing: new.marketing(),
        second_factor: false,
        identity_verified_at: None,
        created_at: service.clock.now(),
    };
    let opened = transaction!(service.db, "auth.register", async |tx: &mut Tx<'_>| {
        if !insert(service, tx, &account, &new, Some(&hash)).await? {
            return tell_owner(service, tx, &account.email).await;
        }
        mail::queue(service, tx, account.id, mail::Kind::VerifyEmail).await?;
        sessions::open_proven(service, tx, &account, LoginMethod::Password, &origin).await.map(Some)
    })?;
    service.mails.nudge();
    let Some(Opened { signed_in, ended }) = opened else {
        lockout::count_taken_address(service, &origin);
        return Err(Error::AlreadyRegistered.into());
    };
    debug_assert!(ended.is_empty(), "a new account has no sessions to end");
    Ok(signed_in)
}

/// Inserts an account and its consents. Returns `false` if the address already has an account.
pub(crate) async fn insert(
    service: &Service,
    tx: &mut Tx<'_>,
    account: &Account,
    new: &NewAccount,
    hash: Option<&str>,
) -> Result<bool, Failure> {
    if !store::insert((&service.vault, &service.ids), tx, account, hash).await? {
        return Ok(false);
    }
    for (kind, agreed) in &new.decisions {
        agree(service, tx, account.id, (*kind, *agreed)).await?;
    }
    Ok(true)
}

async fn agree(
    service: &Service,
    tx: &mut Tx<'_>,
    account: UserId,
    (kind, agreed): (TermsKind, bool),
) -> Result<(), Failure> {
    let decision = (kind, service.settings.terms_version.as_str(), agreed);
    Ok(store::agree(tx, service.ids.next(), account, decision, service.clock.now()).await?)
}

/// Mails the owner of an address that it was used in a registration.
pub(crate) async fn tell_owner(
    service: &Service,
    tx: &mut Tx<'_>,
    email: &str,
) -> Result<Option<Opened>, Failure> {
    let (key, now) = (service.vault.index("taken", email), service.clock.now());
    if lockout::store::once(tx, &key, now, now.after(TELL_OWNER_EVERY)).await?
        && let Some(owner) = store::by_email(&service.vault, tx, email).await?
    {
        mail::queue(service, tx, owner.account.id, mail::Kind::AlreadyRegistered).await?;
    }
    Ok(None)
}

/// The caller's account.
pub(crate) async fn me(service: &Service, ctx: &Ctx) -> Result<Account, Failure> {
    let user = ctx.user()?;
    let found = service
        .db
        .read("auth.me", async |tx: &mut Tx<'_>| store::get(&service.vault, tx, user).await)
        .await?;
    Ok(own(found)?.account)
}

/// Updates the caller's profile.
pub(crate) async fn change_profile(
    service: &Service,
    ctx: &Ctx,
    request: &ChangeProfile,
) -> Result<Account, Failure> {
    let user = ctx.user()?;
    let name = request.name.as_deref().map(rules::name).transpose()?;
    let phone = request.phone.as_deref().map(rules::phone).transpose()?;
    transaction!(service.db, "auth.change_profile", async |tx: &mut Tx<'_>| {
        let mut account = own(store::lock(&service.vault, tx, user).await?)?.account;
        if let Some(name) = &name {
            account.name.clone_from(name);
        }
        if let Some(phone) = &phone {
            account.phone.clone_from(phone);
        }
        account.language = request.language.unwrap_or(account.language);
        if let Some(marketing) = request.marketing.filter(|wanted| *wanted != account.marketing) {
            account.marketing = marketing;
            agree(service, tx, user, (TermsKind::Marketing, marketing)).await?;
        }
        let keys = (&service.vault, &service.ids);
        store::set_profile(keys, tx, &account, service.clock.now()).await?;
        Ok(account)
    })
}

/// Returns the caller's account, or `Required` if it was closed after sign-in.
pub(crate) fn own(found: Option<store::Stored>) -> Result<store::Stored, Error> {
    found.filter(store::Stored::is_open).ok_or(Error::Common(CommonError::SignInRequired))
}
