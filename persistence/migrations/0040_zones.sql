-- Lists are in the order of ids and are asked for by what most rows are not: made, closed or changed within a span, failed,
-- in one of many queues. What the rows of a zone (1,024 ids that follow each other) have at least and at most, and which words
-- they hold, is kept here, so that a list leaves out the zones that hold nothing of it. An index on each of these would be
-- written with every message, and one on `updated_at` would keep tickets from being updated in place.
create table zones (
    company_id    bigint      not null,
    noun          text        not null check (noun in ('message', 'ticket')),
    -- The ids without their last ten bits.
    zone          bigint      not null,
    -- Times are those of whole hours, rounded away from the rows': a zone that is in use is written once an hour.
    created_from  timestamptz not null,
    created_until timestamptz not null,
    opened_until  timestamptz,
    closed_until  timestamptz,
    updated_until timestamptz,
    -- Bits of the words any row has or has had: `hotline_mark`.
    marks         bigint      not null,
    -- Bits of the ids any row refers to or has referred to: `hotline_bit`.
    channels      bigint      not null,
    queues        bigint      not null default 0,
    primary key (company_id, noun, zone)
) with (fillfactor = 80);
alter table zones alter column company_id set statistics 0;

-- The bit of a word: of a type, a direction or a status.
create function hotline_mark(word text) returns bigint language sql immutable parallel safe as $$
    select 1::bigint << (array_position(array['text', 'media', 'template', 'interactive', 'note', 'inbound', 'outbound',
        'internal', 'queued', 'sent', 'delivered', 'read', 'failed', 'received', 'open', 'closed', 'unassigned',
        'assigned'], word) - 1)
$$;

-- The bit of an id, which it shares with others.
create function hotline_bit(id bigint) returns bigint language sql immutable parallel safe as $$
    select coalesce(1::bigint << (id % 61)::integer, 0)
$$;

-- What the rows of one company say, or those of all: for rows that were there before, and for those that were put into the
-- tables by anything but the service.
create function hotline_fill_zones(company bigint default null) returns void language sql as $$
    insert into zones (company_id, noun, zone, created_from, created_until, opened_until, closed_until, updated_until,
            marks, channels, queues)
        select company_id, 'message', id >> 10, date_trunc('hour', min(created_at), 'UTC'),
            date_trunc('hour', max(created_at), 'UTC') + interval '1 hour', null, null, null,
            bit_or(hotline_mark(type) | hotline_mark(direction) | hotline_mark(status)), bit_or(hotline_bit(channel_id)),
            0
        from messages where company is null or company_id = company group by 1, 3
        union all
        select company_id, 'ticket', id >> 10, date_trunc('hour', min(created_at), 'UTC'),
            date_trunc('hour', max(created_at), 'UTC') + interval '1 hour',
            date_trunc('hour', max(opened_at), 'UTC') + interval '1 hour',
            date_trunc('hour', max(closed_at), 'UTC') + interval '1 hour',
            date_trunc('hour', max(updated_at), 'UTC') + interval '1 hour',
            bit_or(hotline_mark(status) | hotline_mark(case when user_id is null then 'unassigned' else 'assigned' end)),
            bit_or(hotline_bit(channel_id)), bit_or(hotline_bit(queue_id))
        from tickets where company is null or company_id = company group by 1, 3
    on conflict (company_id, noun, zone) do update set
        created_from = least(zones.created_from, excluded.created_from),
        created_until = greatest(zones.created_until, excluded.created_until),
        opened_until = greatest(zones.opened_until, excluded.opened_until),
        closed_until = greatest(zones.closed_until, excluded.closed_until),
        updated_until = greatest(zones.updated_until, excluded.updated_until),
        marks = zones.marks | excluded.marks,
        channels = zones.channels | excluded.channels,
        queues = zones.queues | excluded.queues
$$;
select hotline_fill_zones();
