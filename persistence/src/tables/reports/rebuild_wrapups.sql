-- How tickets were wrapped up, each time they were closed: as it was said last before the ticket was reopened.
select grain, g.at, coalesce(place.queue, '0')::bigint as queue_id, wrapup.id::bigint as wrapup_type_id,
    count(*)::bigint as count
from ticket_events e
cross join lateral (
    select s."to" -> 'wrapupType' ->> 'id' as id from ticket_events s
    where s.company_id = e.company_id and s.ticket_id = e.ticket_id and s.type in ('closed', 'wrapup_changed')
        and s.id >= e.id and s.id < coalesce((
            select min(r.id) from ticket_events r
            where r.company_id = e.company_id and r.ticket_id = e.ticket_id and r.type = 'reopened' and r.id > e.id),
            9223372036854775807)
    order by s.id desc limit 1
) wrapup
left join lateral (
    select s."to" -> 'queue' ->> 'id' as queue from ticket_events s
    where s.company_id = e.company_id and s.ticket_id = e.ticket_id and s.id <= e.id
        and s.type in ('opened', 'transferred')
    order by s.id desc limit 1
) place on true
cross join lateral (values ('day', date_trunc('day', e.created_at, 'UTC')),
    ('quarter', date_bin('15 minutes', e.created_at, '2000-01-01 00:00:00+00'))) g (grain, at)
where e.company_id = $1 and e.type = 'closed' and wrapup.id is not null
group by grain, g.at, queue_id, wrapup.id
