-- Verifications that were begun: each is one account's and good once.
create table identity_checks (
    id         blob    not null primary key,
    account_id blob    not null references accounts (id),
    created_at integer not null,
    expires_at integer not null,
    used_at    integer
) strict, without rowid;
create index identity_checks_of_account on identity_checks (account_id, id);
create index identity_checks_by_end on identity_checks (expires_at);

-- Who the owner of an account is, as a provider vouched for it. Gone when the account is erased, and until then the person
-- has no other.
create table identities (
    account_id  blob    not null primary key references accounts (id),
    -- Keyed hash of the CI, the number that a person has everywhere in Korea.
    ci_index    blob    not null,
    -- CI, DI, name, birth date and phone, sealed as one value (src/pii); `pii_key` names the key.
    person      blob    not null,
    pii_key     text    not null,
    source      text    not null check (source in ('sandbox', 'portone')),
    verified_at integer not null
) strict, without rowid;
-- One person, one account.
create unique index identities_by_person on identities (ci_index);
create index identities_by_key on identities (pii_key, account_id);

-- The same instant as in `identities`, so that an account can be shown without reading who its owner is.
alter table accounts add column identity_verified_at integer;
