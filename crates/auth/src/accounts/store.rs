//! SQL statements and rows of accounts.

use urr_contracts::auth::{Account, AccountStatus, TermsKind};
use urr_db::{EnumText, Error, Row, Tx, statements};
use urr_kernel::{Ids, Role, Timestamp, UserId};
use uuid::Uuid;

use crate::{
    Failure,
    passwords::MAX_BCRYPT_COST,
    pii::{CellRef, Vault},
};

statements! {
    /// Inserts an account, unless its address already has one.
    INSERT = "
        insert into accounts (id, email_index, email, name, phone, pii_key, password_hash, role, status, language,
                              marketing, email_verified_at, last_login_at, created_at, updated_at)
        values ($1, $2, $3, $4, $5, $6, $7, $8, 'active', $9, $10, $11, $12, $12, $12)
        on conflict (email_index) where status <> 'deleted' do nothing";

    /// The highest bcrypt cost among imported hashes, up to the maximum that is verified.
    IMPORTED = "
        select substr(password_hash, 5, 2) from accounts
         where substr(password_hash, 2, 1) = '2' and substr(password_hash, 5, 2) <= $1
         order by substr(password_hash, 5, 2) desc limit 1";

    /// Loads an account that is not erased.
    GET = "
        select id, email, name, phone, role, status, language, marketing, email_verified_at, created_at, password_hash,
               identity_verified_at, second_factor_at
          from accounts where id = $1 and erased_at is null";

    /// Loads several accounts. The ids are a JSON array, because SQLite has no array parameters; it
    /// stores a UUID as sixteen bytes.
    GET_MANY =
        sqlite "
        select id, email, name, phone, role, status, language, marketing, email_verified_at, created_at, password_hash,
               identity_verified_at, second_factor_at
          from accounts where id in (select unhex(value) from json_each($1)) and erased_at is null"
        postgres "
        select id, email, name, phone, role, status, language, marketing, email_verified_at, created_at, password_hash,
               identity_verified_at, second_factor_at
          from accounts where id in (select value::uuid from jsonb_array_elements_text($1::jsonb)) and erased_at is null";

    /// Loads and locks an account.
    LOCK = locking "
        select id, email, name, phone, role, status, language, marketing, email_verified_at, created_at, password_hash,
               identity_verified_at, second_factor_at
          from accounts where id = $1 and erased_at is null";

    /// Loads the open account of an address.
    BY_EMAIL = "
        select id, email, name, phone, role, status, language, marketing, email_verified_at, created_at, password_hash,
               identity_verified_at, second_factor_at
          from accounts where email_index = $1 and status <> 'deleted'";

    /// Locks every open administrator account, in id order.
    LOCK_ADMINS = locking "select id from accounts where role = 'admin' and status <> 'deleted' order by id";

    /// Updates the fields that the owner can change.
    SET_PROFILE = "
        update accounts set email = $2, name = $3, phone = $4, pii_key = $5, language = $6, marketing = $7,
                            updated_at = $8
         where id = $1";

    /// Updates the password hash.
    SET_PASSWORD = "update accounts set password_hash = $2, updated_at = $3 where id = $1";

    /// Records a sign-in, which also reactivates a dormant account.
    SIGNED_IN = "
        update accounts set status = 'active', last_login_at = $2, updated_at = $2 where id = $1 and status <> 'deleted'";

    /// Marks the address as verified.
    VERIFIED = "
        update accounts set email_verified_at = $2, updated_at = $2 where id = $1 and email_verified_at is null";

    /// Updates the role.
    SET_ROLE = "update accounts set role = $2, updated_at = $3 where id = $1";

    /// Marks an account as closed.
    CLOSE = "
        update accounts set status = 'deleted', deleted_at = $2, updated_at = $2 where id = $1 and status <> 'deleted'";

    /// Inserts one decision about the terms.
    AGREE = "insert into terms_agreements (id, account_id, kind, version, agreed, at) values ($1, $2, $3, $4, $5, $6)";
}

/// An account with the fields that only this crate may read.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) account: Account,
    pub(crate) password_hash: Option<String>,
}

impl Stored {
    /// Whether the account can be used to sign in.
    pub(crate) fn is_open(&self) -> bool {
        self.account.status != AccountStatus::Deleted
    }
}

/// A row whose personal data is still encrypted.
struct Sealed {
    account: Account,
    email: Vec<u8>,
    name: Vec<u8>,
    phone: Option<Vec<u8>>,
    password_hash: Option<String>,
}

fn sealed(row: &Row<'_>) -> Result<Sealed, Error> {
    let (EnumText(role), EnumText(status), EnumText(language)) = (row.get(4)?, row.get(5)?, row.get(6)?);
    let account = Account {
        id: row.get(0)?,
        email: String::new(),
        email_verified: row.get::<Option<Timestamp>>(8)?.is_some(),
        name: String::new(),
        phone: None,
        role,
        status,
        language,
        marketing: row.get(7)?,
        second_factor: row.get::<Option<Timestamp>>(12)?.is_some(),
        identity_verified_at: row.get(11)?,
        created_at: row.get(9)?,
    };
    Ok(Sealed {
        account,
        email: row.get(1)?,
        name: row.get(2)?,
        phone: row.get(3)?,
        password_hash: row.get(10)?,
    })
}

fn opened(vault: &Vault, sealed: Option<Sealed>) -> Result<Option<Stored>, Failure> {
    let Some(Sealed { mut account, email, name, phone, password_hash }) = sealed else { return Ok(None) };
    account.email = vault.open(cell("accounts.email", account.id), &email)?;
    account.name = vault.open(cell("accounts.name", account.id), &name)?;
    account.phone = phone.map(|phone| vault.open(cell("accounts.phone", account.id), &phone)).transpose()?;
    Ok(Some(Stored { account, password_hash }))
}

fn cell(column: &'static str, account: UserId) -> CellRef {
    CellRef { column, row: account.as_uuid() }
}

/// The personal columns of one account, encrypted with the current key.
pub(crate) struct Personal {
    pub(crate) email: Vec<u8>,
    pub(crate) name: Vec<u8>,
    pub(crate) phone: Option<Vec<u8>>,
}

impl Personal {
    pub(crate) fn seal(vault: &Vault, ids: &Ids, account: &Account) -> Self {
        let seal = |column, text: &str| vault.seal(ids, cell(column, account.id), text);
        Self {
            email: seal("accounts.email", &account.email),
            name: seal("accounts.name", &account.name),
            phone: account.phone.as_deref().map(|phone| seal("accounts.phone", phone)),
        }
    }
}

/// The blind index of an address.
pub(crate) fn email_index(vault: &Vault, email: &str) -> Vec<u8> {
    vault.index("email", email)
}

/// Inserts an account. Returns `false` if its address already has one.
pub(crate) async fn insert(
    (vault, ids): (&Vault, &Ids),
    tx: &mut Tx<'_>,
    new: &Account,
    password_hash: Option<&str>,
) -> Result<bool, Error> {
    let personal = Personal::seal(vault, ids, new);
    let made = tx
        .execute(
            &INSERT,
            &[
                &new.id,
                &email_index(vault, &new.email),
                &personal.email,
                &personal.name,
                &personal.phone,
                &vault.key(),
                &password_hash,
                &EnumText(new.role),
                &EnumText(new.language),
                &new.marketing,
                &new.email_verified.then_some(new.created_at),
                &new.created_at,
            ],
        )
        .await?;
    Ok(made == 1)
}

/// Loads an account, including a closed but not an erased one.
pub(crate) async fn get(vault: &Vault, tx: &mut Tx<'_>, id: UserId) -> Result<Option<Stored>, Failure> {
    opened(vault, tx.optional(&GET, &[&id], sealed).await?)
}

/// Loads the existing ones of several accounts, in no particular order.
pub(crate) async fn get_many(vault: &Vault, tx: &mut Tx<'_>, ids: &[UserId]) -> Result<Vec<Stored>, Failure> {
    let ids: Vec<String> = ids.iter().map(|id| id.as_uuid().simple().to_string()).collect();
    let ids = serde_json::to_string(&ids).expect("a list of strings always serialises");
    let found = tx.all(&GET_MANY, &[&ids], sealed).await?;
    found.into_iter().filter_map(|sealed| opened(vault, Some(sealed)).transpose()).collect()
}

/// Loads an account and locks it until the transaction ends.
pub(crate) async fn lock(vault: &Vault, tx: &mut Tx<'_>, id: UserId) -> Result<Option<Stored>, Failure> {
    opened(vault, tx.optional(&LOCK, &[&id], sealed).await?)
}

/// Loads the open account of an address.
pub(crate) async fn by_email(vault: &Vault, tx: &mut Tx<'_>, email: &str) -> Result<Option<Stored>, Failure> {
    opened(vault, tx.optional(&BY_EMAIL, &[&email_index(vault, email)], sealed).await?)
}

/// Returns the highest bcrypt cost, or `None` if no bcrypt hash is left.
pub(crate) async fn imported(tx: &mut Tx<'_>) -> Result<Option<u32>, Error> {
    let most = format!("{MAX_BCRYPT_COST:02}");
    let cost: Option<String> = tx.optional(&IMPORTED, &[&most], |row| row.get(0)).await?;
    Ok(cost.and_then(|cost| cost.parse().ok()))
}

/// Locks every administrator account until the transaction ends.
pub(crate) async fn lock_admins(tx: &mut Tx<'_>) -> Result<Vec<UserId>, Error> {
    tx.all(&LOCK_ADMINS, &[], |row| row.get(0)).await
}

/// Updates the profile.
pub(crate) async fn set_profile(
    (vault, ids): (&Vault, &Ids),
    tx: &mut Tx<'_>,
    account: &Account,
    now: Timestamp,
) -> Result<(), Error> {
    let personal = Personal::seal(vault, ids, account);
    tx.execute(
        &SET_PROFILE,
        &[
            &account.id,
            &personal.email,
            &personal.name,
            &personal.phone,
            &vault.key(),
            &EnumText(account.language),
            &account.marketing,
            &now,
        ],
    )
    .await?;
    Ok(())
}

/// Updates the password hash.
pub(crate) async fn set_password(
    tx: &mut Tx<'_>,
    id: UserId,
    hash: &str,
    now: Timestamp,
) -> Result<(), Error> {
    tx.execute(&SET_PASSWORD, &[&id, &hash, &now]).await?;
    Ok(())
}

/// Records a sign-in. Returns `false` if the account is closed.
pub(crate) async fn signed_in(tx: &mut Tx<'_>, id: UserId, now: Timestamp) -> Result<bool, Error> {
    Ok(tx.execute(&SIGNED_IN, &[&id, &now]).await? == 1)
}

/// Marks the address as verified.
pub(crate) async fn verified(tx: &mut Tx<'_>, id: UserId, now: Timestamp) -> Result<(), Error> {
    tx.execute(&VERIFIED, &[&id, &now]).await?;
    Ok(())
}

/// Updates the role.
pub(crate) async fn set_role(tx: &mut Tx<'_>, id: UserId, role: Role, now: Timestamp) -> Result<(), Error> {
    tx.execute(&SET_ROLE, &[&id, &EnumText(role), &now]).await?;
    Ok(())
}

/// Closes an account. Returns `false` if it was already closed.
pub(crate) async fn close(tx: &mut Tx<'_>, id: UserId, now: Timestamp) -> Result<bool, Error> {
    Ok(tx.execute(&CLOSE, &[&id, &now]).await? == 1)
}

/// Inserts a decision about the terms.
pub(crate) async fn agree(
    tx: &mut Tx<'_>,
    id: Uuid,
    account: UserId,
    (kind, version, agreed): (TermsKind, &str, bool),
    now: Timestamp,
) -> Result<(), Error> {
    tx.execute(&AGREE, &[&id, &account, &EnumText(kind), &version, &agreed, &now]).await?;
    Ok(())
}
