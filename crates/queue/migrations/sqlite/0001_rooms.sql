-- What an operator decided about an event's room, and which of its lives this is. The room itself is in memory or in Redis.
create table rooms (
    event_id   blob    not null primary key,
    -- Grows each time a store begins anew without its data.
    generation integer not null check (generation > 0),
    -- With how many the room began. Later changes are in the journal.
    threshold  integer not null check (threshold >= 0),
    opened_at  integer not null
) strict, without rowid;

-- What happened, in order. Nothing here is ever changed.
create table journal (
    event_id   blob    not null,
    generation integer not null,
    seq        integer not null check (seq > 0),
    at         integer not null,
    kind       text    not null check (kind in
        ('joined', 'admitted', 'returned', 'gone', 'threshold', 'paused', 'resumed', 'cleared')),
    user_id    blob,
    order_key  integer,
    slot_id    blob,
    -- The threshold or the epoch that begins.
    number     integer,
    why        text check (why in ('left', 'idle', 'expired', 'bought')),
    primary key (event_id, generation, seq),
    check ((kind in ('joined', 'admitted', 'returned')) = (order_key is not null)),
    check ((kind = 'admitted') = (slot_id is not null)),
    check ((kind in ('threshold', 'cleared')) = (number is not null)),
    check ((kind = 'gone') = (why is not null)),
    check ((kind in ('joined', 'admitted', 'returned', 'gone')) = (user_id is not null))
) strict, without rowid;
