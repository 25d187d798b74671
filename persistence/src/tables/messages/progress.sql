-- A status moves forward only: queued < sent < delivered < read. `failed` is final, and what has arrived cannot fail.
update messages m set
    status = y.becomes,
    error = case when y.becomes = 'failed' and m.status <> 'failed' then y.failed else m.error end,
    -- Whatever the provider's clock says: nothing is sent before it was made, or arrives before it was sent.
    sent_at = case when y.sent is not null then greatest(m.created_at, y.sent) end,
    delivered_at = case when y.arrived is not null then greatest(m.created_at, y.sent, y.arrived) end,
    read_at = case when y.seen is not null then greatest(m.created_at, y.sent, y.arrived, y.seen) end,
    provider_message_id = coalesce(m.provider_message_id, y.provider_message_id)
from (
    select x.company_id, x.id, x.was, x.becomes, x.failed, x.provider_message_id,
        -- Of two that tell the same the earlier is right; what has come further has been everywhere before.
        case
            when x.was = 'failed' then x.was_sent
            when x.becomes = 'failed' then least(x.was_sent, x.sent_at)
            else least(x.was_sent, x.sent_at, x.delivered_at, x.read_at) end as sent,
        case when x.becomes = 'failed' then x.was_delivered
            else least(x.was_delivered, x.delivered_at, x.read_at) end as arrived,
        case when x.becomes = 'failed' then x.was_read else least(x.was_read, x.read_at) end as seen
    from (
        select told.*, k.status as was, k.sent_at as was_sent, k.delivered_at as was_delivered, k.read_at as was_read,
            case
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
) y
where m.company_id = y.company_id and m.id = y.id and m.direction = 'outbound'
