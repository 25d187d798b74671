-- What happened to a company's records, told once and in order. A row holds the events of one transaction of one company:
-- some, of the persister; mostly one, of a plain change. Ids are dense within the company and in the order of the commits.

-- The last id of each company. Whoever writes events takes its row as the last thing before the commit, and holds it to the
-- commit: so an id is seen only when no smaller one can still appear.
create table event_counters (
    company_id bigint not null primary key,
    last_id    bigint not null
) with (fillfactor = 50);
alter table event_counters alter column company_id set statistics 0;

-- Like messages they have no foreign keys. A partition holds one day, and is dropped as a whole.
create table events (
    company_id bigint      not null,
    last_id    bigint      not null,
    -- When the transaction began that wrote it.
    created_at timestamptz not null,
    first_id   bigint      not null,
    -- A bit for each type of event that is among them.
    types      bigint      not null,
    -- The events, as JSON: what they are of, and how it was then where its row does not keep that.
    told       text        not null,
    primary key (company_id, last_id, created_at)
) partition by range (created_at);
alter table events alter column company_id set statistics 0;

-- What has no day of its own yet: nothing is refused because a partition is missing.
create table events_default partition of events default;
alter table events_default alter column company_id set statistics 0;

-- Events of a plain change on their way: they are numbered at its commit.
create table event_drafts (
    company_id bigint  not null,
    id         bigint  not null generated always as identity,
    events     integer not null,
    types      bigint  not null,
    told       text    not null,
    primary key (company_id, id)
);
alter table event_drafts alter column company_id set statistics 0;

create function hotline_number_events() returns trigger language plpgsql as $$
declare last bigint;
begin
    -- A service that keeps no events has its connections say so.
    if current_setting('hotline.events', true) is distinct from 'off' then
        insert into event_counters as c (company_id, last_id) values (new.company_id, new.events)
            on conflict (company_id) do update set last_id = c.last_id + excluded.last_id
            returning c.last_id into last;
        insert into events (company_id, last_id, created_at, first_id, types, told)
            values (new.company_id, last, now(), last - new.events + 1, new.types, new.told);
        perform pg_notify('hotline_events', new.company_id || ' ' || last);
    end if;
    delete from event_drafts where company_id = new.company_id and id = new.id;
    return null;
end $$;

-- At the commit: nothing of the change comes after it.
create constraint trigger number_events after insert on event_drafts
    deferrable initially deferred for each row execute function hotline_number_events();

-- A module more. Who may do everything, or all but to delete, may read events; an agent need not. Profiles of companies to
-- come have it by migration 44.
update profiles set permissions = permissions || '{"events": ["DELETE", "GET", "POST", "PUT"]}' where name = 'Administrator';
update profiles set permissions = permissions || '{"events": ["GET", "POST", "PUT"]}' where name = 'Supervisor';
