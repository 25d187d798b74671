-- What a channel's provider is told, and tells: its ids of messages, and the addresses of contacts without a number.

-- The provider's id of a message, either way: what its statuses, replies and repetitions are found by.
alter table messages add column provider_message_id text;
create unique index messages_provider_id on messages (company_id, channel_id, provider_message_id)
    where provider_message_id is not null;

-- A ticket's actor is started with what still follows the messages that wait in the outbox; few tickets have any.
create index messages_after_send on messages (company_id, ticket_id) where status = 'queued' and after_send is not null;

-- How a contact is addressed on a channel without phone: the page-scoped or account-scoped id the provider gave them.
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
