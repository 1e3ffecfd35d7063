-- A seat is in this table from its first claim on. The fence grows with every claim and never goes back.
create table seats (
    seat_id        uuid   not null primary key,
    event_id       uuid   not null,
    state          text   not null check (state in ('available', 'held', 'sold')),
    reservation_id uuid,
    fence          bigint not null check (fence > 0),
    expires_at     timestamptz,
    -- A free seat belongs to nobody; a claimed one to exactly one reservation.
    check ((state = 'available') = (reservation_id is null))
);
create index seats_by_event on seats (event_id) where state <> 'available';

create table reservations (
    id          uuid        not null primary key,
    number      text        not null unique,
    user_id     uuid        not null,
    event_id    uuid        not null,
    -- What its ticket says about the event, as it was when the reservation was made.
    event_card  jsonb       not null,
    status      text        not null check (status in
        ('pending', 'paying', 'confirmed', 'expired', 'cancelled', 'refunding', 'refunded')),
    total_krw   bigint      not null check (total_krw >= 0),
    -- Seats as they were when the reservation was made, with their fences.
    seats       jsonb       not null,
    -- Whose marks stand in the gate for these seats, so that giving them up can remove the marks.
    gate_owner  uuid        not null,
    expires_at  timestamptz not null,
    created_at  timestamptz not null,
    updated_at  timestamptz not null
);
create index reservations_by_user on reservations (user_id, id);
create index reservations_to_expire on reservations (expires_at) where status = 'pending';

-- How many seats of an event a buyer has in live reservations.
create table buyers (
    event_id   uuid   not null,
    user_id    uuid   not null,
    live_seats bigint not null check (live_seats >= 0),
    primary key (event_id, user_id)
);

create table idempotency_keys (
    user_id        uuid        not null,
    route          text        not null,
    key            text        not null,
    request_hash   bytea       not null,
    reservation_id uuid        not null,
    created_at     timestamptz not null,
    primary key (user_id, route, key)
);
create index idempotency_keys_by_age on idempotency_keys (created_at);
