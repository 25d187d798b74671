-- A message to every contact of a list. The campaign is plain; what becomes of its recipients is written with their messages.
create table campaigns (
    company_id      bigint      not null references companies (id),
    id              bigint      generated always as identity,
    name            text        not null,
    status          text        not null default 'scheduled'
        check (status in ('scheduled', 'processing', 'paused', 'completed', 'canceled')),
    -- No foreign keys: a list or channel that is gone by then is a reason, and none to be refused.
    contact_list_id bigint      not null,
    channel_id      bigint      not null,
    scheduled_at    timestamptz not null,
    completed_at    timestamptz,
    message         text,
    -- As it was asked for, and as the provider takes it with the text of its body.
    template        jsonb,
    built_template  jsonb,
    rate_per_minute integer     not null default 60 check (rate_per_minute >= 1),
    -- Whether tickets that are opened for it are closed again at once.
    keep_closed     boolean     not null default false,
    integration_id  bigint,
    -- Recipients by state, kept by triggers: there may be a million, and a campaign is shown beside a hundred others.
    pending         bigint      not null default 0,
    sent            bigint      not null default 0,
    delivered       bigint      not null default 0,
    read            bigint      not null default 0,
    failed          bigint      not null default 0,
    skipped         bigint      not null default 0,
    created_at      timestamptz(3) not null default now(),
    updated_at      timestamptz(3) not null default now(),
    primary key (company_id, id)
);
alter table campaigns alter column company_id set statistics 0;
create index campaigns_search on campaigns using gin (company_id, hotline_fold(name) gin_trgm_ops)
    with (gin_pending_list_limit = 512);
create index campaigns_status on campaigns (company_id, status, id);
create index campaigns_list on campaigns (company_id, contact_list_id, id);
-- What a start goes on with.
create index campaigns_unfinished on campaigns (company_id, id)
    where status in ('scheduled', 'processing') or status = 'canceled' and pending > 0;

create table campaign_recipients (
    company_id  bigint      not null,
    campaign_id bigint      not null,
    contact_id  bigint      not null,
    -- Pending with a message: the provider does not have it yet.
    status      text        not null default 'pending'
        check (status in ('pending', 'sent', 'delivered', 'read', 'failed', 'skipped')),
    message_id  bigint,
    -- Why it has failed or was skipped.
    error       jsonb,
    updated_at  timestamptz not null default now(),
    primary key (company_id, campaign_id, contact_id)
);
alter table campaign_recipients alter column company_id set statistics 0;
create index campaign_recipients_status on campaign_recipients (company_id, campaign_id, status, contact_id);
create index campaign_recipients_message on campaign_recipients (company_id, message_id) where message_id is not null;
create index campaign_recipients_contact on campaign_recipients (company_id, contact_id);

-- Once a statement, and the campaigns in one order, so that no two statements wait for each other. They are found by their
-- key, however few the statistics say there are.
create function hotline_count_recipients() returns trigger language plpgsql
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
            skipped = k.skipped + c.skipped
        from (select company_id, campaign_id,
                coalesce(sum(number) filter (where status = ''pending''), 0) as pending,
                coalesce(sum(number) filter (where status = ''sent''), 0) as sent,
                coalesce(sum(number) filter (where status = ''delivered''), 0) as delivered,
                coalesce(sum(number) filter (where status = ''read''), 0) as read,
                coalesce(sum(number) filter (where status = ''failed''), 0) as failed,
                coalesce(sum(number) filter (where status = ''skipped''), 0) as skipped
            from (' || moved || ') m group by 1, 2) c
        where k.company_id = c.company_id and k.id = c.campaign_id';
    return null;
end $$;

create trigger count_added after insert on campaign_recipients
    referencing new table as gained for each statement execute function hotline_count_recipients();
create trigger count_moved after update on campaign_recipients
    referencing new table as gained old table as lost for each statement execute function hotline_count_recipients();
create trigger count_removed after delete on campaign_recipients
    referencing old table as lost for each statement execute function hotline_count_recipients();

create function hotline_empty_campaign() returns trigger language plpgsql as $$
begin
    delete from campaign_recipients where company_id = old.company_id and campaign_id = old.id;
    return null;
end $$;

create trigger campaign_removed after delete on campaigns
    for each row execute function hotline_empty_campaign();
