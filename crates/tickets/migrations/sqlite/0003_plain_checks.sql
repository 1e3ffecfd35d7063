-- The same tables with cheaper checks: for a list of three and more SQLite builds a table each time it looks, three times in every hold.
create table plain_seats (
    event_id       blob    not null,
    seat_id        blob    not null,
    state          text    not null check (state = 'available' or state = 'held' or state = 'sold'),
    reservation_id blob,
    fence          integer not null check (fence > 0),
    expires_at     integer,
    -- A free seat belongs to nobody; a claimed one to exactly one reservation.
    check ((state = 'available') = (reservation_id is null)),
    primary key (event_id, seat_id)
) strict, without rowid;
insert into plain_seats (event_id, seat_id, state, reservation_id, fence, expires_at)
    select event_id, seat_id, state, reservation_id, fence, expires_at from seats;
drop table seats;
alter table plain_seats rename to seats;

create table plain_reservations (
    id              blob    not null primary key,
    number          text    not null unique,
    user_id         blob    not null,
    event_id        blob    not null,
    -- What its ticket says about the event, as it was when the reservation was made.
    event_card      text    not null,
    status          text    not null check (status = 'pending' or status = 'paying' or status = 'confirmed'
        or status = 'expired' or status = 'cancelled' or status = 'refunding' or status = 'refunded'),
    total_krw       integer not null check (total_krw >= 0),
    -- Seats as they were when the reservation was made, with their fences.
    seats           text    not null,
    -- Whose marks stand in the gate for these seats, so that giving them up can remove the marks.
    gate_owner      blob    not null,
    expires_at      integer not null,
    created_at      integer not null,
    updated_at      integer not null,
    idempotency_key text
) strict, without rowid;
insert into plain_reservations (id, number, user_id, event_id, event_card, status, total_krw, seats, gate_owner,
                                expires_at, created_at, updated_at, idempotency_key)
    select id, number, user_id, event_id, event_card, status, total_krw, seats, gate_owner,
           expires_at, created_at, updated_at, idempotency_key from reservations;
drop table reservations;
alter table plain_reservations rename to reservations;
create unique index reservations_by_user on reservations (user_id, idempotency_key);
create index reservations_to_expire on reservations (expires_at) where status = 'pending';
