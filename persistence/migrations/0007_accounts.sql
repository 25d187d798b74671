-- Who runs the installation, and the profiles every company begins with.

-- Administrators of the panel belong to no company.
create table admins (
    id            bigint generated always as identity primary key,
    email         text        not null,
    password_hash text        not null,
    created_at    timestamptz(3) not null default now(),
    updated_at    timestamptz(3) not null default now()
);
create unique index admins_email on admins (lower(email));

-- The profiles a company begins with; what it has under one of the names already stays as it is.
--   Administrator: everything.
--   Supervisor: everything but to delete; users and profiles are only read, or a supervisor could become more.
--   Agent: the conversations and, without deleting, the sales; what these refer to is only read.
create function hotline_default_profiles(company bigint) returns void language sql as $$
    with modules (module) as (
        select unnest(array['contacts', 'tickets', 'messages', 'channels', 'webchat', 'tags', 'queues', 'wrapupTypes',
            'users', 'profiles', 'schedules', 'quickMessages', 'campaigns', 'crm', 'products', 'customFields',
            'reports'])
    ), permitted (profile, sees_all_cards, module, methods) as (
        select 'Administrator', true, module, '["DELETE", "GET", "POST", "PUT"]'::jsonb from modules
        union all
        select 'Supervisor', true, module,
            case when module in ('users', 'profiles') then '["GET"]'::jsonb else '["GET", "POST", "PUT"]'::jsonb end
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

select hotline_default_profiles(id) from companies order by id;
