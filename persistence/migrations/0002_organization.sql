-- Queues, their agents, wrap-up types and tags.

create table queues (
    id              bigint generated always as identity,
    company_id      bigint      not null references companies on delete cascade,
    name            text        not null,
    color           text        not null default '#64748b',
    greeting        text,
    distribution    text        not null default 'manual' check (distribution in ('manual', 'round_robin', 'least_busy')),
    wrapup_required boolean     not null default false,
    active          boolean     not null default true,
    created_at      timestamptz(3) not null default now(),
    updated_at      timestamptz(3) not null default now(),
    primary key (company_id, id),
    unique (company_id, name)
);

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
    id         bigint generated always as identity,
    company_id bigint      not null references companies on delete cascade,
    name       text        not null,
    created_at timestamptz(3) not null default now(),
    updated_at timestamptz(3) not null default now(),
    primary key (company_id, id),
    unique (company_id, name)
);

create table wrapup_types (
    id          bigint generated always as identity,
    company_id  bigint      not null references companies on delete cascade,
    category_id bigint      not null,
    name        text        not null,
    active      boolean     not null default true,
    created_at  timestamptz(3) not null default now(),
    updated_at  timestamptz(3) not null default now(),
    primary key (company_id, id),
    unique (company_id, name),
    foreign key (company_id, category_id) references wrapup_categories (company_id, id)
);

create table wrapup_type_queues (
    company_id     bigint not null,
    wrapup_type_id bigint not null,
    queue_id       bigint not null,
    primary key (company_id, wrapup_type_id, queue_id),
    foreign key (company_id, wrapup_type_id) references wrapup_types (company_id, id) on delete cascade,
    foreign key (company_id, queue_id) references queues (company_id, id) on delete cascade
);
create index wrapup_type_queues_queue on wrapup_type_queues (company_id, queue_id);

create table tags (
    id         bigint generated always as identity,
    company_id bigint      not null references companies on delete cascade,
    name       text        not null,
    color      text        not null default '#64748b',
    created_at timestamptz(3) not null default now(),
    updated_at timestamptz(3) not null default now(),
    primary key (company_id, id),
    unique (company_id, name)
);

create table custom_fields (
    id          bigint generated always as identity,
    company_id  bigint      not null references companies on delete cascade,
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
