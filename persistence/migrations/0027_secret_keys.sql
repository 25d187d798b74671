-- Which keys seal this database's secrets, and which releases may serve it.

-- A key is named by its fingerprint; the key itself is in a file outside the database. The one that was noted last
-- seals what is written.
create table secret_keys (
    id         text        primary key check (id ~ '^[0-9a-f]{16}$'),
    position   bigint      not null generated always as identity,
    created_at timestamptz(3) not null default now()
);

-- One row. `least` is the schema a release must know to serve this database: a migration that a release before cannot
-- live with raises it to its own number. `release` is who migrated last.
create table schema_needs (
    one     boolean primary key default true check (one),
    least   bigint  not null,
    release text    not null
);

-- A release before this one would take a sealed secret for damage.
insert into schema_needs (least, release) values (27, '');
