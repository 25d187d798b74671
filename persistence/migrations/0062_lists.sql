-- What lists of a company that has been in use for years are asked for by.
--
-- Somebody's tickets, whatever their status: of open ones alone there was an index, and the others were all read and sorted.
create index tickets_assigned on tickets (company_id, user_id, id) where user_id is not null;

-- Messages that are no text, and those that could not be sent: few, and in every zone.
create index messages_kind on messages (company_id, type, id) where type <> 'text';
create index messages_failed on messages (company_id, id) where status = 'failed';

-- Deliveries are asked for by time, and are in the order of their events.
alter table zones drop constraint zones_noun_check;
alter table zones add constraint zones_noun_check check (noun in ('message', 'ticket', 'delivery'));

create or replace function hotline_fill_zones(company bigint default null) returns void language sql as $$
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
        union all
        select company_id, 'delivery', event_id >> 10, date_trunc('hour', min(created_at), 'UTC'),
            date_trunc('hour', max(created_at), 'UTC') + interval '1 hour', null, null,
            date_trunc('hour', max(updated_at), 'UTC') + interval '1 hour', 0, 0, 0
        from webhook_deliveries where company is null or company_id = company group by 1, 3
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

-- Messages and tickets have theirs.
insert into zones (company_id, noun, zone, created_from, created_until, updated_until, marks, channels)
    select company_id, 'delivery', event_id >> 10, date_trunc('hour', min(created_at), 'UTC'),
        date_trunc('hour', max(created_at), 'UTC') + interval '1 hour',
        date_trunc('hour', max(updated_at), 'UTC') + interval '1 hour', 0, 0
    from webhook_deliveries group by 1, 3;

-- The key's index is made last. On a table that was never analyzed (a new installation's first minute) every index of these
-- columns costs the planner the same, and of equals it takes the newest: with `messages_contact` in that place a change to one
-- message read all that its company has.
create unique index messages_by_id on messages (company_id, id);
alter table messages drop constraint messages_pkey, add constraint messages_pkey primary key using index messages_by_id;
