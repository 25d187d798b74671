-- Lists are in the order of ids and are asked for by time. What the rows of a zone (1,024 ids that follow each other) have
-- at least and at most is kept here, so that a list leaves out the zones that hold nothing of a span, and needs no index on
-- times: one on `updated_at` would be written with every message. Times are those of whole hours, rounded away from the
-- zone's, so that a zone that is in use is written once an hour.
create table zones (
    company_id    bigint      not null,
    noun          text        not null check (noun in ('message', 'ticket')),
    -- The ids without their last ten bits.
    zone          bigint      not null,
    created_from  timestamptz not null,
    created_until timestamptz not null,
    opened_until  timestamptz,
    closed_until  timestamptz,
    updated_until timestamptz,
    primary key (company_id, noun, zone)
) with (fillfactor = 80);
alter table zones alter column company_id set statistics 0;

-- What the rows of one company say, or those of all: for rows that were there before, and for those that were put into the
-- tables by anything but the service.
create function hotline_fill_zones(company bigint default null) returns void language sql as $$
    insert into zones (company_id, noun, zone, created_from, created_until, opened_until, closed_until, updated_until)
        select company_id, 'message', id >> 10, date_trunc('hour', min(created_at), 'UTC'),
            date_trunc('hour', max(created_at), 'UTC') + interval '1 hour', null, null, null
        from messages where company is null or company_id = company group by 1, 3
        union all
        select company_id, 'ticket', id >> 10, date_trunc('hour', min(created_at), 'UTC'),
            date_trunc('hour', max(created_at), 'UTC') + interval '1 hour',
            date_trunc('hour', max(opened_at), 'UTC') + interval '1 hour',
            date_trunc('hour', max(closed_at), 'UTC') + interval '1 hour',
            date_trunc('hour', max(updated_at), 'UTC') + interval '1 hour'
        from tickets where company is null or company_id = company group by 1, 3
    on conflict (company_id, noun, zone) do update set
        created_from = least(zones.created_from, excluded.created_from),
        created_until = greatest(zones.created_until, excluded.created_until),
        opened_until = greatest(zones.opened_until, excluded.opened_until),
        closed_until = greatest(zones.closed_until, excluded.closed_until),
        updated_until = greatest(zones.updated_until, excluded.updated_until)
$$;
select hotline_fill_zones();
