-- Definitions of custom fields, texts that messages take in by a name, and answers kept at hand.

create index custom_fields_search on custom_fields using gin (hotline_fold(name || E'\n' || key) gin_trgm_ops);

-- A field that goes, or changes its type, is asked for its values; their primary key begins with the contact.
create index contact_custom_field_values_field on contact_custom_field_values (company_id, custom_field_id);

create table global_variables (
    id          bigint generated always as identity,
    company_id  bigint      not null references companies on delete cascade,
    key         text        not null,
    value       text        not null,
    description text,
    created_at  timestamptz(3) not null default now(),
    updated_at  timestamptz(3) not null default now(),
    primary key (company_id, id),
    unique (company_id, key)
);
create index global_variables_key on global_variables using gin (hotline_fold(key) gin_trgm_ops);
create index global_variables_description on global_variables using gin (hotline_fold(description) gin_trgm_ops);

-- Messages take the variables from the directory.
create trigger directory_changed after insert or update or delete on global_variables
    for each row execute function hotline_directory_changed();

create table quick_messages (
    id         bigint generated always as identity,
    company_id bigint      not null references companies on delete cascade,
    shortcut   text        not null,
    message    text        not null,
    created_at timestamptz(3) not null default now(),
    updated_at timestamptz(3) not null default now(),
    primary key (company_id, id),
    unique (company_id, shortcut)
);
create index quick_messages_shortcut on quick_messages using gin (hotline_fold(shortcut) gin_trgm_ops);
create index quick_messages_message on quick_messages using gin (hotline_fold(message) gin_trgm_ops);
