-- Locks: none
-- Zones of messages that were inserted by anything but the service had no time of the last change, so that a list with
-- `updatedFrom` did not find messages that had changed more than an hour after their zone's last one was created.
-- `select hotline_fill_zones()` mends the zones of companies that were imported before.
create or replace function hotline_fill_zones(company bigint default null) returns void language sql as $$
    insert into zones (company_id, noun, zone, created_from, created_until, opened_until, closed_until, updated_until,
            marks, channels, queues)
        select company_id, 'message', id >> 10, date_trunc('hour', min(created_at), 'UTC'),
            date_trunc('hour', max(created_at), 'UTC') + interval '1 hour', null, null,
            date_trunc('hour', max(updated_at), 'UTC') + interval '1 hour',
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
