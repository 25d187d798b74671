-- Where a company is told of its events, and what became of each telling.
create table webhooks (
    company_id       bigint      not null references companies (id),
    id               bigint      generated always as identity,
    url              text        not null,
    description      text,
    -- Which events are told; none: all.
    types            text[]      not null default '{}',
    active           boolean     not null default true,
    -- Why it was switched off, if nobody has.
    disabled_reason  text,
    -- Sealed. The one before signs beside it for a while.
    secret           text        not null,
    old_secret       text,
    old_secret_until timestamptz,
    -- Up to this event each is delivered, or has a row in `webhook_deliveries`.
    told_to          bigint      not null default 0,
    -- Since when no delivery has succeeded, if the last one failed.
    failing_since    timestamptz,
    created_at       timestamptz(3) not null default now(),
    updated_at       timestamptz(3) not null default now(),
    primary key (company_id, id)
    -- `told_to` is written many times a second.
) with (fillfactor = 50);
alter table webhooks alter column company_id set statistics 0;

-- One event for one webhook. Beyond the webhook's `told_to` a row is only what is known of earlier attempts.
create table webhook_deliveries (
    company_id      bigint      not null,
    webhook_id      bigint      not null,
    event_id        bigint      not null,
    type            text        not null,
    -- The record it is of, `ticket:7`: of one record they are delivered one after the other.
    lane            text        not null,
    status          text        not null check (status in ('pending', 'delivered', 'failed')),
    -- Attempts that failed since it was last begun.
    tries           integer     not null default 0,
    -- The last of them, as they are shown.
    attempts        jsonb       not null default '[]',
    -- Of a pending one: when it is tried, or none while one before it in its lane is pending.
    next_attempt_at timestamptz,
    -- When its event happened.
    created_at      timestamptz(3) not null,
    updated_at      timestamptz(3) not null default now(),
    primary key (company_id, webhook_id, event_id)
) with (fillfactor = 80);
alter table webhook_deliveries alter column company_id set statistics 0;
create index webhook_deliveries_status on webhook_deliveries (company_id, webhook_id, status, event_id);
create index webhook_deliveries_due on webhook_deliveries (company_id, webhook_id, next_attempt_at)
    where status = 'pending' and next_attempt_at is not null;
create index webhook_deliveries_lane on webhook_deliveries (company_id, webhook_id, lane, event_id)
    where status = 'pending';

-- Tells the running service that a company's webhooks are other ones now, or are to go on somewhere else.
create function hotline_webhooks_changed() returns trigger language plpgsql as $$
begin
    perform pg_notify('hotline_webhooks', (case when tg_op = 'DELETE' then old else new end).company_id::text);
    return null;
end $$;

create trigger webhooks_changed after insert or delete
    or update of url, types, active, secret, old_secret on webhooks
    for each row execute function hotline_webhooks_changed();

-- Two modules more than in migration 7. Who may do everything, or all but to delete, may read events; an agent need not. A
-- webhook takes everything that happens out of the company: that is for administrators.
create or replace function hotline_default_profiles(company bigint) returns void language sql as $$
    with modules (module) as (
        select unnest(array['contacts', 'tickets', 'messages', 'channels', 'webchat', 'tags', 'queues', 'wrapupTypes',
            'users', 'profiles', 'schedules', 'quickMessages', 'campaigns', 'crm', 'products', 'customFields',
            'reports', 'events', 'webhooks'])
    ), permitted (profile, sees_all_cards, module, methods) as (
        select 'Administrator', true, module, '["DELETE", "GET", "POST", "PUT"]'::jsonb from modules
        union all
        select 'Supervisor', true, module,
            case when module in ('users', 'profiles', 'webhooks') then '["GET"]'::jsonb
                else '["GET", "POST", "PUT"]'::jsonb end
        from modules
        union all
        select 'Agent', false, module,
            case when module in ('contacts', 'tickets', 'messages', 'webchat', 'crm') then '["GET", "POST", "PUT"]'::jsonb
                else '["GET"]'::jsonb end
        from modules where module in ('contacts', 'tickets', 'messages', 'webchat', 'crm', 'tags', 'queues',
            'wrapupTypes', 'users', 'channels', 'quickMessages', 'customFields')
    )
    insert into profiles (company_id, name, permissions, sees_all_cards)
    select company, profile, jsonb_object_agg(module, methods), sees_all_cards
    from permitted group by profile, sees_all_cards
    order by array_position(array['Administrator', 'Supervisor', 'Agent'], profile)
    on conflict (company_id, name) do nothing
$$;

update profiles set permissions = permissions || '{"webhooks": ["DELETE", "GET", "POST", "PUT"]}' where name = 'Administrator';
update profiles set permissions = permissions || '{"webhooks": ["GET"]}' where name = 'Supervisor';
