-- How far the journal has been written into the tables, who may write, and which ids are given out.

-- One row for each journal that ever fed this database. `seq` moves in the transaction that writes the rows.
create table journal_watermark (
    journal    text        primary key,
    seq        bigint      not null,
    -- The epoch under which this journal last fed the database.
    epoch      bigint      not null,
    updated_at timestamptz not null default now()
);

-- Exactly one row: a process that starts raises the epoch, and a flush under an older epoch writes nothing.
create table ownership (
    only_row boolean primary key default true check (only_row),
    epoch    bigint  not null
);
insert into ownership (epoch) values (0);

-- Ids of live rows are handed out before PostgreSQL sees them, from blocks taken here.
create table id_blocks (
    kind text   primary key,
    next bigint not null
);
insert into id_blocks (kind, next) values ('ticket', 1), ('message', 1), ('event', 1);

-- What PostgreSQL refused (a constraint, never an outage): kept whole, with the reason, for a person to look at.
create table rejected_changes (
    id         bigint generated always as identity primary key,
    company_id bigint      not null,
    kind       text        not null,
    row_id     bigint,
    change     jsonb       not null,
    reason     text        not null,
    created_at timestamptz not null default now()
);
