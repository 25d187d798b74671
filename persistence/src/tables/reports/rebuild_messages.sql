-- What was said to and by a company. Notes are said to nobody.
select dimension, grain, g.at, key, count(*) filter (where direction = 'inbound')::bigint as inbound,
    count(*) filter (where direction = 'outbound')::bigint as outbound,
    count(*) filter (where status = 'failed')::bigint as failed
from messages m
cross join lateral (values ('company', ''), ('channel', m.channel_id::text), ('user', coalesce(m.user_id::text, '')),
    ('type', m.type)) d (dimension, key)
cross join lateral (values ('day', date_trunc('day', m.created_at, 'UTC')),
    ('quarter', date_bin('15 minutes', m.created_at, '2000-01-01 00:00:00+00'))) g (grain, at)
where m.company_id = $1 and m.direction in ('inbound', 'outbound')
group by dimension, grain, g.at, key
