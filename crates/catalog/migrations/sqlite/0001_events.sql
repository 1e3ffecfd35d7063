-- The plan of a hall. Seats are made from it when an event is; a plan that is in use never changes.
create table layouts (
    id          blob not null primary key check (length(id) = 16),
    name        text not null unique check (length(name) between 1 and 100),
    description text not null,
    sections    text not null check (json_type(sections) = 'array')
) strict, without rowid;

-- An event's status is not here: it follows from these times and the clock, so it cannot be stale.
create table events (
    id                        blob    not null primary key check (length(id) = 16),
    title                     text    not null check (length(title) between 1 and 200),
    description               text,
    venue                     text    not null check (length(venue) between 1 and 200),
    address                   text,
    artist_name               text,
    poster_image_url          text,
    event_at                  integer not null,
    sale_start_at             integer not null,
    sale_end_at               integer not null,
    cancelled_at              integer,
    layout_id                 blob    references layouts (id),
    max_seats_per_reservation integer not null check (max_seats_per_reservation between 1 and 10),
    max_seats_per_user        integer not null check (max_seats_per_user between 1 and 10),
    -- What its seats or ticket types add up to. They never change, so neither does this.
    seats                     integer not null check (seats between 0 and 100000),
    places                    integer not null check (places between 1 and 100000),
    ticket_type_count         integer not null check (ticket_type_count >= 0),
    min_price_krw             integer not null check (min_price_krw >= 0),
    max_price_krw             integer not null check (max_price_krw >= min_price_krw),
    -- Title, artist, venue and address in lower case, because SQLite folds only the letters of ASCII.
    search_text               text    not null,
    created_at                integer not null,
    updated_at                integer not null,
    check (sale_start_at < sale_end_at and sale_end_at <= event_at),
    check (max_seats_per_reservation <= max_seats_per_user),
    -- Seated or standing, never both.
    check ((layout_id is null) = (seats = 0) and (layout_id is null) = (ticket_type_count > 0))
) strict, without rowid;
create index events_by_sale on events (sale_start_at, id);

create table seats (
    event_id    blob    not null references events (id),
    -- Place in the order of the hall, from 0: pages are read along the primary key.
    ordinal     integer not null check (ordinal >= 0),
    id          blob    not null unique check (length(id) = 16),
    section     text    not null,
    grade       text    not null,
    row_number  integer not null check (row_number > 0),
    seat_number integer not null check (seat_number > 0),
    label       text    not null,
    price_krw   integer not null check (price_krw >= 0),
    primary key (event_id, ordinal),
    unique (event_id, section, row_number, seat_number)
) strict, without rowid;

create table ticket_types (
    id             blob    not null primary key check (length(id) = 16),
    event_id       blob    not null references events (id),
    name           text    not null check (length(name) between 1 and 100),
    price_krw      integer not null check (price_krw >= 0),
    total_quantity integer not null check (total_quantity > 0),
    description    text    not null,
    unique (event_id, name)
) strict, without rowid;

-- How many places live reservations cover, as the bus has told so far. For display: tickets decides.
create table event_places (
    event_id blob    not null primary key references events (id),
    reserved integer not null check (reserved >= 0)
) strict, without rowid;

-- The halls every installation starts with.
insert into layouts (id, name, description, sections) values
    (x'00000000000070008000000000000001', 'small_theater', '소극장 (265석)', '[
        {"name":"VIP","rows":3,"seatsPerRow":10,"price":150000,"startRow":1},
        {"name":"R","rows":5,"seatsPerRow":15,"price":100000,"startRow":4},
        {"name":"S","rows":8,"seatsPerRow":20,"price":70000,"startRow":9}]'),
    (x'00000000000070008000000000000002', 'large_theater', '대극장 (1,250석)', '[
        {"name":"VIP","rows":5,"seatsPerRow":20,"price":200000,"startRow":1},
        {"name":"R","rows":10,"seatsPerRow":30,"price":150000,"startRow":6},
        {"name":"S","rows":15,"seatsPerRow":30,"price":100000,"startRow":16},
        {"name":"A","rows":10,"seatsPerRow":40,"price":70000,"startRow":31}]'),
    (x'00000000000070008000000000000003', 'sports_stadium', '체육관 (4,900석)', '[
        {"name":"Floor1","rows":20,"seatsPerRow":50,"price":80000,"startRow":1},
        {"name":"Floor2","rows":30,"seatsPerRow":60,"price":50000,"startRow":21},
        {"name":"Floor3","rows":30,"seatsPerRow":70,"price":30000,"startRow":51}]'),
    (x'00000000000070008000000000000004', 'grand_stadium', '주경기장 (50,000석)', '[
        {"name":"Ground","rows":100,"seatsPerRow":100,"price":165000,"startRow":1},
        {"name":"Lower","rows":80,"seatsPerRow":200,"price":132000,"startRow":101},
        {"name":"Upper","rows":96,"seatsPerRow":250,"price":99000,"startRow":181}]');
