-- The second factor of an account: the secret it shares with an authenticator app. On once it is confirmed.
create table second_factors (
    account_id   blob    not null primary key references accounts (id),
    -- Sealed always, with a key of its own where `pii_key` is empty (src/pii).
    secret       blob    not null,
    pii_key      text    not null,
    -- The last time step whose code was accepted: neither it nor an earlier one is good again.
    last_step    integer not null,
    created_at   integer not null,
    confirmed_at integer
) strict, without rowid;
create index second_factors_by_key on second_factors (pii_key, account_id);

-- Keyed hashes of recovery codes. A row is deleted when its code is used.
create table recovery_codes (
    account_id blob not null references accounts (id),
    code_hash  blob not null,
    primary key (account_id, code_hash)
) strict, without rowid;

-- The same instant as `second_factors.confirmed_at`, so that a sign-in knows it with the account.
alter table accounts add column second_factor_at integer;
