-- A hold touches as few pages as it can: seats lie by event, so that the map needs no index of its own, and a reservation keeps the key
-- it was asked for with, so that one index serves a buyer's list and the repeats of a request.
create table seats_by_hall (
    event_id       blob    not null,
    seat_id        blob    not null,
    state          text    not null check (state in ('available', 'held', 'sold')),
    reservation_id blob,
    fence          integer not null check (fence > 0),
    expires_at     integer,
    -- A free seat belongs to nobody; a claimed one to exactly one reservation.
    check ((state = 'available') = (reservation_id is null)),
    primary key (event_id, seat_id)
) strict, without rowid;
insert into seats_by_hall (event_id, seat_id, state, reservation_id, fence, expires_at)
    select event_id, seat_id, state, reservation_id, fence, expires_at from seats;
drop table seats;
alter table seats_by_hall rename to seats;

alter table reservations add column idempotency_key text;
update reservations set idempotency_key =
    (select key from idempotency_keys where reservation_id = reservations.id and user_id = reservations.user_id);
drop table idempotency_keys;
drop index reservations_by_user;
create unique index reservations_by_user on reservations (user_id, idempotency_key);
