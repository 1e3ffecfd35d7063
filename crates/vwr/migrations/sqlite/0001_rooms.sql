-- A room in front of an event: what operators decided, and what must not be lost with the store that counts.
create table rooms (
    event_id     blob    not null primary key,
    -- Which opening this is.
    epoch        integer not null check (epoch > 0),
    opened_at    integer not null,
    active       integer not null check (active in (0, 1)),
    paused       integer not null check (paused in (0, 1)),
    rate         integer not null check (rate >= 0),
    fail_open    integer not null check (fail_open in (0, 1)),
    -- Grows with every decision, so that a late one is known as such.
    version      integer not null check (version > 0),
    decided_at   integer not null,
    -- Places up to here may have been given.
    reserved     integer not null check (reserved >= 0),
    -- Places up to here were let on.
    serving      integer not null check (serving between 0 and reserved),
    -- Up to when people were let on.
    moved_at     integer not null,
    -- Who lets people on, in which term, until when.
    leader       blob,
    term         integer not null check (term >= 0),
    leader_until integer not null
) strict, without rowid;

-- What operators did. Nothing here is ever changed.
create table actions (
    id       blob    not null primary key,
    event_id blob    not null,
    at       integer not null,
    -- Nobody if the platform did it itself.
    actor_id blob,
    action   text    not null check (action in ('activate', 'deactivate', 'advance', 'rate', 'pause', 'resume')),
    number   integer
) strict, without rowid;
create index actions_by_event on actions (event_id, at, id);
