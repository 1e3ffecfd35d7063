//! The second factor. It is optional, but an installation can require it of administrators.
//!
//! Turning it on or off ends every session and opens a new one, so all sessions of an account with
//! a second factor were opened with it, and no state per session is needed. [`sessions::open`]
//! requires it after any first factor.

pub(crate) mod routes;
pub(crate) mod rules;
pub(crate) mod store;
mod tried;

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use urr_contracts::auth::{
    Account, ConfirmSecondFactor, DisableSecondFactor, Done, EnrolSecondFactor, Enrolment, Error,
    LoginMethod, Origin, PassSecondFactor, RecoveryCodes, RenewRecoveryCodes, ResetSecondFactor, Revocation,
    SecondFactorConfirmed, Sensitive, SignedIn,
};
use urr_db::{Tx, transaction};
use urr_kernel::{Actor, CommonError, UserId};
use urr_passes::challenge;
use urr_rpc::Ctx;

use crate::{
    Failure,
    accounts::{self, own, store::Stored},
    lockout, mail,
    service::Service,
    sessions::{self, Opened, owner, store::EndReason},
};
use rules::{SECRET_LEN, Typed};
use tried::Tried;

/// How long a new secret can be confirmed.
const ENROLMENT: Duration = Duration::from_hours(1);

/// Creates a secret for the caller's authenticator app. The second factor is not on yet.
pub(crate) async fn enrol(
    service: &Service,
    ctx: &Ctx,
    request: &EnrolSecondFactor,
) -> Result<Enrolment, Failure> {
    let user = ctx.user()?;
    let origin = sessions::rules::clean(&request.origin);
    let owner = owner::prove(service, user, &request.proof, &origin).await?;
    let secret = rules::base32(&service.ids.bytes::<SECRET_LEN>());
    let account = transaction!(service.db, "auth.enrol_second_factor", async |tx: &mut Tx<'_>| {
        let account = owner.accept(service, tx).await?.account;
        let (keys, now) = ((&service.vault, &service.ids), service.clock.now());
        let kept = store::enrol(keys, tx, user, &secret, now).await?;
        if kept { Ok(account) } else { Err(Failure::Refused(Error::SecondFactorOn)) }
    })?;
    owner.settle(service);
    let uri = rules::uri(&account.email, &secret);
    Ok(Enrolment { secret: Sensitive::new(secret), uri })
}

/// Turns the caller's second factor on.
pub(crate) async fn confirm(
    service: &Service,
    ctx: &Ctx,
    request: &ConfirmSecondFactor,
) -> Result<SecondFactorConfirmed, Failure> {
    let (user, codes) = (ctx.user()?, recovery_codes(service));
    let origin = sessions::rules::clean(&request.origin);
    let tried = Tried::begin(service, user, &origin, LoginMethod::SecondFactor).await?;
    let outcome = transaction!(service.db, "auth.confirm_second_factor", async |tx: &mut Tx<'_>| {
        let now = service.clock.now();
        let mut account = own(accounts::store::lock(&service.vault, tx, user).await?)?.account;
        let factor = store::get(&service.vault, tx, user).await?.ok_or(Error::SecondFactorOff)?;
        if factor.confirmed {
            return Err(Failure::Refused(Error::SecondFactorOn));
        }
        if factor.created_at.after(ENROLMENT) <= now {
            return Err(Error::SecondFactorOff.into());
        }
        let Some(Typed::Digits(digits)) = rules::typed(&request.code) else {
            return Err(Error::WrongCode.into());
        };
        accept_digits(service, tx, (user, &factor), &digits).await?;
        store::confirm(tx, user, now).await?;
        store::set_codes(&service.vault, tx, user, &codes).await?;
        tried.forgive(tx).await?;
        account.second_factor = true;
        reopen(service, tx, &account, &origin).await
    });
    let (opened, ended) = tried.settle(service, outcome).await?;
    let signed_in = announce(service, opened, ended);
    Ok(SecondFactorConfirmed {
        signed_in,
        recovery_codes: codes.iter().map(|code| rules::shown(code)).collect(),
    })
}

/// Turns the caller's second factor off.
pub(crate) async fn disable(
    service: &Service,
    ctx: &Ctx,
    request: &DisableSecondFactor,
) -> Result<SignedIn, Failure> {
    let user = ctx.user()?;
    let origin = sessions::rules::clean(&request.origin);
    let owner = owner::prove(service, user, &request.proof, &origin).await?;
    let tried = Tried::begin(service, user, &origin, LoginMethod::SecondFactor).await?;
    let outcome = transaction!(service.db, "auth.disable_second_factor", async |tx: &mut Tx<'_>| {
        let mut account = owner.accept(service, tx).await?.account;
        use_code(service, tx, user, &request.code).await?;
        store::remove(tx, user, service.clock.now()).await?;
        tried.forgive(tx).await?;
        account.second_factor = false;
        reopen(service, tx, &account, &origin).await
    });
    let (opened, ended) = tried.settle(service, outcome).await?;
    owner.settle(service);
    Ok(announce(service, opened, ended))
}

/// Replaces the caller's recovery codes.
pub(crate) async fn renew_codes(
    service: &Service,
    ctx: &Ctx,
    request: &RenewRecoveryCodes,
) -> Result<RecoveryCodes, Failure> {
    let (user, codes) = (ctx.user()?, recovery_codes(service));
    let origin = sessions::rules::clean(&request.origin);
    let tried = Tried::begin(service, user, &origin, LoginMethod::SecondFactor).await?;
    let outcome = transaction!(service.db, "auth.renew_recovery_codes", async |tx: &mut Tx<'_>| {
        own(accounts::store::lock(&service.vault, tx, user).await?)?;
        use_code(service, tx, user, &request.code).await?;
        store::set_codes(&service.vault, tx, user, &codes).await?;
        tried.forgive(tx).await?;
        mail::queue(service, tx, user, mail::Kind::SecondFactorChanged).await
    });
    tried.settle(service, outcome).await?;
    service.mails.nudge();
    Ok(RecoveryCodes { recovery_codes: codes.iter().map(|code| rules::shown(code)).collect() })
}

/// Verifies the second factor after the first, and opens the session.
pub(crate) async fn pass(service: &Service, request: &PassSecondFactor) -> Result<SignedIn, Failure> {
    let verified = service.challenges.verify(request.challenge.expose(), service.clock.now());
    let challenge = verified.map_err(|_| Error::ChallengeInvalid)?;
    let method: LoginMethod = urr_db::parse_enum(&challenge.method).ok_or(Error::ChallengeInvalid)?;
    let (user, origin) = (challenge.user, sessions::rules::clean(&request.origin));
    let tried = Tried::begin(service, user, &origin, method).await?;
    let outcome = transaction!(service.db, "auth.pass_second_factor", async |tx: &mut Tx<'_>| {
        let stored = accounts::store::lock(&service.vault, tx, user).await?.filter(Stored::is_open);
        let stored = stored.filter(|stored| state(service, stored) == challenge.state);
        let stored = stored.ok_or(Error::ChallengeInvalid)?;
        use_code(service, tx, user, &request.code).await?;
        use_challenge(service, tx, &request.challenge).await?;
        tried.forgive(tx).await?;
        sessions::open_proven(service, tx, &stored.account, method, &origin).await
    });
    let outcome = tried.settle(service, outcome).await;
    let label = if outcome.is_ok() { "signed_in" } else { "refused" };
    metrics::counter!("urr_auth_logins_total", "method" => "second_factor", "outcome" => label).increment(1);
    let Opened { signed_in, ended } = outcome?;
    service.announce(&ended);
    Ok(signed_in)
}

/// Turns off an account's second factor. For operators.
pub(crate) async fn reset(
    service: &Service,
    ctx: &Ctx,
    request: &ResetSecondFactor,
) -> Result<Done, Failure> {
    if ctx.actor != Actor::System {
        return Err(CommonError::AdminRequired.into());
    }
    let email = accounts::rules::email(&request.email)?;
    let ended = transaction!(service.db, "auth.reset_second_factor", async |tx: &mut Tx<'_>| {
        let found =
            accounts::store::by_email(&service.vault, tx, &email).await?.ok_or(Error::UserNotFound)?;
        let user = found.account.id;
        own(accounts::store::lock(&service.vault, tx, user).await?)?;
        if !store::is_on(tx, user).await? {
            return Err(Failure::Refused(Error::SecondFactorOff));
        }
        store::remove(tx, user, service.clock.now()).await?;
        mail::queue(service, tx, user, mail::Kind::SecondFactorChanged).await?;
        tracing::info!(%user, "second factor removed by an operator");
        sessions::end_all(service, tx, user, EndReason::SecondFactorChanged).await
    })?;
    service.announce(&ended);
    service.mails.nudge();
    Ok(Done {})
}

/// A digest of an account's secrets. A challenge from before a change of them is invalid.
pub(crate) fn state(service: &Service, stored: &Stored) -> String {
    let hash = stored.password_hash.as_deref().unwrap_or_default();
    URL_SAFE_NO_PAD.encode(service.vault.index("challenge", &format!("{} {hash}", stored.account.id)))
}

/// Uses up a challenge: it opens one session. A wrong code does not use it up, because its
/// transaction is rolled back.
async fn use_challenge(service: &Service, tx: &mut Tx<'_>, challenge: &Sensitive) -> Result<(), Failure> {
    // The signed part without the signature, which has several valid encodings.
    let text = challenge.expose();
    let signed = text.rsplit_once('.').map_or(text, |(signed, _)| signed);
    let (key, now) = (service.vault.index("challenge used", signed), service.clock.now());
    let fresh = lockout::store::once(tx, &key, now, now.after(challenge::LIFETIME)).await?;
    if fresh { Ok(()) } else { Err(Error::ChallengeInvalid.into()) }
}

/// Uses up a code of either kind. The account is locked, so a code sent twice at once is accepted
/// once.
async fn use_code(service: &Service, tx: &mut Tx<'_>, user: UserId, code: &Sensitive) -> Result<(), Failure> {
    let factor = store::get(&service.vault, tx, user).await?.filter(|factor| factor.confirmed);
    let factor = factor.ok_or(Error::SecondFactorOff)?;
    match rules::typed(code) {
        Some(Typed::Digits(digits)) => accept_digits(service, tx, (user, &factor), &digits).await,
        Some(Typed::Recovery(code)) if store::use_code(&service.vault, tx, user, &code).await? => Ok(()),
        _ => Err(Error::WrongCode.into()),
    }
}

async fn accept_digits(
    service: &Service,
    tx: &mut Tx<'_>,
    (user, factor): (UserId, &store::Factor),
    digits: &str,
) -> Result<(), Failure> {
    let step = rules::step(&factor.secret, digits, service.clock.now(), factor.last_step);
    let step = step.ok_or(Error::WrongCode)?;
    if store::accept(tx, user, step).await? { Ok(()) } else { Err(Error::WrongCode.into()) }
}

fn recovery_codes(service: &Service) -> Vec<String> {
    (0..rules::RECOVERY_CODES).map(|_| rules::recovery_code(service.ids.bytes())).collect()
}

/// Ends every session and opens a new one for the caller, so that no session without the second
/// factor remains.
async fn reopen(
    service: &Service,
    tx: &mut Tx<'_>,
    account: &Account,
    origin: &Origin,
) -> Result<(Opened, Vec<Revocation>), Failure> {
    let ended = sessions::end_all(service, tx, account.id, EndReason::SecondFactorChanged).await?;
    mail::queue(service, tx, account.id, mail::Kind::SecondFactorChanged).await?;
    let opened = sessions::open_proven(service, tx, account, LoginMethod::SecondFactor, origin).await?;
    Ok((opened, ended))
}

fn announce(service: &Service, opened: Opened, mut ended: Vec<Revocation>) -> SignedIn {
    ended.extend(opened.ended);
    service.announce(&ended);
    service.mails.nudge();
    opened.signed_in
}
