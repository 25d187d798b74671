-- The live rows: written only by the persister, from the journal.

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
    created_at        timestamptz not null,
    updated_at        timestamptz not null,
    primary key (company_id, id),
    foreign key (company_id, channel_id) references channels (company_id, id),
    foreign key (company_id, contact_id) references contacts (company_id, id) on delete cascade
);
-- The actors keep this true at any concurrency; the index would show the day they did not.
create unique index tickets_one_open on tickets (company_id, channel_id, contact_id) where status = 'open';
create index tickets_status on tickets (company_id, status, id);
create index tickets_contact on tickets (company_id, contact_id, channel_id, id);
create index tickets_queue on tickets (company_id, queue_id, id) where status = 'open';
create index tickets_user on tickets (company_id, user_id, id) where status = 'open';

create table ticket_events (
    company_id bigint      not null,
    id         bigint      not null,
    ticket_id  bigint      not null,
    type       text        not null,
    "from"     jsonb,
    "to"       jsonb,
    user_id    bigint,
    -- Kept beside the id: history names a user who has left.
    user_name  text,
    source     text        not null,
    created_at timestamptz not null,
    primary key (company_id, ticket_id, id),
    foreign key (company_id, ticket_id) references tickets (company_id, id) on delete cascade
);

create table messages (
    company_id        bigint      not null,
    id                bigint      not null,
    -- The first message of the send this one belongs to; the public job id is made of it.
    job_id            bigint,
    ticket_id         bigint      not null,
    contact_id        bigint      not null,
    channel_id        bigint      not null,
    direction         text        not null check (direction in ('inbound', 'outbound', 'internal')),
    type              text        not null,
    body              text,
    media             jsonb,
    template          jsonb,
    interactive       jsonb,
    quoted_message_id bigint,
    status            text        not null check (status in ('queued', 'sent', 'delivered', 'read', 'failed', 'received')),
    error             jsonb,
    user_id           bigint,
    user_name         text,
    source            text        not null,
    -- Set on what a visitor wrote: the session, and the id the visitor's side gave the message.
    session_id        text,
    client_id         text,
    -- What follows once the channel has taken the message: transfer, then close.
    after_send        jsonb,
    created_at        timestamptz not null,
    sent_at           timestamptz,
    delivered_at      timestamptz,
    read_at           timestamptz,
    primary key (company_id, id),
    foreign key (company_id, ticket_id) references tickets (company_id, id) on delete cascade
);
create index messages_ticket on messages (company_id, ticket_id, id);
create index messages_contact on messages (company_id, contact_id, id);
create unique index messages_client_id on messages (company_id, session_id, client_id) where client_id is not null;
create index messages_outbox on messages (company_id, channel_id, id) where status = 'queued';

create table webchat_sessions (
    company_id   bigint      not null,
    id           text        not null,
    channel_id   bigint      not null,
    contact_id   bigint      not null,
    ticket_id    bigint,
    status       text        not null check (status in ('active', 'ended')),
    -- SHA-256 of the visitor's own token.
    token_hash   bytea       not null,
    page         jsonb,
    utm          jsonb,
    created_at   timestamptz not null,
    last_seen_at timestamptz not null,
    ended_at     timestamptz,
    primary key (company_id, id),
    foreign key (company_id, channel_id) references channels (company_id, id),
    foreign key (company_id, contact_id) references contacts (company_id, id) on delete cascade
);
create index webchat_sessions_contact on webchat_sessions (company_id, contact_id, channel_id);
create index webchat_sessions_idle on webchat_sessions (last_seen_at) where status = 'active';
