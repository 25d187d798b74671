-- Locks: campaigns (access exclusive, catalog only)
-- Recipients of whom nobody knows whether their message has left, and why a campaign is paused if nobody has paused it.
alter table campaigns add column unknown bigint not null default 0, add column paused_reason text;
create index campaigns_in_doubt on campaigns (company_id, id) where unknown > 0;

create or replace function hotline_count_recipients() returns trigger language plpgsql
    set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    gained constant text := 'select company_id, campaign_id, status, 1 as number from gained';
    lost constant text := 'select company_id, campaign_id, status, -1 as number from lost';
    moved constant text := case tg_op when 'INSERT' then gained when 'DELETE' then lost
        else gained || ' union all ' || lost end;
begin
    execute 'select from campaigns k join (select distinct company_id, campaign_id from (' || moved || ') m) c
            on k.company_id = c.company_id and k.id = c.campaign_id
        order by k.company_id, k.id for no key update of k';
    execute 'update campaigns k set pending = k.pending + c.pending, sent = k.sent + c.sent,
            delivered = k.delivered + c.delivered, read = k.read + c.read, failed = k.failed + c.failed,
            skipped = k.skipped + c.skipped, unknown = k.unknown + c.unknown
        from (select company_id, campaign_id,
                coalesce(sum(number) filter (where status = ''pending''), 0) as pending,
                coalesce(sum(number) filter (where status = ''sent''), 0) as sent,
                coalesce(sum(number) filter (where status = ''delivered''), 0) as delivered,
                coalesce(sum(number) filter (where status = ''read''), 0) as read,
                coalesce(sum(number) filter (where status = ''failed''), 0) as failed,
                coalesce(sum(number) filter (where status = ''skipped''), 0) as skipped,
                coalesce(sum(number) filter (where status = ''unknown''), 0) as unknown
            from (' || moved || ') m group by 1, 2) c
        where k.company_id = c.company_id and k.id = c.campaign_id';
    return null;
end $$;
