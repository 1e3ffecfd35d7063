-- What operators asked for. Nothing here is ever changed but `done`, once.
create table audit (
    id       blob    not null primary key,
    event_id blob    not null,
    at       integer not null,
    -- Nobody: the platform itself.
    user_id  blob,
    action   text    not null check (action in ('threshold', 'pause', 'resume', 'clear')),
    number   integer,
    done     integer not null check (done in (0, 1))
) strict, without rowid;

create index audit_of_event on audit (event_id, at);

-- Purchases whose slots are still to be freed.
create table purchases (
    event_id blob    not null,
    user_id  blob    not null,
    at       integer not null,
    primary key (event_id, user_id)
) strict, without rowid;

-- Who used a Tier 1 pass: a copy of it is worth nothing to anybody else.
create table used_passes (
    event_id   blob    not null,
    visitor_id blob    not null,
    user_id    blob    not null,
    at         integer not null,
    primary key (event_id, visitor_id)
) strict, without rowid;

create index used_passes_by_age on used_passes (at);

-- A room that has been empty for long is closed. Whoever comes later begins its next life.
alter table rooms add column closed_at integer;
