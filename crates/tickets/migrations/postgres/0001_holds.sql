-- A seat is in this table from its first claim on. The fence grows with every claim and never decreases.
-- Rows lie by event, so the seat map needs no index of its own.
create table seats (
    event_id       uuid   not null,
    seat_id        uuid   not null,
    state          text   not null check (state in ('available', 'held', 'sold')),
    reservation_id uuid,
    fence          bigint not null check (fence > 0),
    expires_at     timestamptz,
    -- A claimed seat has exactly one reservation; an available one has none.
    check ((state = 'available') = (reservation_id is null)),
    primary key (event_id, seat_id)
);

create table reservations (
    id              uuid        not null primary key,
    number          text        not null unique,
    user_id         uuid        not null,
    event_id        uuid        not null,
    -- What its ticket says about the event, as of the time of the reservation.
    event_card      jsonb       not null,
    status          text        not null check (status in
        ('pending', 'paying', 'confirmed', 'expired', 'cancelled', 'refunding', 'refunded')),
    total_krw       bigint      not null check (total_krw >= 0),
    -- Seats as of the time of the reservation, with their fences.
    seats           jsonb       not null,
    -- Owner of the marks in the gate for these seats; a release removes the marks.
    gate_owner      uuid        not null,
    expires_at      timestamptz not null,
    created_at      timestamptz not null,
    updated_at      timestamptz not null,
    idempotency_key text
);
-- One index serves a buyer's list and repeated requests.
create unique index reservations_by_user on reservations (user_id, idempotency_key);
create index reservations_to_expire on reservations (expires_at) where status = 'pending';

-- Number of seats of an event in a buyer's live reservations.
create table buyers (
    event_id   uuid   not null,
    user_id    uuid   not null,
    live_seats bigint not null check (live_seats >= 0),
    primary key (event_id, user_id)
);
