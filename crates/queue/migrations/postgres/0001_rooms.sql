-- What an operator decided about an event's room, and which of its lives this is. The room itself is in memory or in Redis.
create table rooms (
    event_id   uuid    not null primary key,
    -- Grows each time a store begins anew without its data.
    generation bigint not null check (generation > 0),
    -- With how many the room began. Later changes are in the journal.
    threshold  bigint not null check (threshold >= 0),
    opened_at  timestamptz not null
);

-- What happened, in order. Nothing here is ever changed.
create table journal (
    event_id   uuid    not null,
    generation bigint not null,
    seq        bigint not null check (seq > 0),
    at         timestamptz not null,
    kind       text    not null check (kind in
        ('joined', 'admitted', 'returned', 'gone', 'threshold', 'paused', 'resumed', 'cleared')),
    user_id    uuid,
    order_key  bigint,
    slot_id    uuid,
    -- The threshold or the epoch that begins.
    number     bigint,
    why        text check (why in ('left', 'idle', 'expired', 'bought')),
    primary key (event_id, generation, seq),
    check ((kind in ('joined', 'admitted', 'returned')) = (order_key is not null)),
    check ((kind = 'admitted') = (slot_id is not null)),
    check ((kind in ('threshold', 'cleared')) = (number is not null)),
    check ((kind = 'gone') = (why is not null)),
    check ((kind in ('joined', 'admitted', 'returned', 'gone')) = (user_id is not null))
);
