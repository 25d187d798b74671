-- Sales: products in categories, boards of stages, and the cards that move over them. All of it is plain.

create table product_categories (
    id          bigint generated always as identity,
    company_id  bigint      not null references companies on delete cascade,
    name        text        not null,
    description text,
    created_at  timestamptz(3) not null default now(),
    updated_at  timestamptz(3) not null default now(),
    primary key (company_id, id),
    unique (company_id, name)
);

create table products (
    id          bigint generated always as identity,
    company_id  bigint         not null references companies on delete cascade,
    category_id bigint,
    name        text           not null,
    sku         text,
    description text,
    price       numeric(18, 4) not null default 0 check (price >= 0),
    active      boolean        not null default true,
    created_at  timestamptz(3) not null default now(),
    updated_at  timestamptz(3) not null default now(),
    primary key (company_id, id),
    unique (company_id, sku),
    -- What is sold outlives how it is sorted.
    foreign key (company_id, category_id) references product_categories (company_id, id) on delete set null (category_id)
);
create index products_category on products (company_id, category_id, id);
create index products_active on products (company_id, active, id);

create table card_statuses (
    id         bigint generated always as identity,
    company_id bigint      not null references companies on delete cascade,
    name       text        not null,
    color      text,
    created_at timestamptz(3) not null default now(),
    updated_at timestamptz(3) not null default now(),
    primary key (company_id, id),
    unique (company_id, name)
);

create table businesses (
    id         bigint generated always as identity,
    company_id bigint      not null references companies on delete cascade,
    name       text        not null,
    created_at timestamptz(3) not null default now(),
    updated_at timestamptz(3) not null default now(),
    primary key (company_id, id),
    unique (company_id, name)
);

create table card_origins (
    id         bigint generated always as identity,
    company_id bigint      not null references companies on delete cascade,
    name       text        not null,
    created_at timestamptz(3) not null default now(),
    updated_at timestamptz(3) not null default now(),
    primary key (company_id, id),
    unique (company_id, name)
);

create table boards (
    id                 bigint generated always as identity,
    company_id         bigint      not null references companies on delete cascade,
    name               text        not null,
    description        text,
    monthly_goal       numeric(18, 4) check (monthly_goal >= 0),
    yearly_goal        numeric(18, 4) check (yearly_goal >= 0),
    -- Of a token's own there is none, and of a person who has left there is none any more.
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
    id         bigint generated always as identity,
    company_id bigint      not null references companies on delete cascade,
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
    id                 bigint generated always as identity,
    company_id         bigint      not null references companies on delete cascade,
    board_id           bigint      not null,
    list_id            bigint      not null,
    -- Lower ones are higher up in the stage. A fraction: between two there is always room for one more, so a move writes
    -- one row.
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
    creation_source    text        not null check (creation_source in ('api', 'user', 'bot', 'automation')),
    created_by_user_id bigint,
    -- Which conversation it was made from. Tickets are live rows: no key refers to them.
    ticket_id          bigint,
    created_at         timestamptz(3) not null default now(),
    updated_at         timestamptz(3) not null default now(),
    -- One text for the search over name and description: a line break keeps a match inside one field.
    search             text        not null generated always as (hotline_fold(
        name || E'\n' || coalesce(description, ''))) stored,
    primary key (company_id, id),
    check (won_at is null or lost_at is null),
    -- Two cards never have one place. Looked at when a statement ends, so that one statement can spread a stage anew.
    constraint cards_position unique (company_id, list_id, position) deferrable initially immediate,
    -- A board and its stages stay while they have cards.
    foreign key (company_id, board_id, list_id) references board_lists (company_id, board_id, id),
    foreign key (company_id, assigned_user_id) references users (company_id, id) on delete set null (assigned_user_id),
    foreign key (company_id, created_by_user_id) references users (company_id, id) on delete set null (created_by_user_id),
    foreign key (company_id, status_id) references card_statuses (company_id, id) on delete set null (status_id),
    foreign key (company_id, business_id) references businesses (company_id, id) on delete set null (business_id),
    foreign key (company_id, origin_id) references card_origins (company_id, id) on delete set null (origin_id)
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
-- A span of time that most of a company's cards lie outside of is found without reading them.
create index cards_spans on cards (company_id, id) include (created_at, updated_at, due);
create index cards_ticket on cards (company_id, ticket_id, id) where ticket_id is not null;
create index cards_created_by on cards (company_id, created_by_user_id) where created_by_user_id is not null;
-- What stages hold and boards have come to is counted in an index alone.
create index cards_stage on cards (company_id, board_id, list_id) include (won, lost, products_total);
create index cards_won_at on cards (company_id, board_id, won_at) include (products_total) where won_at is not null;
create index cards_lost_at on cards (company_id, board_id, lost_at) include (products_total) where lost_at is not null;

create table card_contacts (
    company_id bigint not null,
    card_id    bigint not null,
    contact_id bigint not null,
    primary key (company_id, card_id, contact_id),
    foreign key (company_id, card_id) references cards (company_id, id) on delete cascade,
    foreign key (company_id, contact_id) references contacts (company_id, id) on delete cascade
);
create index card_contacts_contact on card_contacts (company_id, contact_id, card_id);

create table card_products (
    id          bigint generated always as identity,
    company_id  bigint         not null,
    card_id     bigint         not null,
    -- Null of what was never in the catalogue, and of what is there no more.
    product_id  bigint,
    name        text           not null,
    sku         text,
    quantity    numeric(18, 4) not null default 1 check (quantity > 0),
    unit_price  numeric(18, 4) not null check (unit_price >= 0),
    total_price numeric        not null generated always as (round(quantity * unit_price, 4)) stored,
    created_at  timestamptz(3) not null default now(),
    updated_at  timestamptz(3) not null default now(),
    primary key (company_id, id),
    foreign key (company_id, card_id) references cards (company_id, id) on delete cascade,
    foreign key (company_id, product_id) references products (company_id, id) on delete set null (product_id)
);
create index card_products_card on card_products (company_id, card_id, id);
create index card_products_product on card_products (company_id, product_id) where product_id is not null;

create table card_custom_field_values (
    company_id      bigint not null,
    card_id         bigint not null,
    custom_field_id bigint not null,
    value           text   not null,
    primary key (company_id, card_id, custom_field_id),
    foreign key (company_id, card_id) references cards (company_id, id) on delete cascade,
    foreign key (company_id, custom_field_id) references custom_fields (company_id, id) on delete cascade
);
create index card_custom_field_values_field on card_custom_field_values (company_id, custom_field_id);

-- As in migration 21: no plan depends on how many rows the statistics say a company has, and a search looks through its
-- own company's rows only.
do $$
declare made text;
begin
    foreach made in array array['product_categories', 'products', 'card_statuses', 'businesses', 'card_origins', 'boards',
        'board_queues', 'board_lists', 'cards', 'card_contacts', 'card_products', 'card_custom_field_values']
    loop
        execute format('alter table %I alter column company_id set statistics 0', made);
    end loop;
end $$;

do $$
declare held record;
begin
    for held in select * from (values
        ('product_categories_search', 'product_categories', 'hotline_fold(name)'),
        ('products_search', 'products', 'hotline_fold(name || E''\n'' || coalesce(sku, ''''))'),
        ('card_statuses_search', 'card_statuses', 'hotline_fold(name)'),
        ('businesses_search', 'businesses', 'hotline_fold(name)'),
        ('card_origins_search', 'card_origins', 'hotline_fold(name)'),
        ('boards_search', 'boards', 'hotline_fold(name)'),
        ('cards_search', 'cards', 'search')
    ) as x (index_name, table_name, folded) loop
        execute format('create index %I on %I using gin (company_id, %s gin_trgm_ops) with (gin_pending_list_limit = 512)',
            held.index_name, held.table_name, held.folded);
    end loop;
end $$;
