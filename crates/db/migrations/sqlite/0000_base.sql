-- Tables that every domain has in its own file: messages out, messages in, leases.

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
-- The relay looks at waiting rows only: the oldest ones, and whether an older one has the same key.
create index outbox_waiting on outbox (seq) where published_at is null and dead_at is null;
create index outbox_waiting_key on outbox (topic, key, seq) where published_at is null and dead_at is null;
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
