-- A seat is in this table from its first claim on. The fence grows with every claim and never goes back.
create table seats (
    seat_id        blob    not null primary key,
    event_id       blob    not null,
    state          text    not null check (state in ('available', 'held', 'sold')),
    reservation_id blob,
    fence          integer not null check (fence > 0),
    expires_at     integer,
    -- A free seat belongs to nobody; a claimed one to exactly one reservation.
    check ((state = 'available') = (reservation_id is null))
) strict, without rowid;
create index seats_by_event on seats (event_id) where state <> 'available';

create table reservations (
    id          blob    not null primary key,
    number      text    not null unique,
    user_id     blob    not null,
    event_id    blob    not null,
    -- What its ticket says about the event, as it was when the reservation was made.
    event_card  text    not null,
    status      text    not null check (status in
        ('pending', 'paying', 'confirmed', 'expired', 'cancelled', 'refunding', 'refunded')),
    total_krw   integer not null check (total_krw >= 0),
    -- Seats as they were when the reservation was made, with their fences.
    seats       text    not null,
    -- Whose marks stand in the gate for these seats, so that giving them up can remove the marks.
    gate_owner  blob    not null,
    expires_at  integer not null,
    created_at  integer not null,
    updated_at  integer not null
) strict, without rowid;
create index reservations_by_user on reservations (user_id, id);
create index reservations_to_expire on reservations (expires_at) where status = 'pending';

-- How many seats of an event a buyer has in live reservations.
create table buyers (
    event_id   blob    not null,
    user_id    blob    not null,
    live_seats integer not null check (live_seats >= 0),
    primary key (event_id, user_id)
) strict, without rowid;

create table idempotency_keys (
    user_id        blob    not null,
    route          text    not null,
    key            text    not null,
    request_hash   blob    not null,
    reservation_id blob    not null,
    created_at     integer not null,
    primary key (user_id, route, key)
) strict, without rowid;
create index idempotency_keys_by_age on idempotency_keys (created_at);
