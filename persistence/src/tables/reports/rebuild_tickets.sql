-- What happened to the tickets of a company, each in the queue and with the user the ticket had right after it, as the last
-- event until then says. Of an answer it is the last event before it left, and before its millisecond: messages and events have no
-- common order, and what follows a message has its time.
select dimension, grain, g.at, key, count(*) filter (where type = 'opened')::bigint as opened,
    count(*) filter (where type = 'closed')::bigint as closed,
    count(*) filter (where type = 'reopened')::bigint as reopened,
    count(*) filter (where type = 'answered')::bigint as answered,
    coalesce(sum(ms) filter (where type = 'answered'), 0)::bigint as answer_ms,
    coalesce(sum(ms) filter (where type = 'closed'), 0)::bigint as resolution_ms
from (
    select e.type, e.ticket_id, e.id as event_id, e.created_at as at, null::timestamptz as left_at, case when e.type = 'closed' then (
        select greatest(0, floor(extract(epoch from e.created_at - max(o.created_at)) * 1000)) from ticket_events o
        where o.company_id = e.company_id and o.ticket_id = e.ticket_id and o.id < e.id
            and o.type in ('opened', 'reopened')) end as ms
    from ticket_events e where e.company_id = $1 and e.type in ('opened', 'closed', 'reopened')
    union all
    select 'answered', o.ticket_id, null, m.created_at, m.sent_at,
        greatest(0, floor(extract(epoch from m.created_at - o.created_at) * 1000))
    from ticket_events o
    join tickets t on t.company_id = o.company_id and t.id = o.ticket_id and t.creation_source = 'contact'
    cross join lateral (
        -- What has left was sent at some time, also if the provider says later that it failed.
        select s.created_at, s.sent_at from messages s
        where s.company_id = o.company_id and s.ticket_id = o.ticket_id and s.direction = 'outbound'
            and s.source in ('api', 'user', 'bot') and s.sent_at is not null and s.created_at >= o.created_at
            -- Not what was written in another app before the contact wrote, and reported late.
            and s.content #> '{via,late}' is null
            and not exists (
                select from ticket_events r where r.company_id = o.company_id and r.ticket_id = o.ticket_id
                    and r.type = 'reopened' and r.id > o.id and r.created_at <= s.created_at)
        order by s.id limit 1
    ) m
    where o.company_id = $1 and o.type in ('opened', 'reopened')
) happened
join tickets t on t.company_id = $1 and t.id = happened.ticket_id
left join lateral (
    select s."to" -> 'queue' ->> 'id' as queue, s."to" -> 'assignedTo' ->> 'id' as assignee from ticket_events s
    where s.company_id = $1 and s.ticket_id = happened.ticket_id and s.type in ('opened', 'transferred')
        and (s.id <= happened.event_id or s.created_at < happened.left_at or s.type = 'opened')
    order by s.id desc limit 1
) place on true
cross join lateral (values ('company', ''), ('queue', coalesce(place.queue, '')), ('channel', t.channel_id::text),
    ('user', coalesce(place.assignee, ''))) d (dimension, key)
cross join lateral (values ('day', date_trunc('day', happened.at, 'UTC')),
    ('quarter', date_bin('15 minutes', happened.at, '2000-01-01 00:00:00+00'))) g (grain, at)
group by dimension, grain, g.at, key
