-- The same journal with cheaper checks: for a list of three and more SQLite builds a table each time it looks.
create table plain_journal (
    event_id   blob    not null,
    generation integer not null,
    seq        integer not null check (seq > 0),
    at         integer not null,
    kind       text    not null check (kind = 'joined' or kind = 'admitted' or kind = 'returned' or kind = 'gone'
        or kind = 'threshold' or kind = 'paused' or kind = 'resumed' or kind = 'cleared'),
    user_id    blob,
    order_key  integer,
    slot_id    blob,
    -- The threshold or the epoch that begins.
    number     integer,
    why        text check (why = 'left' or why = 'idle' or why = 'expired' or why = 'bought'),
    primary key (event_id, generation, seq),
    check ((kind = 'joined' or kind = 'admitted' or kind = 'returned') = (order_key is not null)),
    check ((kind = 'admitted') = (slot_id is not null)),
    check ((kind = 'threshold' or kind = 'cleared') = (number is not null)),
    check ((kind = 'gone') = (why is not null)),
    check ((kind = 'joined' or kind = 'admitted' or kind = 'returned' or kind = 'gone') = (user_id is not null))
) strict, without rowid;
insert into plain_journal (event_id, generation, seq, at, kind, user_id, order_key, slot_id, number, why)
    select event_id, generation, seq, at, kind, user_id, order_key, slot_id, number, why from journal;
drop table journal;
alter table plain_journal rename to journal;

-- What became of one user, for rooms whose store has lost it: which places they used, and whether they are in.
create index journal_of_user on journal (event_id, user_id) where user_id is not null and kind <> 'joined';
