-- Channels, and the contacts who write through them.

create table channels (
    id         bigint generated always as identity,
    company_id bigint      not null references companies on delete cascade,
    name       text        not null,
    type       text        not null check (type in ('whatsapp', 'messenger', 'instagram', 'webchat')),
    status     text        not null check (status in ('connected', 'disconnected', 'error')),
    number     text,
    queue_id   bigint,
    last_error text,
    -- Names the channel where no company token is held: the visitor's door and the provider's webhook.
    public_key text        not null unique,
    settings   jsonb       not null default '{}',
    created_at timestamptz(3) not null default now(),
    updated_at timestamptz(3) not null default now(),
    primary key (company_id, id),
    foreign key (company_id, queue_id) references queues (company_id, id)
);

create table contacts (
    id              bigint generated always as identity,
    company_id      bigint      not null references companies on delete cascade,
    name            text        not null,
    number          text,
    number_country  text,
    email           text,
    code            text,
    cpf_cnpj        text,
    origin          text,
    profile_pic_url text,
    is_group        boolean     not null default false,
    social_username text,
    lid             text,
    source_url      text,
    source_id       text,
    headline        text,
    media_type      text,
    media_url       text,
    utm_source      text,
    utm_medium      text,
    utm_campaign    text,
    utm_id          text,
    fbclid          text,
    gclid           text,
    ctwa_clid       text,
    -- The id a website gives to its own visitor; not shown, finds the contact again.
    external_id     text,
    last_channel_id bigint,
    created_at      timestamptz(3) not null default now(),
    updated_at      timestamptz(3) not null default now(),
    -- One text for the search over name, number, e-mail and code: a line break keeps a match inside one field.
    search          text        not null generated always as (hotline_fold(
        name || E'\n' || coalesce(number, '') || E'\n' || coalesce(email, '') || E'\n' || coalesce(code, ''))) stored,
    primary key (company_id, id),
    foreign key (company_id, last_channel_id) references channels (company_id, id)
);
create unique index contacts_number on contacts (company_id, number);
create unique index contacts_external_id on contacts (company_id, external_id);
create index contacts_email on contacts (company_id, lower(email), id);
create index contacts_last_channel on contacts (company_id, last_channel_id, id);
create index contacts_search on contacts using gin (search gin_trgm_ops);

create table contact_tags (
    company_id bigint not null,
    contact_id bigint not null,
    tag_id     bigint not null,
    primary key (company_id, contact_id, tag_id),
    foreign key (company_id, contact_id) references contacts (company_id, id) on delete cascade,
    foreign key (company_id, tag_id) references tags (company_id, id) on delete cascade
);
create index contact_tags_tag on contact_tags (company_id, tag_id, contact_id);

create table contact_custom_field_values (
    company_id      bigint not null,
    contact_id      bigint not null,
    custom_field_id bigint not null,
    value           text   not null,
    primary key (company_id, contact_id, custom_field_id),
    foreign key (company_id, contact_id) references contacts (company_id, id) on delete cascade,
    foreign key (company_id, custom_field_id) references custom_fields (company_id, id) on delete cascade
);
