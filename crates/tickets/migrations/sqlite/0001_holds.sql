-- Checks are spelled with `or`: for an `in` list of three or more values SQLite builds a table on every evaluation.

-- A seat is in this table from its first claim on. The fence grows with every claim and never decreases.
-- Rows lie by event, so the seat map needs no index of its own.
create table seats (
    event_id       blob    not null,
    seat_id        blob    not null,
    state          text    not null check (state = 'available' or state = 'held' or state = 'sold'),
    reservation_id blob,
    fence          integer not null check (fence > 0),
    expires_at     integer,
    -- A claimed seat has exactly one reservation; an available one has none.
    check ((state = 'available') = (reservation_id is null)),
    primary key (event_id, seat_id)
) strict, without rowid;

-- A rowid table: rows lie in insertion order. In a tree by id a page holds five rows, and every few holds three
-- neighbouring pages had to be rewritten.
create table reservations (
    id              blob    not null primary key,
    number          text    not null unique,
    user_id         blob    not null,
    event_id        blob    not null,
    -- What its ticket says about the event, as of the time of the reservation.
    event_card      text    not null,
    status          text    not null check (status = 'pending' or status = 'paying' or status = 'confirmed'
        or status = 'expired' or status = 'cancelled' or status = 'refunding' or status = 'refunded'),
    total_krw       integer not null check (total_krw >= 0),
    -- Seats as of the time of the reservation, with their fences.
    seats           text    not null,
    -- Owner of the marks in the gate for these seats; a release removes the marks.
    gate_owner      blob    not null,
    expires_at      integer not null,
    created_at      integer not null,
    updated_at      integer not null,
    idempotency_key text
) strict;
-- One index serves a buyer's list and repeated requests.
create unique index reservations_by_user on reservations (user_id, idempotency_key);
create index reservations_to_expire on reservations (expires_at) where status = 'pending';

-- Number of seats of an event in a buyer's live reservations.
create table buyers (
    event_id   blob    not null,
    user_id    blob    not null,
    live_seats integer not null check (live_seats >= 0),
    primary key (event_id, user_id)
) strict, without rowid;
