select * from (
    -- One that may have left is not withdrawn any more.
    (select m.*, c.number, m.source = 'campaign' and not d.may_have_left and exists (select from campaign_recipients r
            join campaigns k on k.company_id = r.company_id and k.id = r.campaign_id
            where r.company_id = m.company_id and r.message_id = m.id and k.status = 'canceled')
            as is_withdrawn,
        m.source = 'campaign' and not d.may_have_left and c.marketing_opt_out as is_opted_out, false as is_reaction,
        m.id as sending_id
    from messages m
    cross join lateral (select coalesce(m.attempts ?| array['begunAt', 'unknownAt'], false) as may_have_left) d
    -- Looked up message by message: as a join of two tables that were never analyzed, the planner reads all
    -- contacts of the company.
    cross join lateral (select number, marketing_opt_out from contacts c
        where c.company_id = m.company_id and c.id = m.contact_id offset 0) c
    where m.company_id = $1 and m.channel_id = $2 and m.status = 'queued'
      -- Hashed, which an array that is no constant is not.
      and m.id not in (select unnest($3::bigint[]))
      -- Left in doubt until a status names it.
      and not (d.may_have_left and exists (select from campaign_recipients r
          where r.company_id = m.company_id and r.message_id = m.id and r.status = 'unknown'))
    order by m.id limit $4)
    union all
    -- In the order of acceptance: its own id, not that of its message. What is no id must not fail the read.
    (select m.*, c.number, false, false, true,
        coalesce(substring(m.revisions #>> '{sending,id}' from '^[0-9]{1,18}$')::bigint, m.id) as sending_id
    from messages m
    cross join lateral (select number from contacts c
        where c.company_id = m.company_id and c.id = m.contact_id offset 0) c
    where m.company_id = $1 and m.channel_id = $2 and m.revisions ? 'sending' and m.status <> 'queued'
      and m.revisions #>> '{sending,id}' not in (select unnest($3::bigint[])::text)
    order by sending_id limit $4)
) waiting order by sending_id limit $4
