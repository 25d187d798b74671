-- The schema of release 0.1.0. Releases after it add a file each time; this one never changes.
--
-- Its parts, in this order: texts, the installation, companies and their people, what conversations refer to, contacts,
-- conversations, campaigns, sales, reports, events and webhooks, idempotency, the journal, the cluster, deletions in steps,
-- zone maps, and at the end what holds for many tables.
--
-- `docs/schema.md` says who writes each table. Two rules hold for all of them:
-- - The key of a company's table begins with `company_id`.
-- - Times that the API shows of plain rows are stored in its milliseconds, so that a filter by a time that was shown finds
--   its record.

------------------------------------------------------------------------------------------------------------------------------
-- Texts: how they are searched and compared
------------------------------------------------------------------------------------------------------------------------------

create extension if not exists unaccent;
create extension if not exists pg_trgm;
create extension if not exists btree_gin;

-- What search compares: lower case, without accents. `unaccent` is only stable because its dictionary may be
-- altered; naming the dictionary makes the wrapper safe to index.
create function hotline_fold(value text) returns text
    language sql immutable parallel safe strict
    as $$ select lower(public.unaccent('public.unaccent', value)) $$;

-- The pattern that finds a text anywhere in a folded one. It is escaped after the folding, which may turn other characters
-- into wildcards (a full-width percent sign, for one).
create function hotline_pattern(value text) returns text
    language sql immutable parallel safe strict
    as $$ select '%' || regexp_replace(hotline_fold(value), '([\\%_])', '\\\1', 'g') || '%' $$;

-- What a unique name looks like: without invisible characters, and with each run of blanks as one. Two names of a company
-- that look the same are the same, and are stored as they were written. Joiners stay where they change the letters or the
-- emoji on both sides, and tags where they make a flag another. `letters::looks` is the same function in Rust.
--
-- <https://www.unicode.org/Public/UCD/latest/ucd/DerivedCoreProperties.txt> (`Default_Ignorable_Code_Point`)
do $$
begin
    if current_setting('server_encoding') <> 'UTF8' then
        -- Only in UTF-8 do the numbers of characters mean what they do below.
        create function hotline_looks(name text) returns text language sql immutable strict parallel safe
            return btrim(name);
        return;
    end if;
    create function hotline_looks(name text) returns text language sql immutable strict parallel safe
        return btrim(regexp_replace(regexp_replace(regexp_replace(regexp_replace(name collate "C",
            '[\u0001-\u0008\u000e-\u001f\u007f-\u0084\u0086-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f'
                || '\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff0-\ufffb\U0001bca0-\U0001bca3'
                || '\U0001d173-\U0001d17a\U000e0000-\U000e001f\U000e0080-\U000e0fff]'
                || '|(?<!\U0001f3f4[\U000e0020-\U000e007f]*)[\U000e0020-\U000e007f]', '', 'g'),
            '([\u200c\u200d])[\u200c\u200d]+', '\1', 'g'),
            '\u200c(?![\u0620-\u0dff\u0f00-\u109f\u1780-\u18af\ufb50-\ufdff\ufe70-\ufefc])'
                || '|(?<![\u0620-\u0dff\u0f00-\u109f\u1780-\u18af\ufb50-\ufdff\ufe70-\ufefc])\u200c'
                || '|\u200d(?![\u0900-\u0dff\u0f00-\u109f\u1780-\u18af\u2190-\u27ff\u2900-\u2bff\U0001f000-\U0001faff])'
                || '|(?<![\u0900-\u0dff\u0f00-\u109f\u1780-\u18af\u2190-\u27ff\u2900-\u2bff\U0001f000-\U0001faff])\u200d', '', 'g'),
            '[\u0009-\u000d\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u2800\u3000\u3164\uffa0]+', ' ', 'g'));
end $$;

------------------------------------------------------------------------------------------------------------------------------
-- The installation
------------------------------------------------------------------------------------------------------------------------------

-- One row: which releases may serve this database. `least` is the last migration that a release must know; one that the
-- release before cannot live with raises it to its own number. `release` migrated last.
create table schema_needs (
    one     boolean primary key default true check (one),
    least   bigint  not null,
    release text    not null
);
insert into schema_needs (least, release) values (1, '');

-- Secrets that all processes of the installation share.
create table installation_keys (
    name       text        primary key,
    key        bytea       not null,
    created_at timestamptz(3) not null default now()
);

-- The keys that encrypt this database's secrets, by their fingerprints; the keys themselves are in a file outside the
-- database. The newest encrypts what is written.
create table secret_keys (
    id         text        primary key check (id ~ '^[0-9a-f]{16}$'),
    position   bigint      not null generated always as identity,
    created_at timestamptz(3) not null default now()
);

-- Administrators of the installation, who belong to no company.
create table admins (
    id            bigint generated always as identity primary key,
    name          text        not null default '',
    email         text        not null,
    password_hash text        not null,
    language      text        check (language in ('en', 'pt', 'es')),
    created_at    timestamptz(3) not null default now(),
    updated_at    timestamptz(3) not null default now()
);
create unique index admins_email on admins (lower(email));

------------------------------------------------------------------------------------------------------------------------------
-- Companies and their people
------------------------------------------------------------------------------------------------------------------------------

create table companies (
    id                     bigint generated always as identity primary key,
    name                   text        not null,
    active                 boolean     not null default true,
    api_enabled            boolean     not null default true,
    rate_per_minute        integer     check (rate_per_minute >= 0),
    time_zone              text        not null default 'UTC',
    -- The words by which a contact refuses campaigns, folded as they are compared: lower case, without accents.
    stop_words             text[]      not null
        default '{stop,stopall,unsubscribe,sair,parar,pare,cancelar,descadastrar,baja}',
    second_factor_required boolean     not null default false,
    -- Its part of 1024. A column and not a function of the id, so that an operator can give a large company a part of its
    -- own; until then it is a hash of the id.
    slot                   smallint    not null check (slot between 0 and 1023),
    created_at             timestamptz(3) not null default now(),
    updated_at             timestamptz(3) not null default now()
);

-- Made of SHA-256 and not of PostgreSQL's own hash, which may differ from one version to the next.
create function hotline_slot(company bigint) returns smallint
    language sql immutable parallel safe strict
    as $$ select ((get_byte(sha256(int8send(company)), 0) & 3) * 256 + get_byte(sha256(int8send(company)), 1))::smallint $$;

-- A default cannot read another column.
create function hotline_company_slot() returns trigger language plpgsql as $$
begin
    new.slot := coalesce(new.slot, hotline_slot(new.id));
    return new;
end $$;
create trigger company_slot before insert on companies for each row execute function hotline_company_slot();

create table tokens (
    id           bigint generated always as identity primary key,
    company_id   bigint      not null references companies on delete cascade,
    name         text        not null,
    prefix       text        not null,
    -- SHA-256 of the key: 32 random characters need no slow hash, and every request looks it up.
    hash         bytea       not null unique,
    permissions  jsonb       not null,
    allowed_ips  text[]      not null default '{}',
    expires_at   timestamptz(3),
    revoked_at   timestamptz(3),
    last_used_at timestamptz(3),
    created_at   timestamptz(3) not null default now(),
    updated_at   timestamptz(3) not null default now()
);
create index tokens_company on tokens (company_id, id);

create table profiles (
    company_id     bigint      not null references companies on delete cascade,
    id             bigint generated always as identity,
    name           text        not null,
    permissions    jsonb       not null default '{}',
    sees_all_cards boolean     not null default false,
    -- Whether its users administer their company: tokens, channels, profiles, invitations.
    administers    boolean     not null default false,
    created_at     timestamptz(3) not null default now(),
    updated_at     timestamptz(3) not null default now(),
    looks          text,
    primary key (company_id, id),
    unique (company_id, name)
);
create index profiles_search on profiles using gin (company_id, hotline_fold(name) gin_trgm_ops)
    with (gin_pending_list_limit = 512);

-- Creates the profiles of a new company. A profile that exists under one of the names stays as it is.
--   Administrator: everything.
--   Supervisor: everything but deletions. Users and profiles are read-only, or a supervisor could grant themselves more;
--     so are webhooks, which send all of a company's events elsewhere.
--   Agent: conversations and sales, without deletions; what these refer to is read-only.
create function hotline_default_profiles(company bigint) returns void language sql as $$
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

-- A person's membership in one company.
create table users (
    company_id    bigint      not null references companies on delete cascade,
    id            bigint generated always as identity,
    name          text        not null,
    email         text        not null,
    password_hash text,
    profile_id    bigint,
    active        boolean     not null default true,
    language      text        check (language in ('en', 'pt', 'es')),
    created_at    timestamptz(3) not null default now(),
    updated_at    timestamptz(3) not null default now(),
    primary key (company_id, id),
    foreign key (company_id, profile_id) references profiles (company_id, id)
);
create unique index users_company_email on users (company_id, lower(email));
create index users_profile on users (company_id, profile_id);
create index users_search on users using gin (company_id, hotline_fold(name || E'\n' || email) gin_trgm_ops)
    with (gin_pending_list_limit = 512);
-- A sign-in names no company yet.
create index users_email on users (lower(email));

-- The names of users who have left while closed tickets are still assigned to them.
create table former_users (
    company_id bigint         not null references companies on delete cascade,
    id         bigint         not null,
    name       text           not null,
    left_at    timestamptz(3) not null default now(),
    primary key (company_id, id)
);

-- How long a company retains a conversation once it is closed. A table of its own: the directory does not need it, and its
-- updates at every step must not look like a change of the company.
create table retentions (
    company_id   bigint         not null primary key references companies on delete cascade,
    -- Days after which a closed conversation is deleted; null: never.
    days         integer        check (days >= 30),
    -- The first midnight (UTC) from which reports can be recounted: conversations of before are missing. Null: none is.
    counted_from timestamptz,
    -- Conversations deleted so far.
    removed      bigint         not null default 0,
    -- When the last complete run ended.
    ran_at       timestamptz(3),
    created_at   timestamptz(3) not null default now(),
    updated_at   timestamptz(3) not null default now()
);

-- The panel's people are users of a company, and the administrators of the installation, whose company is 0. The tables of
-- their sign-ins refer to neither by a foreign key; a trigger deletes the rows with their user.
create table person_sessions (
    company_id  bigint         not null,
    id          bigint         not null generated always as identity,
    person_id   bigint         not null,
    -- SHA-256 of the cookie's 32 random characters.
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
create unique index person_sessions_hash on person_sessions (company_id, hash);
create index person_sessions_person on person_sessions (company_id, person_id);

create table second_factors (
    company_id     bigint         not null,
    person_id      bigint         not null,
    -- Encrypted.
    secret         text           not null,
    -- Null: the secret was shown, but is not in force yet.
    confirmed_at   timestamptz(3),
    -- The period of 30 seconds of the last accepted code: no code is accepted twice.
    last_step      bigint         not null default 0,
    -- SHA-256 of the remaining ones.
    recovery_codes bytea[]        not null default '{}',
    primary key (company_id, person_id)
);

-- An invitation or a reset: its holder chooses the password.
create table person_links (
    company_id bigint         not null,
    person_id  bigint         not null,
    kind       text           not null check (kind in ('invitation', 'reset')),
    hash       bytea          not null,
    expires_at timestamptz(3) not null,
    created_at timestamptz(3) not null default now(),
    primary key (company_id, person_id)
);
create unique index person_links_hash on person_links (company_id, hash);

create function hotline_person_gone() returns trigger language plpgsql as $$
begin
    delete from person_sessions where company_id = old.company_id and person_id = old.id;
    delete from second_factors where company_id = old.company_id and person_id = old.id;
    delete from person_links where company_id = old.company_id and person_id = old.id;
    return null;
end $$;
create trigger person_gone after delete on users for each row execute function hotline_person_gone();

-- Actions of administrators and integrations on the setup. `status` is null while the action is under way, and stays null if
-- the process ends meanwhile. The ids are of a sequence that no table owns: a new partition takes rows over from the default
-- one, with their ids.
create sequence audit_log_ids;
create table audit_log (
    company_id  bigint         not null,
    id          bigint         not null default nextval('audit_log_ids'),
    created_at  timestamptz(3) not null default now(),
    actor_kind  text           not null check (actor_kind in ('user', 'admin', 'integration')),
    actor_id    bigint         not null,
    actor_name  text           not null,
    address     text,
    action      text           not null,
    target_id   text,
    target_name text,
    status      smallint,
    primary key (company_id, id, created_at)
) partition by range (created_at);
create table audit_log_default partition of audit_log default;

------------------------------------------------------------------------------------------------------------------------------
-- What conversations refer to
------------------------------------------------------------------------------------------------------------------------------

create table queues (
    company_id      bigint      not null references companies on delete cascade,
    id              bigint generated always as identity,
    name            text        not null,
    color           text        not null default '#64748b',
    greeting        text,
    distribution    text        not null default 'manual' check (distribution in ('manual', 'round_robin', 'least_busy')),
    wrapup_required boolean     not null default false,
    active          boolean     not null default true,
    created_at      timestamptz(3) not null default now(),
    updated_at      timestamptz(3) not null default now(),
    looks           text,
    primary key (company_id, id),
    unique (company_id, name)
);
create index queues_search on queues using gin (company_id, hotline_fold(name) gin_trgm_ops)
    with (gin_pending_list_limit = 512);

create table queue_users (
    company_id bigint not null,
    queue_id   bigint not null,
    user_id    bigint not null,
    primary key (company_id, queue_id, user_id),
    foreign key (company_id, queue_id) references queues (company_id, id) on delete cascade,
    foreign key (company_id, user_id) references users (company_id, id) on delete cascade
);
create index queue_users_user on queue_users (company_id, user_id);

create table wrapup_categories (
    company_id bigint      not null references companies on delete cascade,
    id         bigint generated always as identity,
    name       text        not null,
    created_at timestamptz(3) not null default now(),
    updated_at timestamptz(3) not null default now(),
    looks      text,
    primary key (company_id, id),
    unique (company_id, name)
);
create index wrapup_categories_search on wrapup_categories using gin (company_id, hotline_fold(name) gin_trgm_ops)
    with (gin_pending_list_limit = 512);

create table wrapup_types (
    company_id  bigint      not null references companies on delete cascade,
    id          bigint generated always as identity,
    category_id bigint      not null,
    name        text        not null,
    active      boolean     not null default true,
    created_at  timestamptz(3) not null default now(),
    updated_at  timestamptz(3) not null default now(),
    looks       text,
    primary key (company_id, id),
    unique (company_id, name),
    foreign key (company_id, category_id) references wrapup_categories (company_id, id)
);
create index wrapup_types_category on wrapup_types (company_id, category_id);
create index wrapup_types_search on wrapup_types using gin (company_id, hotline_fold(name) gin_trgm_ops)
    with (gin_pending_list_limit = 512);

create table wrapup_type_queues (
    company_id     bigint not null,
    wrapup_type_id bigint not null,
    queue_id       bigint not null,
    primary key (company_id, wrapup_type_id, queue_id),
    foreign key (company_id, wrapup_type_id) references wrapup_types (company_id, id) on delete cascade,
    foreign key (company_id, queue_id) references queues (company_id, id) on delete cascade
);
create index wrapup_type_queues_queue on wrapup_type_queues (company_id, queue_id);

create table channels (
    company_id bigint      not null references companies on delete cascade,
    id         bigint generated always as identity,
    name       text        not null,
    type       text        not null check (type in ('whatsapp', 'messenger', 'instagram', 'webchat')),
    status     text        not null check (status in ('connected', 'disconnected', 'error')),
    number     text,
    queue_id   bigint,
    last_error text,
    -- Names the channel where the caller has no company token: the visitor's door and the provider's webhook.
    public_key text        not null unique,
    settings   jsonb       not null default '{}',
    created_at timestamptz(3) not null default now(),
    updated_at timestamptz(3) not null default now(),
    primary key (company_id, id),
    foreign key (company_id, queue_id) references queues (company_id, id)
);
create index channels_queue on channels (company_id, queue_id);

create table tags (
    company_id bigint      not null references companies on delete cascade,
    id         bigint generated always as identity,
    name       text        not null,
    color      text        not null default '#64748b',
    created_at timestamptz(3) not null default now(),
    updated_at timestamptz(3) not null default now(),
    looks      text,
    primary key (company_id, id),
    unique (company_id, name)
);
create index tags_search on tags using gin (company_id, hotline_fold(name) gin_trgm_ops)
    with (gin_pending_list_limit = 512);

create table custom_fields (
    company_id  bigint      not null references companies on delete cascade,
    id          bigint generated always as identity,
    key         text        not null,
    name        text        not null,
    application text        not null check (application in ('contact', 'card')),
    type        text        not null,
    options     jsonb       not null default '[]',
    required    boolean     not null default false,
    position    integer     not null,
    created_at  timestamptz(3) not null default now(),
    updated_at  timestamptz(3) not null default now(),
    primary key (company_id, id),
    unique (company_id, application, key)
);
create index custom_fields_search on custom_fields using gin (company_id, hotline_fold(name || E'\n' || key) gin_trgm_ops)
    with (gin_pending_list_limit = 512);

create table global_variables (
    company_id  bigint      not null references companies on delete cascade,
    id          bigint generated always as identity,
    key         text        not null,
    value       text        not null,
    description text,
    created_at  timestamptz(3) not null default now(),
    updated_at  timestamptz(3) not null default now(),
    primary key (company_id, id),
    unique (company_id, key)
);
create index global_variables_key on global_variables using gin (company_id, hotline_fold(key) gin_trgm_ops)
    with (gin_pending_list_limit = 512);
create index global_variables_description on global_variables using gin (company_id, hotline_fold(description) gin_trgm_ops)
    with (gin_pending_list_limit = 512);

create table quick_messages (
    company_id bigint      not null references companies on delete cascade,
    id         bigint generated always as identity,
    shortcut   text        not null,
    message    text        not null,
    created_at timestamptz(3) not null default now(),
    updated_at timestamptz(3) not null default now(),
    looks      text,
    primary key (company_id, id),
    unique (company_id, shortcut)
);
create index quick_messages_shortcut on quick_messages using gin (company_id, hotline_fold(shortcut) gin_trgm_ops)
    with (gin_pending_list_limit = 512);
create index quick_messages_message on quick_messages using gin (company_id, hotline_fold(message) gin_trgm_ops)
    with (gin_pending_list_limit = 512);

------------------------------------------------------------------------------------------------------------------------------
-- Contacts
------------------------------------------------------------------------------------------------------------------------------

create table contacts (
    company_id        bigint      not null references companies on delete cascade,
    id                bigint generated always as identity,
    name              text        not null,
    number            text,
    number_country    text,
    email             text,
    code              text,
    cpf_cnpj          text,
    origin            text,
    profile_pic_url   text,
    is_group          boolean     not null default false,
    social_username   text,
    lid               text,
    -- The advertisement or link that brought them.
    source_url        text,
    source_id         text,
    headline          text,
    media_type        text,
    media_url         text,
    utm_source        text,
    utm_medium        text,
    utm_campaign      text,
    utm_id            text,
    fbclid            text,
    gclid             text,
    ctwa_clid         text,
    -- A website's own id of its visitor: it is not shown, and finds the contact again.
    external_id       text,
    -- Whether a signed identity, or the company's own server, has named this webchat contact. A signed identity finds no
    -- other contact.
    verified          boolean     not null default false,
    marketing_opt_out boolean     not null default false,
    created_at        timestamptz(3) not null default now(),
    updated_at        timestamptz(3) not null default now(),
    -- One text for the search over name, number, e-mail and code: a line break keeps a match inside one field.
    search            text        not null generated always as (hotline_fold(
        name || E'\n' || coalesce(number, '') || E'\n' || coalesce(email, '') || E'\n' || coalesce(code, ''))) stored,
    primary key (company_id, id)
);
create unique index contacts_number on contacts (company_id, number);
create unique index contacts_external_id on contacts (company_id, external_id);
-- Every filter of the list of contacts finds its rows by an index, in the order of the list.
create index contacts_email on contacts (company_id, lower(email), id);
create index contacts_code on contacts (company_id, code, id);
create index contacts_is_group on contacts (company_id, id) where is_group;
create index contacts_created on contacts (company_id, created_at, id);
create index contacts_updated on contacts (company_id, updated_at, id);
-- A period that most of a company's contacts lie outside of is found without reading them; so is one of an origin.
create index contacts_spans on contacts (company_id, id) include (created_at, updated_at);
-- A search reads the rows of its own company only: the company is part of the index. The list of entries that are not sorted
-- in yet is kept short, since every search reads all of it.
create index contacts_search on contacts using gin (company_id, search gin_trgm_ops)
    with (gin_pending_list_limit = 512);
create index contacts_origin_spans on contacts (company_id, origin, id) include (created_at, updated_at);

-- The id of a contact at a provider whose channel has no phone numbers: scoped to a page or an account.
create table contact_addresses (
    company_id bigint         not null,
    channel_id bigint         not null,
    address    text           not null,
    contact_id bigint         not null,
    created_at timestamptz(3) not null default now(),
    primary key (company_id, channel_id, address),
    foreign key (company_id, channel_id) references channels (company_id, id),
    foreign key (company_id, contact_id) references contacts (company_id, id) on delete cascade
);
create index contact_addresses_contact on contact_addresses (company_id, contact_id, channel_id);

-- The most recent channel of a contact. As a column of `contacts`, each opening would write the contact anew, with an entry
-- in each of its indexes. No foreign key: its check would lock the contact's row at each opening.
create table contact_last_channels (
    company_id bigint      not null,
    contact_id bigint      not null,
    channel_id bigint      not null,
    at         timestamptz not null,
    primary key (company_id, contact_id)
) with (fillfactor = 80);
create index contact_last_channels_channel on contact_last_channels (company_id, channel_id, contact_id);

create function hotline_forget_last_channel() returns trigger language plpgsql as $$
begin
    delete from contact_last_channels where company_id = old.company_id and contact_id = old.id;
    return null;
end $$;
create trigger contact_removed after delete on contacts
    for each row execute function hotline_forget_last_channel();

create table contact_tags (
    company_id bigint not null,
    contact_id bigint not null,
    tag_id     bigint not null,
    primary key (company_id, contact_id, tag_id),
    foreign key (company_id, contact_id) references contacts (company_id, id) on delete cascade
);
create index contact_tags_tag on contact_tags (company_id, tag_id, contact_id);

create table contact_custom_field_values (
    company_id      bigint not null,
    contact_id      bigint not null,
    custom_field_id bigint not null,
    value           text   not null,
    primary key (company_id, contact_id, custom_field_id),
    foreign key (company_id, contact_id) references contacts (company_id, id) on delete cascade
);
-- The values of a field that is deleted or changes its type: the key begins with the contact.
create index contact_custom_field_values_field on contact_custom_field_values (company_id, custom_field_id);

------------------------------------------------------------------------------------------------------------------------------
-- Conversations: live rows, which only the persister writes, from the journal
------------------------------------------------------------------------------------------------------------------------------

-- Every message writes its ticket anew, and changes nothing that is indexed. If the row's page has room for the new version,
-- no index is touched.
create table tickets (
    company_id        bigint      not null,
    id                bigint      not null,
    channel_id        bigint      not null,
    contact_id        bigint      not null,
    queue_id          bigint,
    user_id           bigint,
    status            text        not null check (status in ('open', 'closed')),
    creation_source   text        not null,
    unread_count      integer     not null,
    last_message_id   bigint,
    wrapup_type_id    bigint,
    wrapup_note       text,
    reopen_count      integer     not null,
    opened_at         timestamptz not null,
    first_response_at timestamptz,
    closed_at         timestamptz,
    -- Since when the contact waits for the company; null: nobody waits.
    waiting_since     timestamptz,
    -- The first message by which the company answered a contact who had opened the ticket. Automatic messages (a greeting, a
    -- campaign) are no answers.
    answer_id         bigint,
    created_at        timestamptz not null,
    updated_at        timestamptz not null,
    primary key (company_id, id),
    foreign key (company_id, channel_id) references channels (company_id, id),
    foreign key (company_id, contact_id) references contacts (company_id, id) on delete cascade
) with (fillfactor = 80);
-- The actors guarantee this at any concurrency; the index would reveal a defect.
create unique index tickets_one_open on tickets (company_id, channel_id, contact_id) where status = 'open';
create index tickets_status on tickets (company_id, status, id);
create index tickets_contact on tickets (company_id, contact_id, channel_id, id);
create index tickets_queue on tickets (company_id, queue_id, id) where status = 'open';
create index tickets_user on tickets (company_id, user_id, id) where status = 'open';
-- Deletions and figures ask which tickets refer to a record.
create index tickets_wrapup_type on tickets (company_id, wrapup_type_id, id) where wrapup_type_id is not null;
create index tickets_user_opened on tickets (company_id, user_id, opened_at) where user_id is not null;
-- What retention deletes next. Closing and reopening write an index of the status anyway; nothing else writes this one.
create index tickets_closed on tickets (company_id, closed_at, id) where status = 'closed';
create index tickets_assigned on tickets (company_id, user_id, id) where user_id is not null;

-- Neither events nor messages have a foreign key to their ticket: its actor has checked the ticket, and looking at the row
-- for every message was a quarter of the cost of writing it. A deletion of a contact deletes them with the tickets.
create table ticket_events (
    company_id     bigint      not null,
    id             bigint      not null,
    ticket_id      bigint      not null,
    type           text        not null,
    "from"         jsonb,
    "to"           jsonb,
    user_id        bigint,
    -- Stored beside the id: the history names a user who has left.
    user_name      text,
    -- The token of the integration that made the change.
    integration_id bigint,
    source         text        not null,
    created_at     timestamptz not null,
    primary key (company_id, ticket_id, id)
);

create table messages (
    company_id          bigint      not null,
    id                  bigint      not null,
    -- The first message of the same send; the public job id is made of it.
    job_id              bigint,
    ticket_id           bigint      not null,
    contact_id          bigint      not null,
    channel_id          bigint      not null,
    direction           text        not null check (direction in ('inbound', 'outbound', 'internal')),
    type                text        not null,
    body                text,
    media               jsonb,
    template            jsonb,
    interactive         jsonb,
    -- What a contact's message contains beside its readable text, `{kind, …}`: the option that was chosen.
    content             jsonb,
    quoted_message_id   bigint,
    status              text        not null check (status in ('queued', 'sent', 'delivered', 'read', 'failed', 'received')),
    error               jsonb,
    user_id             bigint,
    user_name           text,
    -- The token of the integration that wrote it.
    integration_id      bigint,
    source              text        not null,
    -- Of a visitor's message: the session, and the id that the browser gave the message.
    session_id          text,
    client_id           text,
    -- The provider's id of an inbound or outbound message, by which statuses, replies and repetitions find it.
    provider_message_id text,
    -- What follows once the channel has accepted the message: a transfer, then the closing.
    after_send          jsonb,
    created_at          timestamptz not null,
    -- When something of it that the API shows changed last; null: never. A synchronization asks for changes since a time
    -- (`updatedFrom`), so a change is never dated before one that was written earlier.
    updated_at          timestamptz(3),
    sent_at             timestamptz,
    delivered_at        timestamptz,
    read_at             timestamptz
);
create index messages_media_wanted on messages (id) where media ? 'wanted';
create index messages_ticket on messages (company_id, ticket_id, id);
create index messages_contact on messages (company_id, contact_id, id);
create unique index messages_client_id on messages (company_id, session_id, client_id) where client_id is not null;
create index messages_outbox on messages (company_id, channel_id, id) where status = 'queued';
create unique index messages_provider_id on messages (company_id, channel_id, provider_message_id)
    where provider_message_id is not null;
-- What follows queued messages is loaded when a ticket's actor starts; few tickets have any.
create index messages_after_send on messages (company_id, ticket_id) where status = 'queued' and after_send is not null;
-- When a contact wrote last on a channel: the conversation window of a phone channel begins there.
create index messages_inbound on messages (company_id, contact_id, channel_id, id) where direction = 'inbound';
-- The latest messages that a channel has received: a repeated call of the provider is recognized in memory.
create index messages_received on messages (company_id, channel_id, id)
    where direction = 'inbound' and provider_message_id is not null;
-- Messages other than texts, and failed ones: few, and in every zone.
create index messages_kind on messages (company_id, type, id) where type <> 'text';
create index messages_failed on messages (company_id, id) where status = 'failed';
-- The key's index is the last of the table. While a table was never analyzed (the first minute of an installation), every
-- index of these columns costs the planner the same, and among equals it takes the newest: with `messages_contact` in that
-- place a change of one message read all messages of its company.
alter table messages add primary key (company_id, id);

create function hotline_message_moves_on() returns trigger language plpgsql as $$
begin
    new.updated_at := greatest(now(), coalesce(old.updated_at, old.created_at) + interval '1 millisecond');
    return new;
end
$$;
create trigger messages_move_on before update on messages
    for each row when (
        (old.status, old.error, old.media, old.body, old.sent_at, old.delivered_at, old.read_at)
        is distinct from (new.status, new.error, new.media, new.body, new.sent_at, new.delivered_at, new.read_at)
    ) execute function hotline_message_moves_on();

create table webchat_sessions (
    company_id   bigint      not null,
    id           text        not null,
    channel_id   bigint      not null,
    contact_id   bigint      not null,
    ticket_id    bigint,
    status       text        not null check (status in ('active', 'ended')),
    verified     boolean     not null default false,
    -- Unsigned data about the visitor; null of a verified one.
    claimed      jsonb,
    -- SHA-256 of the visitor's own token.
    token_hash   bytea       not null,
    -- Further tokens that open it: a visitor who signs in elsewhere continues in the existing session.
    token_hashes bytea[]     not null default '{}',
    page         jsonb,
    utm          jsonb,
    -- The time from which messages are shown, if before the session began: the end of the one before.
    shown_from   timestamptz,
    created_at   timestamptz not null,
    last_seen_at timestamptz not null,
    ended_at     timestamptz,
    primary key (company_id, id),
    foreign key (company_id, channel_id) references channels (company_id, id),
    foreign key (company_id, contact_id) references contacts (company_id, id) on delete cascade
);
create index webchat_sessions_contact on webchat_sessions (company_id, contact_id, channel_id);
create index webchat_sessions_idle on webchat_sessions (last_seen_at) where status = 'active';
-- A visitor's browser presents its token and nothing else.
create unique index webchat_sessions_token on webchat_sessions (company_id, channel_id, token_hash);
create index webchat_sessions_tokens on webchat_sessions using gin (company_id, token_hashes);

-- Files of messages. Triggers maintain it, so that no statement that writes or deletes messages has to: a file is known
-- exactly as long as its message exists, in the same transaction. The files are in the media store, in a folder for each
-- hour in which they were stored.
create table media (
    company_id bigint not null,
    -- Unguessable; begins with the hour.
    id         text   not null,
    message_id bigint not null,
    -- Since when its message does not exist any more. The file is deleted first, then this row.
    left_at    timestamptz(3),
    primary key (company_id, id)
);
create index media_left on media (left_at) where left_at is not null;

create function hotline_media_came() returns trigger language plpgsql as $$
begin
    insert into media (company_id, id, message_id) values (new.company_id, new.media ->> 'id', new.id)
    on conflict (company_id, id) do nothing;
    return null;
end $$;

create function hotline_media_left() returns trigger language plpgsql as $$
begin
    update media set left_at = now()
    where company_id = old.company_id and id = old.media ->> 'id' and message_id = old.id;
    return null;
end $$;

-- The file of a contact's message is added to it once it was downloaded from the provider.
create trigger media_came after insert or update of media on messages
    for each row when (new.media ? 'id') execute function hotline_media_came();
create trigger media_replaced after update of media on messages
    for each row when (old.media ? 'id' and old.media ->> 'id' is distinct from new.media ->> 'id')
    execute function hotline_media_left();
create trigger media_left after delete on messages
    for each row when (old.media ? 'id') execute function hotline_media_left();

-- Files without a message are searched once, hour by hour: the last finished hour, in hours since 1970.
create table media_sweep (
    only_row boolean primary key default true check (only_row),
    hour     bigint  not null
);
insert into media_sweep (hour) values (extract(epoch from now())::bigint / 3600 - 1);

-- A provider may report a status before Hotline has stored the provider's id of the message. It waits here until then, or
-- until it is clear that the message is not Hotline's.
create table early_statuses (
    company_id          bigint      not null,
    channel_id          bigint      not null,
    provider_message_id text        not null,
    status              text        not null check (status in ('sent', 'delivered', 'read', 'failed')),
    error               jsonb,
    at                  timestamptz not null,
    created_at          timestamptz not null default now(),
    primary key (company_id, channel_id, provider_message_id, status),
    foreign key (company_id, channel_id) references channels (company_id, id) on delete cascade
);
create index early_statuses_age on early_statuses (created_at);

-- Messages that are written now and sent at a later time. No foreign keys: a record that was deleted by then is a reason to
-- fail, but none to refuse the row.
create table schedules (
    company_id     bigint      not null,
    id             bigint      not null,
    contact_id     bigint      not null,
    channel_id     bigint      not null,
    -- As it was written: variables are filled in when it is sent.
    body           text        not null,
    -- The queue of its ticket once it is sent.
    queue_id       bigint,
    send_at        timestamptz not null,
    status         text        not null check (status in ('pending', 'sent', 'canceled', 'failed')),
    -- Of a sent one.
    message_id     bigint,
    -- Of a failed one.
    error          jsonb,
    user_id        bigint,
    integration_id bigint,
    created_at     timestamptz not null,
    updated_at     timestamptz not null,
    primary key (company_id, id)
);
-- What is due next, and which companies have pending ones.
create index schedules_due on schedules (company_id, send_at, id) where status = 'pending';
create index schedules_status on schedules (company_id, status, id);
create index schedules_contact on schedules (company_id, contact_id, id);
-- Whether a user who leaves has scheduled messages, which show their name.
create index schedules_user on schedules (company_id, user_id) where user_id is not null;

------------------------------------------------------------------------------------------------------------------------------
-- Contact lists and campaigns
------------------------------------------------------------------------------------------------------------------------------

create table contact_lists (
    company_id     bigint      not null references companies (id),
    id             bigint      generated always as identity,
    name           text        not null,
    -- Maintained by triggers: a list may have a million contacts, and a page shows a hundred lists.
    contacts_count bigint      not null default 0,
    created_at     timestamptz(3) not null default now(),
    updated_at     timestamptz(3) not null default now(),
    primary key (company_id, id)
);
create index contact_lists_search on contact_lists using gin (company_id, hotline_fold(name) gin_trgm_ops)
    with (gin_pending_list_limit = 512);

create table contact_list_contacts (
    company_id      bigint not null,
    contact_list_id bigint not null,
    contact_id      bigint not null,
    primary key (company_id, contact_list_id, contact_id),
    -- There is none to the list: who adds contacts locks its row, once and not for each of a hundred thousand contacts.
    foreign key (company_id, contact_id) references contacts (company_id, id) on delete cascade
);
create index contact_list_contacts_contact on contact_list_contacts (company_id, contact_id);

-- Once per statement, and the lists in one order, so that no two statements wait for each other. The lists are found by
-- their key, however few the statistics say there are. What a list shows of its contacts is a change of the list.
create function hotline_count_list_contacts() returns trigger language plpgsql
    set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
begin
    perform from contact_lists l
        join (select distinct company_id, contact_list_id from changed) c
            on l.company_id = c.company_id and l.id = c.contact_list_id
        order by l.company_id, l.id for no key update of l;
    update contact_lists l set contacts_count = contacts_count + case tg_op when 'INSERT' then c.count else -c.count end,
            updated_at = greatest(now(), l.updated_at + interval '1 millisecond')
        from (select company_id, contact_list_id, count(*) as count from changed group by 1, 2) c
        where l.company_id = c.company_id and l.id = c.contact_list_id;
    return null;
end $$;
create trigger count_added after insert on contact_list_contacts
    referencing new table as changed for each statement execute function hotline_count_list_contacts();
create trigger count_removed after delete on contact_list_contacts
    referencing old table as changed for each statement execute function hotline_count_list_contacts();

-- A message to every contact of a list. The campaign is plain; the outcomes of its recipients are written with their
-- messages.
create table campaigns (
    company_id      bigint      not null references companies (id),
    id              bigint      generated always as identity,
    name            text        not null,
    status          text        not null default 'scheduled'
        check (status in ('scheduled', 'processing', 'paused', 'completed', 'canceled')),
    -- No foreign keys: a list or channel that was deleted by then is a reason to fail, but none to refuse the row.
    contact_list_id bigint      not null,
    channel_id      bigint      not null,
    scheduled_at    timestamptz not null,
    completed_at    timestamptz,
    message         text,
    -- As it was requested, and as the provider receives it, with the text of its body.
    template        jsonb,
    built_template  jsonb,
    rate_per_minute integer     not null default 60 check (rate_per_minute >= 1),
    -- Whether a ticket that is opened for it is closed again at once.
    keep_closed     boolean     not null default false,
    -- Who created it, and is the author of its messages.
    integration_id  bigint,
    user_id         bigint,
    -- Recipients by state, counted by triggers: there may be a million, and a page shows a hundred campaigns.
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
create index campaigns_search on campaigns using gin (company_id, hotline_fold(name) gin_trgm_ops)
    with (gin_pending_list_limit = 512);
create index campaigns_status on campaigns (company_id, status, id);
create index campaigns_list on campaigns (company_id, contact_list_id, id);
-- What a start resumes.
create index campaigns_unfinished on campaigns (company_id, id)
    where status in ('scheduled', 'processing') or status = 'canceled' and pending > 0;

create table campaign_recipients (
    company_id  bigint      not null,
    campaign_id bigint      not null,
    contact_id  bigint      not null,
    -- Pending with a message: the provider has not received it yet.
    status      text        not null default 'pending'
        check (status in ('pending', 'sent', 'delivered', 'read', 'failed', 'skipped')),
    message_id  bigint,
    -- Of one that has failed or was skipped.
    error       jsonb,
    updated_at  timestamptz not null default now(),
    primary key (company_id, campaign_id, contact_id)
);
create index campaign_recipients_status on campaign_recipients (company_id, campaign_id, status, contact_id);
create index campaign_recipients_message on campaign_recipients (company_id, message_id) where message_id is not null;
create index campaign_recipients_contact on campaign_recipients (company_id, contact_id);

-- Once per statement, and the campaigns in one order, so that no two statements wait for each other. The campaigns are found
-- by their key, however few the statistics say there are.
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

------------------------------------------------------------------------------------------------------------------------------
-- Sales: products in categories, boards of stages, and the cards that move over them
------------------------------------------------------------------------------------------------------------------------------

create table product_categories (
    company_id  bigint      not null references companies on delete cascade,
    id          bigint generated always as identity,
    name        text        not null,
    description text,
    created_at  timestamptz(3) not null default now(),
    updated_at  timestamptz(3) not null default now(),
    looks       text,
    primary key (company_id, id),
    unique (company_id, name)
);
create index product_categories_search on product_categories using gin (company_id, hotline_fold(name) gin_trgm_ops)
    with (gin_pending_list_limit = 512);

create table products (
    company_id  bigint         not null references companies on delete cascade,
    id          bigint generated always as identity,
    category_id bigint,
    name        text           not null,
    sku         text,
    description text,
    price       numeric(18, 4) not null default 0 check (price >= 0),
    active      boolean        not null default true,
    created_at  timestamptz(3) not null default now(),
    updated_at  timestamptz(3) not null default now(),
    looks       text,
    primary key (company_id, id),
    unique (company_id, sku)
);
create index products_category on products (company_id, category_id, id);
create index products_active on products (company_id, active, id);
create index products_search on products
    using gin (company_id, hotline_fold(name || E'\n' || coalesce(sku, '')) gin_trgm_ops)
    with (gin_pending_list_limit = 512);

create table card_statuses (
    company_id bigint      not null references companies on delete cascade,
    id         bigint generated always as identity,
    name       text        not null,
    color      text,
    created_at timestamptz(3) not null default now(),
    updated_at timestamptz(3) not null default now(),
    looks      text,
    primary key (company_id, id),
    unique (company_id, name)
);
create index card_statuses_search on card_statuses using gin (company_id, hotline_fold(name) gin_trgm_ops)
    with (gin_pending_list_limit = 512);

create table businesses (
    company_id bigint      not null references companies on delete cascade,
    id         bigint generated always as identity,
    name       text        not null,
    created_at timestamptz(3) not null default now(),
    updated_at timestamptz(3) not null default now(),
    looks      text,
    primary key (company_id, id),
    unique (company_id, name)
);
create index businesses_search on businesses using gin (company_id, hotline_fold(name) gin_trgm_ops)
    with (gin_pending_list_limit = 512);

create table card_origins (
    company_id bigint      not null references companies on delete cascade,
    id         bigint generated always as identity,
    name       text        not null,
    created_at timestamptz(3) not null default now(),
    updated_at timestamptz(3) not null default now(),
    looks      text,
    primary key (company_id, id),
    unique (company_id, name)
);
create index card_origins_search on card_origins using gin (company_id, hotline_fold(name) gin_trgm_ops)
    with (gin_pending_list_limit = 512);

create table boards (
    company_id         bigint      not null references companies on delete cascade,
    id                 bigint generated always as identity,
    name               text        not null,
    description        text,
    monthly_goal       numeric(18, 4) check (monthly_goal >= 0),
    yearly_goal        numeric(18, 4) check (yearly_goal >= 0),
    -- Null: an integration, or a user who has left.
    created_by_user_id bigint,
    archived_at        timestamptz(3),
    archived           boolean     not null generated always as (archived_at is not null) stored,
    created_at         timestamptz(3) not null default now(),
    updated_at         timestamptz(3) not null default now(),
    primary key (company_id, id),
    foreign key (company_id, created_by_user_id) references users (company_id, id) on delete set null (created_by_user_id)
);
create index boards_archived on boards (company_id, archived, id);
create index boards_created_by on boards (company_id, created_by_user_id) where created_by_user_id is not null;
create index boards_search on boards using gin (company_id, hotline_fold(name) gin_trgm_ops)
    with (gin_pending_list_limit = 512);

create table board_queues (
    company_id bigint not null,
    board_id   bigint not null,
    queue_id   bigint not null,
    primary key (company_id, board_id, queue_id),
    foreign key (company_id, board_id) references boards (company_id, id) on delete cascade,
    foreign key (company_id, queue_id) references queues (company_id, id) on delete cascade
);
create index board_queues_queue on board_queues (company_id, queue_id);

-- The stages of a board.
create table board_lists (
    company_id bigint      not null references companies on delete cascade,
    id         bigint generated always as identity,
    board_id   bigint      not null,
    label      text        not null,
    position   integer     not null,
    done_list  boolean     not null default false,
    created_at timestamptz(3) not null default now(),
    updated_at timestamptz(3) not null default now(),
    primary key (company_id, id),
    -- What a card refers to: its stage is one of its own board.
    unique (company_id, board_id, id),
    foreign key (company_id, board_id) references boards (company_id, id) on delete cascade
);
create unique index board_lists_one_done on board_lists (company_id, board_id) where done_list;

create table cards (
    company_id         bigint      not null references companies on delete cascade,
    id                 bigint generated always as identity,
    board_id           bigint      not null,
    list_id            bigint      not null,
    -- Lower ones are higher up in the stage. A fraction: there is always room between two, so a move writes one row.
    position           numeric     not null,
    name               text        not null,
    description        text,
    won_at             timestamptz(3),
    lost_at            timestamptz(3),
    won                boolean     not null generated always as (won_at is not null) stored,
    lost               boolean     not null generated always as (lost_at is not null) stored,
    status_reason      text,
    assigned_user_id   bigint,
    status_id          bigint,
    business_id        bigint,
    origin_id          bigint,
    due                timestamptz(3),
    -- The sum of the card's products, written with them: no list, filter or indicator sums.
    products_total     numeric     not null default 0,
    -- The same in ten-thousandths, in which every amount is exact: as whole numbers a board with 100,000 cards is summed in
    -- a fraction of the time.
    products_total_e4  bigint      not null generated always as ((products_total * 10000)::bigint) stored,
    creation_source    text        not null check (creation_source in ('api', 'user', 'bot', 'automation')),
    -- It is not shown, so it has no foreign key, and stays when the user leaves.
    created_by_user_id bigint,
    -- The conversation that it was created from. Tickets are live rows: no foreign key refers to them.
    ticket_id          bigint,
    created_at         timestamptz(3) not null default now(),
    updated_at         timestamptz(3) not null default now(),
    -- One text for the search over name and description: a line break keeps a match inside one field.
    search             text        not null generated always as (hotline_fold(
        name || E'\n' || coalesce(description, ''))) stored,
    primary key (company_id, id),
    check (won_at is null or lost_at is null),
    -- Two cards never have the same place. Checked when a statement ends, so that one statement can spread a stage anew.
    constraint cards_position unique (company_id, list_id, position) deferrable initially immediate,
    -- A board and its stages stay while they have cards.
    foreign key (company_id, board_id, list_id) references board_lists (company_id, board_id, id)
);
-- Every filter of the list of cards finds its rows by an index, in the order of the list.
create index cards_board on cards (company_id, board_id, id);
create index cards_assigned_user on cards (company_id, assigned_user_id, id);
create index cards_status on cards (company_id, status_id, id);
create index cards_business on cards (company_id, business_id, id);
create index cards_origin on cards (company_id, origin_id, id);
create index cards_won on cards (company_id, won, id);
create index cards_lost on cards (company_id, lost, id);
create index cards_due on cards (company_id, due, id);
create index cards_created on cards (company_id, created_at, id);
create index cards_updated on cards (company_id, updated_at, id);
-- A period that most of a company's cards lie outside of is found without reading them.
create index cards_spans on cards (company_id, id) include (created_at, updated_at, due);
create index cards_ticket on cards (company_id, ticket_id, id) where ticket_id is not null;
create index cards_created_by on cards (company_id, created_by_user_id) where created_by_user_id is not null;
create index cards_search on cards using gin (company_id, search gin_trgm_ops)
    with (gin_pending_list_limit = 512);
-- Sums of stages and boards are read from an index alone.
create index cards_stage on cards (company_id, board_id, list_id, won, lost) include (products_total_e4);
create index cards_won_at on cards (company_id, board_id, won_at) include (products_total_e4) where won_at is not null;
create index cards_lost_at on cards (company_id, board_id, lost_at) include (products_total_e4) where lost_at is not null;
-- So are the sales of a period, over all boards: cards are stored where they were created, so that those that were decided
-- in a period lie apart.
create index cards_won_then on cards (company_id, won_at)
    include (id, board_id, assigned_user_id, origin_id, products_total_e4) where won_at is not null;
create index cards_lost_then on cards (company_id, lost_at)
    include (id, board_id, assigned_user_id, origin_id, products_total_e4) where lost_at is not null;

create table card_contacts (
    company_id bigint not null,
    card_id    bigint not null,
    contact_id bigint not null,
    primary key (company_id, card_id, contact_id),
    foreign key (company_id, card_id) references cards (company_id, id) on delete cascade
);
create index card_contacts_contact on card_contacts (company_id, contact_id, card_id);

create table card_products (
    company_id  bigint         not null,
    id          bigint generated always as identity,
    card_id     bigint         not null,
    -- Null: it is not in the catalogue.
    product_id  bigint,
    name        text           not null,
    sku         text,
    quantity    numeric(18, 4) not null default 1 check (quantity > 0),
    unit_price  numeric(18, 4) not null check (unit_price >= 0),
    total_price numeric        not null generated always as (round(quantity * unit_price, 4)) stored,
    created_at  timestamptz(3) not null default now(),
    updated_at  timestamptz(3) not null default now(),
    primary key (company_id, id),
    foreign key (company_id, card_id) references cards (company_id, id) on delete cascade
);
create index card_products_product on card_products (company_id, product_id) where product_id is not null;
create index card_products_card on card_products (company_id, card_id, id) include (product_id, total_price);

create table card_custom_field_values (
    company_id      bigint not null,
    card_id         bigint not null,
    custom_field_id bigint not null,
    value           text   not null,
    primary key (company_id, card_id, custom_field_id),
    foreign key (company_id, card_id) references cards (company_id, id) on delete cascade
);
create index card_custom_field_values_field on card_custom_field_values (company_id, custom_field_id);

------------------------------------------------------------------------------------------------------------------------------
-- Reports
------------------------------------------------------------------------------------------------------------------------------

-- The figures of reports are counted as changes happen: the persister adds to them in the transaction that writes the rows
-- they derive from and moves the watermark, so that each change is counted once. `hotline reports rebuild` recounts them from
-- the rows.
--
-- Figures are of a quarter of an hour, of which the days of every time zone are made, and of a day in UTC, of which long
-- periods are. `key` is the id of the queue, channel or user, or the type of the message; empty of the whole company, and
-- where there is none. No foreign keys, as with messages.
create table report_tickets (
    company_id        bigint      not null,
    dimension         text        not null check (dimension in ('company', 'queue', 'channel', 'user')),
    grain             text        not null check (grain in ('quarter', 'day')),
    at                timestamptz not null,
    key               text        not null,
    opened            bigint      not null,
    closed            bigint      not null,
    reopened          bigint      not null,
    answered          bigint      not null,
    -- Sums in milliseconds: from the opening to the first answer, of answered ones; to the closing, of closed ones.
    answer_ms         bigint      not null,
    resolution_ms     bigint      not null,
    primary key (company_id, dimension, grain, at, key)
) with (fillfactor = 70);

create table report_messages (
    company_id bigint      not null,
    dimension  text        not null check (dimension in ('company', 'channel', 'user', 'type')),
    grain      text        not null check (grain in ('quarter', 'day')),
    at         timestamptz not null,
    key        text        not null,
    inbound    bigint      not null,
    outbound   bigint      not null,
    failed     bigint      not null,
    primary key (company_id, dimension, grain, at, key)
) with (fillfactor = 70);

create table report_wrapups (
    company_id     bigint      not null,
    grain          text        not null check (grain in ('quarter', 'day')),
    at             timestamptz not null,
    -- 0: the ticket was in none.
    queue_id       bigint      not null,
    wrapup_type_id bigint      not null,
    count          bigint      not null,
    primary key (company_id, grain, at, queue_id, wrapup_type_id)
) with (fillfactor = 70);

-- The names of deleted records that reports still show.
create table report_labels (
    company_id bigint not null references companies on delete cascade,
    dimension  text   not null,
    key        bigint not null,
    label      text   not null,
    primary key (company_id, dimension, key)
);

create function hotline_keep_label() returns trigger language plpgsql as $$
begin
    insert into report_labels (company_id, dimension, key, label)
    -- None of a company that is deleted as a whole.
    select old.company_id, tg_argv[0], old.id, old.name from companies where id = old.company_id
    on conflict (company_id, dimension, key) do update set label = excluded.label;
    return null;
end $$;
create trigger keep_label after delete on queues for each row execute function hotline_keep_label('queue');
create trigger keep_label after delete on users for each row execute function hotline_keep_label('user');
create trigger keep_label after delete on channels for each row execute function hotline_keep_label('channel');
create trigger keep_label after delete on wrapup_types for each row execute function hotline_keep_label('wrapup');

------------------------------------------------------------------------------------------------------------------------------
-- Events and webhooks
------------------------------------------------------------------------------------------------------------------------------

-- The last event id of each company. A transaction that writes events locks its row as its last step, until the commit: so
-- an id is visible only when no smaller one can still appear. `last_at` is the latest time of the company's events,
-- `before_at` the latest before the last ones written: the times of events never go back.
create table event_counters (
    company_id bigint not null primary key,
    last_id    bigint not null,
    last_at    timestamptz,
    before_at  timestamptz
) with (fillfactor = 50);

-- What happened to a company's records, once and in order. A row holds the events of one transaction of one company: some
-- of the persister's, mostly one of a plain change. Ids are dense within the company and in the order of the commits. No
-- foreign keys, as with messages. A partition holds one day, and is dropped as a whole.
create table events (
    company_id bigint      not null,
    last_id    bigint      not null,
    -- When the transaction began that wrote it.
    created_at timestamptz not null,
    first_id   bigint      not null,
    -- A bit for each type of event that is among them.
    types      bigint      not null,
    -- The events as JSON: their records, and the state at that time if the record's row does not preserve it.
    told       text        not null,
    -- The latest time of events before: none of these is shown with an earlier one. A plain change is dated when it happens
    -- and numbered when it commits, and another may be numbered in between.
    not_before timestamptz,
    primary key (company_id, last_id, created_at)
) partition by range (created_at);

-- Compressed by lz4 if the server has it: the older method was most of what the log added to the cost of a send. Partitions
-- are created like their parent.
do $$
begin
    alter table events alter column told set compression lz4;
exception when feature_not_supported then
    -- A server that was built without lz4.
    null;
end $$;

-- Rows whose day has no partition yet: nothing is refused because one is missing.
create table events_default partition of events default;

-- Events of a plain change that are numbered at its commit.
create table event_drafts (
    company_id bigint  not null,
    id         bigint  not null generated always as identity,
    events     integer not null,
    types      bigint  not null,
    told       text    not null,
    last_at    timestamptz,
    primary key (company_id, id)
);

create function hotline_number_events() returns trigger language plpgsql as $$
declare last bigint; before timestamptz;
begin
    -- Set by the connections of a service with events disabled.
    if current_setting('hotline.events', true) is distinct from 'off' then
        insert into event_counters as c (company_id, last_id, last_at) values (new.company_id, new.events, new.last_at)
            on conflict (company_id) do update set last_id = c.last_id + excluded.last_id, before_at = c.last_at,
                last_at = greatest(c.last_at, excluded.last_at)
            returning c.last_id, c.before_at into last, before;
        insert into events (company_id, last_id, created_at, first_id, types, told, not_before)
            values (new.company_id, last, now(), last - new.events + 1, new.types, new.told, before);
        perform pg_notify('hotline_events', new.company_id || ' ' || last);
    end if;
    delete from event_drafts where company_id = new.company_id and id = new.id;
    return null;
end $$;

-- At the commit: the change is complete.
create constraint trigger number_events after insert on event_drafts
    deferrable initially deferred for each row execute function hotline_number_events();

-- A company's endpoints for its events.
create table webhooks (
    company_id       bigint      not null references companies (id),
    id               bigint      generated always as identity,
    url              text        not null,
    description      text,
    -- The types of events that are delivered; empty: all.
    types            text[]      not null default '{}',
    active           boolean     not null default true,
    -- Why the service disabled it; null: it did not.
    disabled_reason  text,
    -- Encrypted. The previous one signs beside it for a while.
    secret           text        not null,
    old_secret       text,
    old_secret_until timestamptz,
    -- The user who configured it last: it delivers no event of a card that they may not see. Null: an integration, or who
    -- runs the installation. The id of a user who has left stays: they see no cards.
    maker_id         bigint,
    -- Each event up to this one is delivered, or has a row in `webhook_deliveries`.
    delivered_through bigint     not null default 0,
    -- Since when no delivery has succeeded, if the last one failed.
    failing_since    timestamptz,
    created_at       timestamptz(3) not null default now(),
    updated_at       timestamptz(3) not null default now(),
    primary key (company_id, id)
    -- `delivered_through` is written many times a second.
) with (fillfactor = 50);

-- One event for one webhook. Beyond the webhook's `delivered_through` a row only records earlier attempts.
create table webhook_deliveries (
    company_id      bigint      not null,
    webhook_id      bigint      not null,
    event_id        bigint      not null,
    type            text        not null,
    -- The record of the event, `ticket:7`: deliveries of one record are made one after the other.
    lane            text        not null,
    status          text        not null check (status in ('pending', 'delivered', 'failed')),
    -- Failed attempts since it was started last.
    tries           integer     not null default 0,
    -- The latest attempts, as the API shows them.
    attempts        jsonb       not null default '[]',
    -- Of a pending one: its next attempt; null while one before it in its lane is pending.
    next_attempt_at timestamptz,
    -- When its event happened.
    created_at      timestamptz(3) not null,
    updated_at      timestamptz(3) not null default now(),
    primary key (company_id, webhook_id, event_id)
) with (fillfactor = 80);
create index webhook_deliveries_status on webhook_deliveries (company_id, webhook_id, status, event_id);
create index webhook_deliveries_due on webhook_deliveries (company_id, webhook_id, next_attempt_at)
    where status = 'pending' and next_attempt_at is not null;
create index webhook_deliveries_lane on webhook_deliveries (company_id, webhook_id, lane, event_id)
    where status = 'pending';

-- Notifies running services that a company's webhooks have changed.
create function hotline_webhooks_changed() returns trigger language plpgsql as $$
begin
    perform pg_notify('hotline_webhooks', (case when tg_op = 'DELETE' then old else new end).company_id::text);
    return null;
end $$;
create trigger webhooks_changed after insert or delete
    or update of url, types, active, secret, old_secret on webhooks
    for each row execute function hotline_webhooks_changed();

------------------------------------------------------------------------------------------------------------------------------
-- Idempotency
------------------------------------------------------------------------------------------------------------------------------

-- Responses to requests with an idempotency key, for 24 hours: written in the transaction of their effect, or by the
-- persister from the journal entry of their effect. A key and a request are the first 16 bytes of their SHA-256, and expired
-- rows are dropped as partitions.
create table idempotency_keys (
    company_id  bigint         not null,
    key         bytea          not null,
    -- Of method, path, query and body: the same key with a different request is a conflict.
    fingerprint bytea          not null,
    status      smallint       not null,
    body        text           not null,
    created_at  timestamptz(3) not null,
    primary key (company_id, key, created_at)
) partition by range (created_at);
create table idempotency_keys_default partition of idempotency_keys default;

------------------------------------------------------------------------------------------------------------------------------
-- The journal
------------------------------------------------------------------------------------------------------------------------------

-- How far each journal that ever fed this database is written into the tables. `seq` moves in the transaction that writes
-- the rows.
create table journal_watermark (
    journal    text        primary key,
    seq        bigint      not null,
    -- The epoch in which this journal last fed the database.
    epoch      bigint      not null,
    updated_at timestamptz not null default now()
);

-- One row: a process that starts raises the epoch, and a flush with an older epoch writes nothing.
create table ownership (
    only_row boolean primary key default true check (only_row),
    epoch    bigint  not null
);
insert into ownership (epoch) values (0);

-- Ids of live rows are assigned before PostgreSQL sees them, from blocks reserved here.
create table id_blocks (
    kind text   primary key,
    next bigint not null
);
insert into id_blocks (kind, next) values ('ticket', 1), ('message', 1), ('event', 1), ('schedule', 1);

-- Rows that PostgreSQL has rejected (for a constraint, never in an outage), whole and with the reason, for a person to see.
create table rejected_changes (
    id         bigint generated always as identity primary key,
    company_id bigint      not null,
    kind       text        not null,
    row_id     bigint,
    change     jsonb       not null,
    reason     text        not null,
    created_at timestamptz not null default now()
);

------------------------------------------------------------------------------------------------------------------------------
-- The cluster: several processes on one database. A process alone writes none of these tables but `slots`, which it does not
-- read.
------------------------------------------------------------------------------------------------------------------------------

-- The runs of processes that may write; an id is never used twice. A writer holds a lock on its row, and the end of a life
-- is the deletion of the row: the deletion waits for those that hold the lock, and excludes later ones.
create table lives (
    life bigint generated always as identity primary key,
    node text not null,
    address text not null,
    -- The messages of other processes that it understands.
    speaks integer not null,
    -- Whether it releases its slots, and accepts none.
    draining boolean not null default false,
    began_at timestamptz not null default now()
);

-- The last heartbeat of each. Apart from `lives`, so that heartbeats and locks do not wait for each other.
create table beats (
    life bigint primary key,
    at timestamptz not null default now(),
    -- Processors of its machine, which determine its share of the slots.
    cores integer not null check (cores > 0)
);

-- Lives that others have ended, and the successor that takes care of what they left.
create table seals (
    life bigint primary key,
    heir bigint not null,
    sealed_at timestamptz not null default now(),
    -- Whether all its slots are served by others.
    done boolean not null default false
);

create table slots (
    slot smallint primary key check (slot between 0 and 1023),
    -- The life that serves its companies, and the one that is to serve them.
    life bigint,
    next bigint
);
create index slots_life on slots (life);
insert into slots (slot) select generate_series(0, 1023)::smallint;

-- The first statement of each transaction that writes.
create function hotline_fence(mine bigint) returns void language plpgsql as $$
begin
    perform from lives where life = mine for key share;
    if not found then
        raise exception 'life % is over', mine using errcode = 'HL001';
    end if;
end $$;

create function hotline_placement_news() returns trigger language plpgsql as $$
begin
    perform pg_notify('hotline_placement', '');
    return null;
end $$;
create trigger placement_news after update on slots for each statement execute function hotline_placement_news();
create trigger placement_news after insert or update or delete on lives
    for each statement execute function hotline_placement_news();

------------------------------------------------------------------------------------------------------------------------------
-- Deletions in steps
------------------------------------------------------------------------------------------------------------------------------

-- Deleted records whose many rows are still to be deleted, a few thousand at a time: a contact list, a campaign and a webhook
-- may have a million, more than one statement can delete within its time limit.
create table removals (
    company_id bigint not null,
    noun       text   not null check (noun in ('contact_list', 'campaign', 'webhook')),
    id         bigint not null,
    primary key (company_id, noun, id)
);

create function hotline_note_removal() returns trigger language plpgsql as $$
begin
    insert into removals (company_id, noun, id) values (old.company_id, tg_argv[0], old.id);
    return null;
end $$;
create trigger list_removed after delete on contact_lists
    for each row execute function hotline_note_removal('contact_list');
create trigger campaign_removed after delete on campaigns
    for each row execute function hotline_note_removal('campaign');
create trigger webhook_removed after delete on webhooks
    for each row execute function hotline_note_removal('webhook');

-- A record that many others show is deleted at once, and removed from them in steps. Until then they have an id that is in no
-- table, and reads join only existing rows. A row here is what is left to be done: how others showed the record, for their
-- events, and who deleted it.
create table cascades (
    company_id bigint         not null references companies on delete cascade,
    noun       text           not null check (noun in ('tag', 'custom_field', 'card_status', 'business', 'card_origin',
        'product', 'product_category', 'user', 'contact')),
    id         bigint         not null,
    shown      jsonb          not null,
    by         jsonb          not null,
    -- Steps that failed: it has its turn after the others of its company.
    failures   integer        not null default 0,
    created_at timestamptz(3) not null default now(),
    primary key (company_id, noun, id)
);

-- A foreign key would change every row that refers to the record within the statement that deletes it. These triggers are
-- its other half: a new reference locks the record, as a foreign key does, and is refused if it does not exist.
do $$
declare reference record;
begin
    for reference in select * from (values
        ('contact_tags', 'tag_id', 'tags'),
        ('contact_custom_field_values', 'custom_field_id', 'custom_fields'),
        ('card_custom_field_values', 'custom_field_id', 'custom_fields'),
        ('cards', 'status_id', 'card_statuses'),
        ('cards', 'business_id', 'businesses'),
        ('cards', 'origin_id', 'card_origins'),
        ('cards', 'assigned_user_id', 'users'),
        ('card_products', 'product_id', 'products'),
        ('card_contacts', 'contact_id', 'contacts'),
        ('products', 'category_id', 'product_categories')
    ) as x (of_table, of_column, target) loop
        execute format($function$
            create function %1$I() returns trigger language plpgsql as $body$
            begin
                perform from %2$I where company_id = new.company_id and id = new.%3$I for key share;
                if not found then
                    raise foreign_key_violation using table = tg_table_name, column = %3$L,
                        message = 'a row refers to a record that is not there';
                end if;
                return new;
            end $body$
        $function$, 'hotline_' || reference.of_table || '_' || reference.of_column, reference.target, reference.of_column);
        execute format('create trigger %I before insert on %I for each row when (new.%I is not null) execute function %I()',
            'refers_by_' || reference.of_column, reference.of_table, reference.of_column,
            'hotline_' || reference.of_table || '_' || reference.of_column);
        execute format('create trigger %I before update of %I on %I for each row
            when (new.%2$I is not null and new.%2$I is distinct from old.%2$I) execute function %4$I()',
            'refers_anew_by_' || reference.of_column, reference.of_column, reference.of_table,
            'hotline_' || reference.of_table || '_' || reference.of_column);
    end loop;
end $$;

------------------------------------------------------------------------------------------------------------------------------
-- Zone maps
------------------------------------------------------------------------------------------------------------------------------

-- Lists are in the order of ids, and their filters ask for what most rows are not: created, closed or changed within a
-- period, failed, in one of many queues. A row here has the minima and maxima of a zone (1,024 consecutive ids) and the words
-- in it, so that a list skips zones without a match. An index on each of these would be written with every message, and one
-- on `updated_at` would prevent tickets from being updated in place.
create table zones (
    company_id    bigint      not null,
    noun          text        not null check (noun in ('message', 'ticket', 'delivery')),
    -- The ids without their last ten bits.
    zone          bigint      not null,
    -- Whole hours, rounded away from the rows' times: a zone in use is written once an hour.
    created_from  timestamptz not null,
    created_until timestamptz not null,
    opened_until  timestamptz,
    closed_until  timestamptz,
    updated_until timestamptz,
    -- Bits of the words that any row has or had: `hotline_mark`.
    marks         bigint      not null,
    -- Bits of the ids that any row refers or referred to: `hotline_bit`.
    channels      bigint      not null,
    queues        bigint      not null default 0,
    primary key (company_id, noun, zone)
) with (fillfactor = 80);

-- The bit of a word: of a type, a direction or a status.
create function hotline_mark(word text) returns bigint language sql immutable parallel safe as $$
    select 1::bigint << (array_position(array['text', 'media', 'template', 'interactive', 'note', 'inbound', 'outbound',
        'internal', 'queued', 'sent', 'delivered', 'read', 'failed', 'received', 'open', 'closed', 'unassigned',
        'assigned'], word) - 1)
$$;

-- The bit of an id, which it shares with others.
create function hotline_bit(id bigint) returns bigint language sql immutable parallel safe as $$
    select coalesce(1::bigint << (id % 61)::integer, 0)
$$;

-- Adds the rows of one company, or of all, to the zones: for rows that were inserted by anything but the service.
create function hotline_fill_zones(company bigint default null) returns void language sql as $$
    insert into zones (company_id, noun, zone, created_from, created_until, opened_until, closed_until, updated_until,
            marks, channels, queues)
        select company_id, 'message', id >> 10, date_trunc('hour', min(created_at), 'UTC'),
            date_trunc('hour', max(created_at), 'UTC') + interval '1 hour', null, null, null,
            bit_or(hotline_mark(type) | hotline_mark(direction) | hotline_mark(status)), bit_or(hotline_bit(channel_id)),
            0
        from messages where company is null or company_id = company group by 1, 3
        union all
        select company_id, 'ticket', id >> 10, date_trunc('hour', min(created_at), 'UTC'),
            date_trunc('hour', max(created_at), 'UTC') + interval '1 hour',
            date_trunc('hour', max(opened_at), 'UTC') + interval '1 hour',
            date_trunc('hour', max(closed_at), 'UTC') + interval '1 hour',
            date_trunc('hour', max(updated_at), 'UTC') + interval '1 hour',
            bit_or(hotline_mark(status) | hotline_mark(case when user_id is null then 'unassigned' else 'assigned' end)),
            bit_or(hotline_bit(channel_id)), bit_or(hotline_bit(queue_id))
        from tickets where company is null or company_id = company group by 1, 3
        union all
        select company_id, 'delivery', event_id >> 10, date_trunc('hour', min(created_at), 'UTC'),
            date_trunc('hour', max(created_at), 'UTC') + interval '1 hour', null, null,
            date_trunc('hour', max(updated_at), 'UTC') + interval '1 hour', 0, 0, 0
        from webhook_deliveries where company is null or company_id = company group by 1, 3
    on conflict (company_id, noun, zone) do update set
        created_from = least(zones.created_from, excluded.created_from),
        created_until = greatest(zones.created_until, excluded.created_until),
        opened_until = greatest(zones.opened_until, excluded.opened_until),
        closed_until = greatest(zones.closed_until, excluded.closed_until),
        updated_until = greatest(zones.updated_until, excluded.updated_until),
        marks = zones.marks | excluded.marks,
        channels = zones.channels | excluded.channels,
        queues = zones.queues | excluded.queues
$$;

------------------------------------------------------------------------------------------------------------------------------
-- What holds for many tables
------------------------------------------------------------------------------------------------------------------------------

-- A caller may require that a contact or card is changed only if it is still as it was read (`If-Match`). Its state is named
-- by `updated_at` as the API shows it, in milliseconds: so each change moves it by at least one, whatever the clock says. A
-- row that is written without a change keeps its time; its generated columns, which a trigger does not have yet, are left
-- out of the comparison.
create function hotline_moves_on() returns trigger language plpgsql as $$
begin
    if to_jsonb(new) - tg_argv is distinct from to_jsonb(old) - tg_argv then
        new.updated_at := greatest(new.updated_at, old.updated_at + interval '1 millisecond');
    end if;
    return new;
end
$$;
create trigger contacts_move_on before update of updated_at on contacts
    for each row execute function hotline_moves_on('search');
create trigger cards_move_on before update of updated_at on cards
    for each row execute function hotline_moves_on('won', 'lost', 'search', 'products_total_e4');

-- Unique names that look the same are the same. `looks` is null where there is no name: a product without a SKU.
create function hotline_note_looks() returns trigger language plpgsql as $$
begin
    new.looks := hotline_looks(to_jsonb(new) ->> tg_argv[0]);
    return new;
end $$;
do $$
declare noun record;
begin
    for noun in
        select * from (values ('profiles', 'name'), ('queues', 'name'), ('wrapup_categories', 'name'),
            ('wrapup_types', 'name'), ('tags', 'name'), ('quick_messages', 'shortcut'), ('product_categories', 'name'),
            ('products', 'sku'), ('card_statuses', 'name'), ('businesses', 'name'), ('card_origins', 'name'))
            as nouns (of_table, of_column)
    loop
        execute format('create unique index %1$I on %2$I (company_id, looks)', noun.of_table || '_looks', noun.of_table);
        execute format(
            'create trigger %1$I before insert on %2$I for each row execute function hotline_note_looks(%3$L)',
            noun.of_table || '_look', noun.of_table, noun.of_column);
        execute format(
            'create trigger %1$I before update of %3$I on %2$I for each row when (old.%3$I is distinct from new.%3$I)
             execute function hotline_note_looks(%3$L)',
            noun.of_table || '_look_other', noun.of_table, noun.of_column);
    end loop;
end $$;

-- Notifies running services that a company's directory has changed: they hold it in memory, and load it anew.
create function hotline_directory_changed() returns trigger language plpgsql as $$
begin
    perform pg_notify('hotline_directory', (case when tg_op = 'DELETE' then old else new end).company_id::text);
    return null;
end $$;
create function hotline_company_changed() returns trigger language plpgsql as $$
begin
    perform pg_notify('hotline_directory', (case when tg_op = 'DELETE' then old else new end).id::text);
    return null;
end $$;
create trigger directory_changed after insert or update or delete on companies
    for each row execute function hotline_company_changed();
-- `last_used_at` is written often, and is not in the directory.
create trigger directory_changed after insert or delete or update of
    name, permissions, allowed_ips, expires_at, revoked_at, hash on tokens
    for each row execute function hotline_directory_changed();
do $$
declare in_directory text;
begin
    foreach in_directory in array array['profiles', 'users', 'queues', 'queue_users', 'wrapup_types', 'wrapup_type_queues',
        'channels', 'global_variables']
    loop
        execute format('create trigger directory_changed after insert or update or delete on %I
            for each row execute function hotline_directory_changed()', in_directory);
    end loop;
end $$;
-- What a person has open, such as a stream of events, ends with their session.
create trigger directory_changed after delete on person_sessions
    for each row execute function hotline_directory_changed();

-- When autovacuum visits the tables that grow for years. By default it waits until a fifth of a table has changed, or was
-- inserted: of 20,000,000 messages that is 4,000,000, whose statistics are missing meanwhile, and whose cleaning then keeps
-- the disk busy for minutes. A visit to rows that were only inserted reads no index and no page twice, so it may be frequent;
-- one that removes rows reads every index of the table whole, so it happens at a twentieth.
do $$
declare growing text;
begin
    foreach growing in array array['messages', 'ticket_events', 'tickets', 'contacts', 'contact_addresses', 'contact_tags',
        'contact_custom_field_values', 'contact_last_channels', 'contact_list_contacts', 'webchat_sessions', 'media',
        'webhook_deliveries', 'campaign_recipients', 'schedules', 'cards', 'report_messages', 'report_tickets']
    loop
        execute format('alter table %I set (autovacuum_vacuum_scale_factor = 0.05,
            autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02)', growing);
    end loop;
end $$;

-- No plan depends on how many rows the statistics say a company has. They are a sample of some hour: a company that was new
-- then, or has grown since, was planned for as if it had one row, and a statement that is quick for one row read all rows of
-- the company, once for each value it searched. Without statistics on the company every company counts as a two-hundredth of
-- its table, however many rows that is: enough for the planner to prefer an index on more than the company if there is one.
do $$
declare of_company regclass;
begin
    for of_company in
        select c.oid::regclass from pg_class c join pg_attribute a on a.attrelid = c.oid
        where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and a.attname = 'company_id'
    loop
        execute format('alter table %s alter column company_id set statistics 0', of_company);
    end loop;
end $$;
