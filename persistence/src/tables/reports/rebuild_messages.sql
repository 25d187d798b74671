-- What was said to and by a company. Notes are said to nobody. Counted once by everything, so that what is counted for each
-- dimension and grain are few rows.
with said as materialized (
    select date_bin('15 minutes', created_at, '2000-01-01 00:00:00+00') as quarter, channel_id, user_id, type,
        count(*) filter (where direction = 'inbound') as inbound,
        count(*) filter (where direction = 'outbound') as outbound,
        count(*) filter (where status = 'failed') as failed
    from messages
    where company_id = $1 and direction in ('inbound', 'outbound')
    group by 1, 2, 3, 4
)
select dimension, grain, g.at, key, sum(inbound)::bigint as inbound, sum(outbound)::bigint as outbound,
    sum(failed)::bigint as failed
from said s
cross join lateral (values ('company', ''), ('channel', s.channel_id::text), ('user', coalesce(s.user_id::text, '')),
    ('type', s.type)) d (dimension, key)
cross join lateral (values ('day', date_trunc('day', s.quarter, 'UTC')), ('quarter', s.quarter)) g (grain, at)
group by dimension, grain, g.at, key
