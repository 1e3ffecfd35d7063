-- Tables that every domain has in its own schema: messages out, messages in, leases, mails.

create table outbox (
    seq          bigint      generated always as identity primary key,
    -- Numbers are given out before commits happen, so a reader goes by transaction and stops at the oldest one still
    -- running; a row that commits late is then never behind it.
    xid          xid8        not null default pg_current_xact_id(),
    id           uuid        not null,
    topic        text        not null,
    key          text        not null,
    kind         text        not null,
    -- TEXT and not JSONB on both engines: it leaves as it was written, byte for byte.
    payload      text        not null,
    created_at   timestamptz not null,
    -- When the relay may take it: at once, after a failure's pause, or when another relay's claim has run out.
    due_at       timestamptz not null,
    attempts     integer     not null default 0,
    published_at timestamptz,
    dead_at      timestamptz,
    last_error   text
);
-- The relay looks at waiting rows only, oldest first.
create index outbox_waiting on outbox (seq) where published_at is null and dead_at is null;
create index outbox_published on outbox (published_at) where published_at is not null;
create index outbox_dead on outbox (seq) where dead_at is not null;
create index outbox_log on outbox (xid, seq);

create table processed_events (
    consumer_group text        not null,
    message_id     uuid        not null,
    processed_at   timestamptz not null,
    primary key (consumer_group, message_id)
);
create index processed_events_age on processed_events (processed_at);

create table bus_offsets (
    consumer_group text   not null,
    source         text   not null,
    xid            bigint not null,
    seq            bigint not null,
    primary key (consumer_group, source)
);

create table dead_letters (
    consumer_group text        not null,
    message_id     uuid        not null,
    topic          text        not null,
    key            text        not null,
    kind           text        not null,
    payload        text        not null,
    created_at     timestamptz not null,
    attempts       integer     not null,
    error          text        not null,
    dead_at        timestamptz not null,
    primary key (consumer_group, message_id)
);

create table leases (
    name       text        not null primary key,
    owner      uuid        not null,
    epoch      bigint      not null,
    expires_at timestamptz not null
);

-- Mails to be sent, queued in the transaction that is their reason (crate `mail`). Neither address nor text is stored.
create table mails (
    id         uuid        not null primary key,
    -- Queueing the same key again does nothing.
    key        text,
    kind       text        not null,
    -- Id of the recipient in the domain, such as an account.
    recipient  uuid        not null,
    -- What the template needs, as JSON.
    data       text        not null check (length(data) <= 16384),
    urgent     boolean     not null,
    state      text        not null check (state in ('waiting', 'sent', 'failed', 'dropped')),
    attempts   integer     not null,
    next_at    timestamptz not null,
    created_at timestamptz not null,
    ended_at   timestamptz,
    last_error text,
    check ((state = 'waiting') = (ended_at is null))
);
create unique index mails_by_key on mails (key);
create index mails_waiting on mails (next_at) where state = 'waiting';
create index mails_urgent on mails (next_at) where state = 'waiting' and urgent;
create index mails_failed on mails (id) where state = 'failed';
create index mails_of_recipient on mails (recipient);
create index mails_by_end on mails (ended_at) where state <> 'waiting';
