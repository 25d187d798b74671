-- Companies, what may speak for them, and the people who work in them.

create extension if not exists unaccent;
create extension if not exists pg_trgm;

-- What search compares: lower case, without accents. `unaccent` is only stable because its dictionary may be
-- altered; naming the dictionary makes the wrapper safe to index.
create function hotline_fold(value text) returns text
    language sql immutable parallel safe strict
    as $$ select lower(public.unaccent('public.unaccent', value)) $$;

-- What finds a text anywhere in a folded one. It is escaped after the folding, which may turn other characters into
-- wildcards (a full-width percent sign, for one).
create function hotline_pattern(value text) returns text
    language sql immutable parallel safe strict
    as $$ select '%' || regexp_replace(hotline_fold(value), '([\\%_])', '\\\1', 'g') || '%' $$;

-- Times are kept in the milliseconds the API shows, so that a filter by a time that was shown finds its record.
create table companies (
    id              bigint generated always as identity primary key,
    name            text        not null,
    active          boolean     not null default true,
    api_enabled     boolean     not null default true,
    rate_per_minute integer     check (rate_per_minute >= 0),
    time_zone       text        not null default 'UTC',
    created_at      timestamptz(3) not null default now(),
    updated_at      timestamptz(3) not null default now()
);

create table tokens (
    id           bigint generated always as identity primary key,
    company_id   bigint      not null references companies on delete cascade,
    name         text        not null,
    prefix       text        not null,
    -- SHA-256 of the key: 32 random characters need no slow hash, and the look-up is on every request's way.
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
    id             bigint generated always as identity,
    company_id     bigint      not null references companies on delete cascade,
    name           text        not null,
    permissions    jsonb       not null default '{}',
    sees_all_cards boolean     not null default false,
    created_at     timestamptz(3) not null default now(),
    updated_at     timestamptz(3) not null default now(),
    primary key (company_id, id),
    unique (company_id, name)
);

-- A row is a person's membership in one company: its id is the company-scoped user id.
create table users (
    id            bigint generated always as identity,
    company_id    bigint      not null references companies on delete cascade,
    name          text        not null,
    email         text        not null,
    password_hash text,
    profile_id    bigint,
    active        boolean     not null default true,
    created_at    timestamptz(3) not null default now(),
    updated_at    timestamptz(3) not null default now(),
    primary key (company_id, id),
    foreign key (company_id, profile_id) references profiles (company_id, id)
);
create unique index users_company_email on users (company_id, lower(email));
