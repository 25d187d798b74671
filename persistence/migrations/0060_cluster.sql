-- Many processes on one database. A process alone writes none of these tables but `slots`, which it does not read.

-- The runs of processes that may write; none is there twice. Whoever writes holds a lock on its row, and whoever ends one
-- deletes it: the deletion waits for those that hold the lock, and shuts out those that come later.
create table lives (
    life bigint generated always as identity primary key,
    node text not null,
    address text not null,
    -- Which messages of other processes it understands.
    speaks integer not null,
    -- Whether it gives its slots away, and takes none.
    draining boolean not null default false,
    began_at timestamptz not null default now()
);

-- When each was heard of last. Apart from their rows, so that beats and locks do not wait for each other.
create table beats (
    life bigint primary key,
    at timestamptz not null default now(),
    -- Processors of its machine, which its share of the slots goes by.
    cores integer not null check (cores > 0)
);

-- Those that others have ended, and who looks after what they have left.
create table seals (
    life bigint primary key,
    heir bigint not null,
    sealed_at timestamptz not null default now(),
    -- Whether its slots are others' by now.
    done boolean not null default false
);

create table slots (
    slot smallint primary key check (slot between 0 and 1023),
    -- Who serves its companies.
    life bigint,
    -- Who is to.
    next bigint
);
insert into slots (slot) select generate_series(0, 1023)::smallint;
create index slots_life on slots (life);

-- The first statement of each transaction that writes.
create function hotline_fence(mine bigint) returns void language plpgsql as $$
begin
    perform from lives where life = mine for key share;
    if not found then
        raise exception 'life % is over', mine using errcode = 'HL001';
    end if;
end $$;

create function hotline_placement_news() returns trigger language plpgsql as $$
begin
    perform pg_notify('hotline_placement', '');
    return null;
end $$;

create trigger placement_news after update on slots for each statement execute function hotline_placement_news();
create trigger placement_news after insert or update or delete on lives
    for each statement execute function hotline_placement_news();
