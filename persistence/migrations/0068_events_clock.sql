-- The times of events never go back: a row has the latest time before it, below which none of its own is shown. A plain
-- change is dated when it happens and numbered when it commits, and another may come between.
alter table event_counters
    -- The latest time of the company's events, and what it was before the last that were written.
    add column last_at   timestamptz,
    add column before_at timestamptz;
alter table events add column not_before timestamptz;
alter table event_drafts add column last_at timestamptz;

create or replace function hotline_number_events() returns trigger language plpgsql as $$
declare last bigint; before timestamptz;
begin
    -- A service that keeps no events has its connections say so.
    if current_setting('hotline.events', true) is distinct from 'off' then
        insert into event_counters as c (company_id, last_id, last_at) values (new.company_id, new.events, new.last_at)
            on conflict (company_id) do update set last_id = c.last_id + excluded.last_id, before_at = c.last_at,
                last_at = greatest(c.last_at, excluded.last_at)
            returning c.last_id, c.before_at into last, before;
        insert into events (company_id, last_id, created_at, first_id, types, told, not_before)
            values (new.company_id, last, now(), last - new.events + 1, new.types, new.told, before);
        perform pg_notify('hotline_events', new.company_id || ' ' || last);
    end if;
    delete from event_drafts where company_id = new.company_id and id = new.id;
    return null;
end $$;

-- What a list shows of its contacts is a change of the list.
create or replace function hotline_count_list_contacts() returns trigger language plpgsql
    set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
begin
    perform from contact_lists l
        join (select distinct company_id, contact_list_id from changed) c
            on l.company_id = c.company_id and l.id = c.contact_list_id
        order by l.company_id, l.id for no key update of l;
    update contact_lists l set contacts_count = contacts_count + case tg_op when 'INSERT' then c.count else -c.count end,
            updated_at = greatest(now(), l.updated_at + interval '1 millisecond')
        from (select company_id, contact_list_id, count(*) as count from changed group by 1, 2) c
        where l.company_id = c.company_id and l.id = c.contact_list_id;
    return null;
end $$;
