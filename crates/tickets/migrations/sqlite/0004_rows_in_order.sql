-- Reservations lie in the order in which they come, and their index by id beside them. In a tree by id a page has room for five, so that
-- every few holds three neighbours had to be laid out anew.
create table reservations_in_order (
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
) strict;
insert into reservations_in_order (id, number, user_id, event_id, event_card, status, total_krw, seats, gate_owner,
                                   expires_at, created_at, updated_at, idempotency_key)
    select id, number, user_id, event_id, event_card, status, total_krw, seats, gate_owner,
           expires_at, created_at, updated_at, idempotency_key from reservations order by id;
drop table reservations;
alter table reservations_in_order rename to reservations;
create unique index reservations_by_user on reservations (user_id, idempotency_key);
create index reservations_to_expire on reservations (expires_at) where status = 'pending';
