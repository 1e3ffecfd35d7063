-- Accounts elsewhere with which somebody signs in to an account here.
create table linked_accounts (
    id            blob    not null primary key,
    account_id    blob    not null references accounts (id),
    provider      text    not null check (provider in ('google', 'kakao', 'naver')),
    -- Keyed hash of who they are there: enough to find the account, and of no use to anybody else.
    subject_index blob    not null,
    linked_at     integer not null,
    last_used_at  integer
) strict, without rowid;
create unique index linked_accounts_by_subject on linked_accounts (provider, subject_index);
-- One of each provider, so that "unlink Google" says which.
create unique index linked_accounts_of_account on linked_accounts (account_id, provider);
