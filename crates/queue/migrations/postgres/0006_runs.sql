-- When rooms in a process's memory were looked after while somebody was in them. What is between two of these times costs nobody their slot.
create table runs (
    began_at timestamptz not null primary key,
    seen_at  timestamptz not null
);
