-- A room in front of an event: what operators decided, and what must not be lost with the store that counts.
create table rooms (
    event_id     uuid        not null primary key,
    -- Which opening this is.
    epoch        bigint      not null check (epoch > 0),
    opened_at    timestamptz not null,
    active       boolean     not null,
    paused       boolean     not null,
    rate         bigint      not null check (rate >= 0),
    fail_open    boolean     not null,
    -- Grows with every decision, so that a late one is known as such.
    version      bigint      not null check (version > 0),
    decided_at   timestamptz not null,
    -- Places up to here may have been given.
    reserved     bigint      not null check (reserved >= 0),
    -- Places up to here were let on.
    serving      bigint      not null check (serving between 0 and reserved),
    -- Up to when people were let on.
    moved_at     timestamptz not null,
    -- Who lets people on, in which term, until when.
    leader       uuid,
    term         bigint      not null check (term >= 0),
    leader_until timestamptz not null
);

-- What operators did. Nothing here is ever changed.
create table actions (
    id       uuid        not null primary key,
    event_id uuid        not null,
    at       timestamptz not null,
    -- Nobody if the platform did it itself.
    actor_id uuid,
    action   text        not null check (action in ('activate', 'deactivate', 'advance', 'rate', 'pause', 'resume')),
    number   bigint
);
create index actions_by_event on actions (event_id, at, id);
