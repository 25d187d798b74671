-- Lists of contacts, to be written to at once.
create table contact_lists (
    company_id     bigint      not null references companies (id),
    id             bigint      generated always as identity,
    name           text        not null,
    -- Kept by triggers: a list may have a million, and is shown beside a hundred others.
    contacts_count bigint      not null default 0,
    created_at     timestamptz(3) not null default now(),
    updated_at     timestamptz(3) not null default now(),
    primary key (company_id, id)
);
alter table contact_lists alter column company_id set statistics 0;
create index contact_lists_search on contact_lists using gin (company_id, hotline_fold(name) gin_trgm_ops)
    with (gin_pending_list_limit = 512);

create table contact_list_contacts (
    company_id      bigint not null,
    contact_list_id bigint not null,
    contact_id      bigint not null,
    primary key (company_id, contact_list_id, contact_id),
    -- Whoever adds holds the list's row, which is one lock and not one for each of a hundred thousand contacts.
    foreign key (company_id, contact_id) references contacts (company_id, id) on delete cascade
);
alter table contact_list_contacts alter column company_id set statistics 0;
create index contact_list_contacts_contact on contact_list_contacts (company_id, contact_id);

-- Once a statement, and the lists in one order, so that no two statements wait for each other. The lists are found by their
-- key, however few the statistics say there are.
create function hotline_count_list_contacts() returns trigger language plpgsql
    set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
begin
    perform from contact_lists l
        join (select distinct company_id, contact_list_id from changed) c
            on l.company_id = c.company_id and l.id = c.contact_list_id
        order by l.company_id, l.id for no key update of l;
    update contact_lists l set contacts_count = contacts_count + case tg_op when 'INSERT' then c.count else -c.count end
        from (select company_id, contact_list_id, count(*) as count from changed group by 1, 2) c
        where l.company_id = c.company_id and l.id = c.contact_list_id;
    return null;
end $$;

create trigger count_added after insert on contact_list_contacts
    referencing new table as changed for each statement execute function hotline_count_list_contacts();
create trigger count_removed after delete on contact_list_contacts
    referencing old table as changed for each statement execute function hotline_count_list_contacts();

create function hotline_empty_list() returns trigger language plpgsql as $$
begin
    delete from contact_list_contacts where company_id = old.company_id and contact_list_id = old.id;
    return null;
end $$;

create trigger list_removed after delete on contact_lists
    for each row execute function hotline_empty_list();
