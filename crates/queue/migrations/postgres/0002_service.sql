-- What operators asked for. Nothing here is ever changed but `done`, once.
create table audit (
    id       uuid        not null primary key,
    event_id uuid        not null,
    at       timestamptz not null,
    -- Nobody: the platform itself.
    user_id  uuid,
    action   text        not null check (action in ('threshold', 'pause', 'resume', 'clear')),
    number   bigint,
    done     boolean     not null
);

create index audit_of_event on audit (event_id, at);

-- Purchases whose slots are still to be freed.
create table purchases (
    event_id uuid        not null,
    user_id  uuid        not null,
    at       timestamptz not null,
    primary key (event_id, user_id)
);

-- Who used a Tier 1 pass: a copy of it is worth nothing to anybody else.
create table used_passes (
    event_id   uuid        not null,
    visitor_id uuid        not null,
    user_id    uuid        not null,
    at         timestamptz not null,
    primary key (event_id, visitor_id)
);

create index used_passes_by_age on used_passes (at);

-- A room that has been empty for long is closed. Whoever comes later begins its next life.
alter table rooms add column closed_at timestamptz;
