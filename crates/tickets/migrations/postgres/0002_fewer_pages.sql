-- A hold touches as few pages as it can: seats lie by event, so that the map needs no index of its own (and a seat that changes hands
-- changes no index), and a reservation keeps the key it was asked for with, so that one index serves a buyer's list and the repeats of a
-- request.
drop index seats_by_event;
alter table seats drop constraint seats_pkey;
alter table seats add primary key (event_id, seat_id);

alter table reservations add column idempotency_key text;
update reservations set idempotency_key = k.key
  from idempotency_keys k where k.reservation_id = reservations.id and k.user_id = reservations.user_id;
drop table idempotency_keys;
drop index reservations_by_user;
create unique index reservations_by_user on reservations (user_id, idempotency_key);
