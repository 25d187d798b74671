-- Locks: companies (share row exclusive), for a moment: it is referred to
-- Contacts and tickets that were merged into others: by their ids the others are found. Deleted with the record that stayed.
create table merges (
    company_id bigint         not null references companies on delete cascade,
    noun       text           not null check (noun in ('contact', 'ticket')),
    id         bigint         not null,
    into_id    bigint         not null,
    created_at timestamptz(3) not null,
    primary key (company_id, noun, id)
);
create index merges_into on merges (company_id, noun, into_id);
alter table merges alter column company_id set statistics 0;
