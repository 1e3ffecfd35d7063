-- Tables that every domain has in its own file: messages out, messages in, leases, mails.

create table outbox (
    -- AUTOINCREMENT: a number is never used again, not even after the last row was purged, or readers would skip rows.
    seq          integer primary key autoincrement,
    id           blob    not null,
    topic        text    not null,
    key          text    not null,
    kind         text    not null,
    -- TEXT and not JSONB on both engines: it leaves as it was written, byte for byte.
    payload      text    not null,
    created_at   integer not null,
    -- When the relay may take it: at once, after a failure's pause, or when another relay's claim has run out.
    due_at       integer not null,
    attempts     integer not null default 0,
    published_at integer,
    dead_at      integer,
    last_error   text
) strict;
-- The relay looks at waiting rows only, oldest first.
create index outbox_waiting on outbox (seq) where published_at is null and dead_at is null;
create index outbox_published on outbox (published_at) where published_at is not null;
create index outbox_dead on outbox (seq) where dead_at is not null;

create table processed_events (
    consumer_group text    not null,
    message_id     blob    not null,
    processed_at   integer not null,
    primary key (consumer_group, message_id)
) strict, without rowid;
create index processed_events_age on processed_events (processed_at);

create table bus_offsets (
    consumer_group text    not null,
    source         text    not null,
    xid            integer not null,
    seq            integer not null,
    primary key (consumer_group, source)
) strict, without rowid;

create table dead_letters (
    consumer_group text    not null,
    message_id     blob    not null,
    topic          text    not null,
    key            text    not null,
    kind           text    not null,
    payload        text    not null,
    created_at     integer not null,
    attempts       integer not null,
    error          text    not null,
    dead_at        integer not null,
    primary key (consumer_group, message_id)
) strict, without rowid;

create table leases (
    name       text    not null primary key,
    owner      blob    not null,
    epoch      integer not null,
    expires_at integer not null
) strict, without rowid;

-- Mails to be sent, queued in the transaction that is their reason (crate `mail`). Neither address nor text is stored.
create table mails (
    id         blob    not null primary key,
    -- Queueing the same key again does nothing.
    key        text,
    kind       text    not null,
    -- Id of the recipient in the domain, such as an account.
    recipient  blob    not null,
    -- What the template needs, as JSON.
    data       text    not null check (length(data) <= 16384),
    urgent     integer not null check (urgent in (0, 1)),
    state      text    not null check (state in ('waiting', 'sent', 'failed', 'dropped')),
    attempts   integer not null,
    next_at    integer not null,
    created_at integer not null,
    ended_at   integer,
    last_error text,
    check ((state = 'waiting') = (ended_at is null))
) strict, without rowid;
create unique index mails_by_key on mails (key);
create index mails_waiting on mails (next_at) where state = 'waiting';
create index mails_urgent on mails (next_at) where state = 'waiting' and urgent;
create index mails_failed on mails (id) where state = 'failed';
create index mails_of_recipient on mails (recipient);
create index mails_by_end on mails (ended_at) where state <> 'waiting';
