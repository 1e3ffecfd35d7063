-- Checks are spelled with `or`: for an `in` list of three or more values SQLite builds a table on every evaluation.

-- An operator's settings for an event's room, and its generation. The room itself is in memory or in Redis.
create table rooms (
    event_id   blob    not null primary key,
    -- Grows each time the store starts again without its data.
    generation integer not null check (generation > 0),
    -- The initial threshold. Later changes are in the journal.
    threshold  integer not null check (threshold >= 0),
    opened_at  integer not null,
    -- A room that has been empty for long is closed; the next arrival starts its next generation.
    closed_at  integer,
    -- The configured threshold that the room follows; null once an operator has set one for it.
    configured integer check (configured >= 0)
) strict, without rowid;

-- What happened in each room, in order. Append-only.
create table journal (
    event_id   blob    not null,
    generation integer not null,
    seq        integer not null check (seq > 0),
    at         integer not null,
    kind       text    not null check (kind = 'joined' or kind = 'admitted' or kind = 'returned' or kind = 'gone'
        or kind = 'threshold' or kind = 'paused' or kind = 'resumed' or kind = 'cleared'),
    user_id    blob,
    order_key  integer,
    slot_id    blob,
    -- The threshold, or the epoch that begins.
    number     integer,
    why        text    check (why = 'left' or why = 'idle' or why = 'expired' or why = 'bought'),
    -- Where the position of an arrival comes from; null if the user was in line already.
    source     text    check (source = 'new' or source = 'ticket' or source = 'pass'),
    primary key (event_id, generation, seq),
    check ((kind = 'joined' or kind = 'admitted' or kind = 'returned') = (order_key is not null)),
    check ((kind = 'admitted') = (slot_id is not null)),
    check ((kind = 'threshold' or kind = 'cleared') = (number is not null)),
    check ((kind = 'gone') = (why is not null)),
    check ((kind = 'joined' or kind = 'admitted' or kind = 'returned' or kind = 'gone') = (user_id is not null))
) strict, without rowid;
-- One user's history, for rooms whose store lost it: which positions were used, and whether a slot is open.
create index journal_of_user on journal (event_id, user_id) where user_id is not null and kind <> 'joined';
-- Clearings are a handful among millions of steps, and looked up for each slot while the store is unreachable.
create index journal_of_clearings on journal (event_id) where kind = 'cleared';

-- Operators' requests. Append-only, except that `done` is set once.
create table audit (
    id       blob    not null primary key,
    event_id blob    not null,
    at       integer not null,
    -- Null for requests of the platform itself.
    user_id  blob,
    action   text    not null check (action in ('threshold', 'pause', 'resume', 'clear')),
    number   integer,
    done     integer not null check (done in (0, 1))
) strict, without rowid;
create index audit_of_event on audit (event_id, at);

-- Purchases whose slots are still to be freed.
create table purchases (
    event_id blob    not null,
    user_id  blob    not null,
    at       integer not null,
    primary key (event_id, user_id)
) strict, without rowid;

-- The user of each Tier 1 pass: a copy of the pass admits no other user.
create table used_passes (
    event_id   blob    not null,
    visitor_id blob    not null,
    user_id    blob    not null,
    at         integer not null,
    primary key (event_id, visitor_id)
) strict, without rowid;
create index used_passes_by_age on used_passes (at);

-- When rooms in a process's memory were served while slots were open. Time between two runs ends no slot.
create table runs (
    began_at integer not null primary key,
    seen_at  integer not null
) strict, without rowid;
