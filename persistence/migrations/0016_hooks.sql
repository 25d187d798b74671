-- What a channel's provider tells: the order of what it has delivered, files it still holds, and statuses that come
-- before their message is known to be sent.

-- When a contact last wrote on a channel: a phone channel sends freely for a day after it.
create index messages_inbound on messages (company_id, contact_id, channel_id, id) where direction = 'inbound';

-- What a channel has received lately: a call that repeats it is told from a new one without asking the database.
create index messages_received on messages (company_id, channel_id, id)
    where direction = 'inbound' and provider_message_id is not null;

-- Files the provider holds and Hotline has still to fetch.
create index messages_media_wanted on messages (id) where media ? 'wanted';

-- A provider may tell of a delivery before Hotline has noted what it calls the message. It waits here until then, or
-- until it is clear that the message is none of Hotline's.
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
