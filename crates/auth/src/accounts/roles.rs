//! Administrators, and what other roles may read about users.

use std::collections::HashMap;

use urr_contracts::auth::{
    Account, AccountStatus, Admin, EnsureAdmin, Error, Language, MAX_USERS_PER_BATCH, Revocation, Sensitive,
    SetRole, User, Users, UsersOf,
};
use urr_db::{Tx, transaction};
use urr_kernel::{Actor, CommonError, Role, UserId};
use urr_rpc::Ctx;

use super::{rules, store};
use crate::{
    Failure, passwords,
    service::Service,
    sessions::{self, store::EndReason},
};

/// Alphabet for generated passwords that are read off a screen: no two letters look alike.
pub(crate) const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// 20 letters of 32 are 100 bits.
const PASSWORD_LEN: usize = 20;

/// Returns the names of accounts.
pub(crate) async fn users(service: &Service, ctx: &Ctx, request: &UsersOf) -> Result<Users, Failure> {
    ctx.require_admin()?;
    if !(1..=MAX_USERS_PER_BATCH).contains(&request.users.len()) {
        let reason = format!("A batch has 1 to {MAX_USERS_PER_BATCH} users");
        return Err(rules::invalid("users", &reason).into());
    }
    let found = service.db.read("auth.users", async |tx: &mut Tx<'_>| {
        store::get_many(&service.vault, tx, &request.users).await
    });
    let named = |store::Stored { account, .. }| {
        let Account { id, email, name, role, .. } = account;
        (id, User { id, email, name, role })
    };
    let found: HashMap<UserId, User> = found.await?.into_iter().map(named).collect();
    // In the order of the request, including duplicates.
    Ok(Users { users: request.users.iter().filter_map(|id| found.get(id).cloned()).collect() })
}

/// Changes an account's role.
pub(crate) async fn set_role(service: &Service, ctx: &Ctx, request: SetRole) -> Result<Account, Failure> {
    ctx.require_admin()?;
    if request.role == Role::UnprovenAdmin {
        return Err(rules::invalid("role", "A role is user or admin").into());
    }
    let (account, ended) = transaction!(service.db, "auth.set_role", async |tx: &mut Tx<'_>| {
        let admins = store::lock_admins(tx).await?;
        // The token's role may be stale; the row is current.
        if let Actor::User { id, .. } = ctx.actor
            && !admins.contains(&id)
        {
            return Err(Failure::Refused(Error::Common(CommonError::AdminRequired)));
        }
        let stored = store::lock(&service.vault, tx, request.user).await?;
        let mut account = stored.filter(store::Stored::is_open).ok_or(Error::UserNotFound)?.account;
        if account.role == request.role {
            return Ok((account, Vec::new()));
        }
        if request.role != Role::Admin && admins == [account.id] {
            return Err(Error::LastAdmin.into());
        }
        let ended = change(service, tx, &mut account, request.role).await?;
        Ok((account, ended))
    })?;
    service.announce(&ended);
    let by = ctx.actor.user().map(|user| user.to_string());
    tracing::info!(user = %account.id, role = ?account.role, by, "account role changed");
    Ok(account)
}

async fn change(
    service: &Service,
    tx: &mut Tx<'_>,
    account: &mut Account,
    role: Role,
) -> Result<Vec<Revocation>, Failure> {
    account.role = role;
    store::set_role(tx, account.id, role, service.clock.now()).await?;
    sessions::end_all(service, tx, account.id, EndReason::RoleChanged).await
}

/// There already was an administrator.
const NOTHING: Admin = Admin { user: None, new: false, password: None };

/// Creates or promotes an administrator unless there is one.
pub(crate) async fn ensure_admin(
    service: &Service,
    ctx: &Ctx,
    request: &EnsureAdmin,
) -> Result<Admin, Failure> {
    if ctx.actor != Actor::System {
        return Err(CommonError::AdminRequired.into());
    }
    let (email, name) = (rules::email(&request.email)?, rules::name(&request.name)?);
    let made_up = match &request.password {
        Some(wanted) => passwords::rules::check(wanted.expose(), &email, &name).map(|()| None)?,
        None => Some(password(service.ids.bytes())),
    };
    let password = request.password.as_ref().or(made_up.as_ref()).expect("either given or generated");
    let hash = service.pool.enter()?.make(password.expose()).await?;
    let account = Account {
        id: service.ids.next(),
        email,
        // The operator who runs the command vouches for the address.
        email_verified: true,
        name,
        phone: None,
        role: Role::Admin,
        status: AccountStatus::Active,
        language: Language::default(),
        marketing: false,
        second_factor: false,
        identity_verified_at: None,
        created_at: service.clock.now(),
    };
    let (made, ended) = transaction!(service.db, "auth.ensure_admin", async |tx: &mut Tx<'_>| {
        if request.only_if_none && !store::lock_admins(tx).await?.is_empty() {
            return Ok((NOTHING, Vec::new()));
        }
        if store::insert((&service.vault, &service.ids), tx, &account, Some(&hash)).await? {
            let made = Admin { user: Some(account.id), new: true, password: made_up.clone() };
            return Ok((made, Vec::new()));
        }
        promote(service, tx, &account.email, request.promote).await
    })?;
    service.announce(&ended);
    if let Some(user) = made.user {
        tracing::info!(%user, new = made.new, "administrator created or promoted");
    }
    Ok(made)
}

async fn promote(
    service: &Service,
    tx: &mut Tx<'_>,
    email: &str,
    vouched_for: bool,
) -> Result<(Admin, Vec<Revocation>), Failure> {
    let found = store::by_email(&service.vault, tx, email).await?.ok_or(CommonError::Unavailable)?;
    let id: UserId = found.account.id;
    let mut account = store::lock(&service.vault, tx, id).await?.ok_or(CommonError::Unavailable)?.account;
    if account.role == Role::Admin {
        return Ok((NOTHING, Vec::new()));
    }
    if !vouched_for {
        return Err(Error::AlreadyRegistered.into());
    }
    let ended = change(service, tx, &mut account, Role::Admin).await?;
    Ok((Admin { user: Some(id), new: false, password: None }, ended))
}

fn password(random: [u8; PASSWORD_LEN]) -> Sensitive {
    // 256 is a multiple of 32, so all letters are equally likely.
    Sensitive::new(random.iter().map(|byte| char::from(LETTERS[usize::from(*byte) % 32])).collect::<String>())
}
