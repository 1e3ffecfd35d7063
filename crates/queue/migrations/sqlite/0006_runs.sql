-- When rooms in a process's memory were looked after while somebody was in them. What is between two of these times costs nobody their slot.
create table runs (
    began_at integer not null primary key,
    seen_at  integer not null
) strict, without rowid;
