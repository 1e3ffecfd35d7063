-- One account. Address, name and phone are sealed values (src/pii); `pii_key` names the key that sealed them.
create table accounts (
    id                uuid        not null primary key,
    -- Keyed hash of the address: how an account is found without reading anybody's address.
    email_index       bytea,
    email             bytea,
    name              bytea,
    phone             bytea,
    pii_key           text        not null,
    -- Argon2id, or bcrypt of an imported account. None: the owner signs in by other means.
    password_hash     text,
    role              text        not null check (role in ('user', 'admin')),
    status            text        not null check (status in ('active', 'dormant', 'deleted')),
    language          text        not null check (language in ('ko', 'en')),
    marketing         boolean     not null,
    email_verified_at timestamptz,
    last_login_at     timestamptz not null,
    created_at        timestamptz not null,
    updated_at        timestamptz not null,
    deleted_at        timestamptz,
    erased_at         timestamptz,
    -- The same instant as in `identities`, so that an account is shown without reading the identity.
    identity_verified_at timestamptz,
    -- The same instant as `second_factors.confirmed_at`, so that a sign-in reads it with the account.
    second_factor_at  timestamptz,
    check ((status = 'deleted') = (deleted_at is not null)),
    -- Until it is erased an account has an address and a name; afterwards nothing personal is left.
    check ((erased_at is null) = (email is not null)),
    check ((erased_at is null) = (email_index is not null)),
    check ((erased_at is null) = (name is not null)),
    check (erased_at is null or (status = 'deleted' and phone is null and password_hash is null))
);
-- One account per address. A closed one does not keep its owner from coming back.
create unique index accounts_by_email on accounts (email_index) where status <> 'deleted';
create index accounts_admins on accounts (id) where role = 'admin';
create index accounts_to_rest on accounts (last_login_at) where status = 'active';
create index accounts_to_erase on accounts (deleted_at) where status = 'deleted' and erased_at is null;
create index accounts_by_key on accounts (pii_key, id) where erased_at is null;
-- Finds the dearest hash among imported accounts, so that comparing a password costs the same for every address. A bcrypt hash is
-- `$2b$10$…`: a 2 in the second place, and the cost in the fifth and sixth.
create index accounts_imported on accounts (substr(password_hash, 5, 2)) where substr(password_hash, 2, 1) = '2';

-- Every decision about the terms, with its version and time. The last one of a kind counts.
create table terms_agreements (
    id         uuid        not null primary key,
    account_id uuid        not null references accounts (id),
    kind       text        not null check (kind in ('SERVICE', 'PRIVACY', 'MARKETING')),
    version    text        not null,
    agreed     boolean     not null,
    at         timestamptz not null
);
create index terms_agreements_by_account on terms_agreements (account_id, kind);

-- One sign-in on one device: the family of its refresh tokens, and the `sid` of its access tokens.
create table sessions (
    id           uuid        not null primary key,
    account_id   uuid        not null references accounts (id),
    method       text        not null,
    address      text        not null,
    agent        text        not null,
    created_at   timestamptz not null,
    last_used_at timestamptz not null,
    -- However often it is refreshed, it ends here.
    expires_at   timestamptz not null,
    ended_at     timestamptz,
    end_reason   text,
    check ((ended_at is null) = (end_reason is null))
);
create index sessions_of_account on sessions (account_id, last_used_at) where ended_at is null;
create index sessions_by_account on sessions (account_id);
create index sessions_by_end on sessions (expires_at);

-- Refresh tokens by their hash. Exchanged ones stay until they would have expired: whoever presents one is a thief.
create table refresh_tokens (
    token_hash bytea       not null primary key,
    session_id uuid        not null references sessions (id),
    created_at timestamptz not null,
    expires_at timestamptz not null,
    rotated_at timestamptz,
    -- Which client exchanged it: that one may ask again for a few seconds.
    rotated_by bytea,
    grace_uses bigint      not null,
    check ((rotated_at is null) = (rotated_by is null))
);
create index refresh_tokens_by_session on refresh_tokens (session_id);
create index refresh_tokens_by_end on refresh_tokens (expires_at);

-- Sessions that ended while access tokens of theirs may be around. Kept for as long as such a token lives.
create table revocations (
    id         uuid        not null primary key,
    account_id uuid        not null,
    session_id uuid        not null,
    at         timestamptz not null
);
create index revocations_by_time on revocations (at, id);

create table login_history (
    id         uuid        not null primary key,
    account_id uuid        not null references accounts (id),
    at         timestamptz not null,
    address    text        not null,
    -- An IPv4 address, or the /64 of an IPv6 one: where the owner is known to be.
    network    text        not null,
    agent      text        not null,
    method     text        not null,
    -- None: it was a success.
    failure    text
);
create index login_history_of_account on login_history (account_id, id);
create index login_history_known on login_history (account_id, network) where failure is null;
create index login_history_by_time on login_history (at);

-- How often something was tried, by a keyed hash of what it was tried on: also addresses without an account, which must
-- not be told apart.
create table attempts (
    key          bytea       not null primary key,
    tries        bigint      not null,
    last_at      timestamptz not null,
    locked_until timestamptz
);
create index attempts_by_time on attempts (last_at);

-- Mailed links by the hash of what they carry. Good once.
create table links (
    token_hash bytea       not null primary key,
    account_id uuid        not null references accounts (id),
    purpose    text        not null check (purpose in ('verify_email', 'reset_password')),
    created_at timestamptz not null,
    expires_at timestamptz not null,
    used_at    timestamptz
);
create index links_of_account on links (account_id, purpose);
create index links_by_end on links (expires_at);

-- What must not change between two starts, such as a fingerprint of the index key.
create table facts (
    name  text  not null primary key,
    value bytea not null
);

-- Verifications that were begun: each is one account's and good once.
create table identity_checks (
    id         uuid        not null primary key,
    account_id uuid        not null references accounts (id),
    created_at timestamptz not null,
    expires_at timestamptz not null,
    used_at    timestamptz
);
create index identity_checks_of_account on identity_checks (account_id, id);
create index identity_checks_by_end on identity_checks (expires_at);

-- Who the owner of an account is, as a provider vouched for it. Gone when the account is erased, and until then the person
-- has no other.
create table identities (
    account_id  uuid        not null primary key references accounts (id),
    -- Keyed hash of the CI, the number that a person has everywhere in Korea.
    ci_index    bytea       not null,
    -- CI, DI, name, birth date and phone, sealed as one value (src/pii); `pii_key` names the key.
    person      bytea       not null,
    pii_key     text        not null,
    source      text        not null check (source in ('sandbox', 'portone')),
    verified_at timestamptz not null
);
-- One person, one account.
create unique index identities_by_person on identities (ci_index);
create index identities_by_key on identities (pii_key, account_id);

-- The second factor of an account: the secret it shares with an authenticator app. On once it is confirmed.
create table second_factors (
    account_id   uuid        not null primary key references accounts (id),
    -- Sealed always, with a key of its own where `pii_key` is empty (src/pii).
    secret       bytea       not null,
    pii_key      text        not null,
    -- The last time step whose code was accepted: neither it nor an earlier one is good again.
    last_step    bigint      not null,
    created_at   timestamptz not null,
    confirmed_at timestamptz
);
create index second_factors_by_key on second_factors (pii_key, account_id);

-- Keyed hashes of recovery codes. A row is deleted when its code is used.
create table recovery_codes (
    account_id uuid  not null references accounts (id),
    code_hash  bytea not null,
    primary key (account_id, code_hash)
);

-- Accounts elsewhere with which somebody signs in to an account here.
create table linked_accounts (
    id            uuid        not null primary key,
    account_id    uuid        not null references accounts (id),
    provider      text        not null check (provider in ('google', 'kakao', 'naver')),
    -- Keyed hash of who they are there: enough to find the account, and of no use to anybody else.
    subject_index bytea       not null,
    linked_at     timestamptz not null,
    last_used_at  timestamptz
);
create unique index linked_accounts_by_subject on linked_accounts (provider, subject_index);
-- One of each provider, so that "unlink Google" says which.
create unique index linked_accounts_of_account on linked_accounts (account_id, provider);
