-- An operator's settings for an event's room, and its generation. The room itself is in memory or in Redis.
create table rooms (
    event_id   uuid        not null primary key,
    -- Grows each time the store starts again without its data.
    generation bigint      not null check (generation > 0),
    -- The initial threshold. Later changes are in the journal.
    threshold  bigint      not null check (threshold >= 0),
    opened_at  timestamptz not null,
    -- A room that has been empty for long is closed; the next arrival starts its next generation.
    closed_at  timestamptz,
    -- The configured threshold that the room follows; null once an operator has set one for it.
    configured bigint      check (configured >= 0)
);

-- What happened in each room, in order. Append-only.
create table journal (
    event_id   uuid        not null,
    generation bigint      not null,
    seq        bigint      not null check (seq > 0),
    at         timestamptz not null,
    kind       text        not null check (kind in
        ('joined', 'admitted', 'returned', 'gone', 'threshold', 'paused', 'resumed', 'cleared')),
    user_id    uuid,
    order_key  bigint,
    slot_id    uuid,
    -- The threshold, or the epoch that begins.
    number     bigint,
    why        text        check (why in ('left', 'idle', 'expired', 'bought')),
    -- Where the position of an arrival comes from; null if the user was in line already.
    source     text        check (source in ('new', 'ticket', 'pass')),
    primary key (event_id, generation, seq),
    check ((kind in ('joined', 'admitted', 'returned')) = (order_key is not null)),
    check ((kind = 'admitted') = (slot_id is not null)),
    check ((kind in ('threshold', 'cleared')) = (number is not null)),
    check ((kind = 'gone') = (why is not null)),
    check ((kind in ('joined', 'admitted', 'returned', 'gone')) = (user_id is not null))
);
-- One user's history, for rooms whose store lost it: which positions were used, and whether a slot is open.
create index journal_of_user on journal (event_id, user_id) where user_id is not null and kind <> 'joined';
-- Clearings are a handful among millions of steps, and looked up for each slot while the store is unreachable.
create index journal_of_clearings on journal (event_id) where kind = 'cleared';

-- Operators' requests. Append-only, except that `done` is set once.
create table audit (
    id       uuid        not null primary key,
    event_id uuid        not null,
    at       timestamptz not null,
    -- Null for requests of the platform itself.
    user_id  uuid,
    action   text        not null check (action in ('threshold', 'pause', 'resume', 'clear')),
    number   bigint,
    done     boolean     not null
);
create index audit_of_event on audit (event_id, at);

-- Purchases whose slots are still to be freed.
create table purchases (
    event_id uuid        not null,
    user_id  uuid        not null,
    at       timestamptz not null,
    primary key (event_id, user_id)
);

-- The user of each Tier 1 pass: a copy of the pass admits no other user.
create table used_passes (
    event_id   uuid        not null,
    visitor_id uuid        not null,
    user_id    uuid        not null,
    at         timestamptz not null,
    primary key (event_id, visitor_id)
);
create index used_passes_by_age on used_passes (at);

-- When rooms in a process's memory were served while slots were open. Time between two runs ends no slot.
create table runs (
    began_at timestamptz not null primary key,
    seen_at  timestamptz not null
);
