-- People sign in to the panel: users of a company, and the administrators of the installation, whose company is 0.

-- Who may do what a company's administrator does: tokens, channels, profiles, invitations.
alter table profiles add column administers boolean not null default false;
update profiles set administers = true where name = 'Administrator';

create or replace function hotline_default_profiles(company bigint) returns void language sql as $$
    with modules (module) as (
        select unnest(array['contacts', 'tickets', 'messages', 'channels', 'webchat', 'tags', 'queues', 'wrapupTypes',
            'users', 'profiles', 'schedules', 'quickMessages', 'campaigns', 'crm', 'products', 'customFields',
            'reports', 'events', 'webhooks'])
    ), permitted (profile, sees_all_cards, administers, module, methods) as (
        select 'Administrator', true, true, module, '["DELETE", "GET", "POST", "PUT"]'::jsonb from modules
        union all
        select 'Supervisor', true, false, module,
            case when module in ('users', 'profiles', 'webhooks') then '["GET"]'::jsonb
                else '["GET", "POST", "PUT"]'::jsonb end
        from modules
        union all
        select 'Agent', false, false, module,
            case when module in ('contacts', 'tickets', 'messages', 'webchat', 'crm') then '["GET", "POST", "PUT"]'::jsonb
                else '["GET"]'::jsonb end
        from modules where module in ('contacts', 'tickets', 'messages', 'webchat', 'crm', 'tags', 'queues',
            'wrapupTypes', 'users', 'channels', 'quickMessages', 'customFields')
    )
    insert into profiles (company_id, name, permissions, sees_all_cards, administers)
    select company, profile, jsonb_object_agg(module, methods), sees_all_cards, administers
    from permitted group by profile, sees_all_cards, administers
    order by array_position(array['Administrator', 'Supervisor', 'Agent'], profile)
    on conflict (company_id, name) do nothing
$$;

alter table companies add column second_factor_required boolean not null default false;

alter table admins add column name text not null default '';
alter table admins add column language text check (language in ('en', 'pt', 'es'));
alter table users add column language text check (language in ('en', 'pt', 'es'));

-- Who signs in names no company yet.
create index users_email on users (lower(email));

-- A company of 0 and the id of an administrator, or a company and the id of one of its users. Rows have no foreign key to
-- either; they go with their person.
create table person_sessions (
    company_id  bigint         not null,
    id          bigint         not null generated always as identity,
    person_id   bigint         not null,
    -- SHA-256 of what is in the cookie: 32 random characters.
    hash        bytea          not null,
    state       text           not null check (state in ('second_factor', 'open')),
    address     text,
    user_agent  text,
    wrong_codes smallint       not null default 0,
    created_at  timestamptz(3) not null default now(),
    seen_at     timestamptz(3) not null default now(),
    expires_at  timestamptz(3) not null,
    primary key (company_id, id)
);
alter table person_sessions alter column company_id set statistics 0;
create unique index person_sessions_hash on person_sessions (company_id, hash);
create index person_sessions_person on person_sessions (company_id, person_id);

create table second_factors (
    company_id     bigint         not null,
    person_id      bigint         not null,
    -- Sealed.
    secret         text           not null,
    -- None: shown, and not in force yet.
    confirmed_at   timestamptz(3),
    -- The last period of 30 seconds whose code was taken: none is taken twice.
    last_step      bigint         not null default 0,
    -- SHA-256 of those that are left.
    recovery_codes bytea[]        not null default '{}',
    primary key (company_id, person_id)
);
alter table second_factors alter column company_id set statistics 0;

-- An invitation or a reset: whoever holds it chooses the password.
create table person_links (
    company_id bigint         not null,
    person_id  bigint         not null,
    kind       text           not null check (kind in ('invitation', 'reset')),
    hash       bytea          not null,
    expires_at timestamptz(3) not null,
    created_at timestamptz(3) not null default now(),
    primary key (company_id, person_id)
);
alter table person_links alter column company_id set statistics 0;
create unique index person_links_hash on person_links (company_id, hash);

create function hotline_person_gone() returns trigger language plpgsql as $$
begin
    delete from person_sessions where company_id = old.company_id and person_id = old.id;
    delete from second_factors where company_id = old.company_id and person_id = old.id;
    delete from person_links where company_id = old.company_id and person_id = old.id;
    return null;
end $$;
create trigger person_gone after delete on users for each row execute function hotline_person_gone();

-- What administrators did. `status` is none while it is under way, and stays so when the process ended in between.
-- A sequence by itself: a partition takes over what the default one holds, with its ids.
create sequence audit_log_ids;
create table audit_log (
    company_id  bigint         not null,
    id          bigint         not null default nextval('audit_log_ids'),
    created_at  timestamptz(3) not null default now(),
    actor_kind  text           not null check (actor_kind in ('user', 'admin')),
    actor_id    bigint         not null,
    actor_name  text           not null,
    address     text,
    action      text           not null,
    target_id   text,
    target_name text,
    status      smallint,
    primary key (company_id, id, created_at)
) partition by range (created_at);
alter table audit_log alter column company_id set statistics 0;
create table audit_log_default partition of audit_log default;
alter table audit_log_default alter column company_id set statistics 0;
