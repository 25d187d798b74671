-- A status moves forward only: queued < sent < delivered < read. `failed` is final, and what has arrived cannot fail.
update messages m set
    status = x.becomes,
    error = case when x.becomes = 'failed' and m.status <> 'failed' then x.failed else m.error end,
    -- Of two that tell the same the earlier is right; what has come further has been everywhere before.
    sent_at = case
        when m.status = 'failed' then m.sent_at
        when x.becomes = 'failed' then least(m.sent_at, x.sent_at)
        else least(m.sent_at, x.sent_at, x.delivered_at, x.read_at) end,
    delivered_at = case when x.becomes = 'failed' then m.delivered_at
        else least(m.delivered_at, x.delivered_at, x.read_at) end,
    read_at = case when x.becomes = 'failed' then m.read_at else least(m.read_at, x.read_at) end,
    provider_message_id = coalesce(m.provider_message_id, x.provider_message_id)
from (
    select told.*, case
            when k.status = 'failed' then 'failed'
            when k.status in ('queued', 'sent') and told.failed is not null then 'failed'
            when array_position(ranks, told.reached) > array_position(ranks, k.status) then told.reached
            else k.status end as becomes
    from unnest($1::bigint[], $2::bigint[], $3::text[], $4::jsonb[], $5::timestamptz[], $6::timestamptz[],
        $7::timestamptz[], $8::text[])
        as told (company_id, id, reached, failed, sent_at, delivered_at, read_at, provider_message_id)
    cross join (values (array['queued', 'sent', 'delivered', 'read'])) as ranked (ranks)
    join messages k on k.company_id = told.company_id and k.id = told.id
) x
where m.company_id = x.company_id and m.id = x.id and m.direction = 'outbound'
