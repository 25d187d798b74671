-- Locks: messages (access exclusive, catalog only), channels (share row exclusive), for a moment: it is referred to
-- What happened to a message after it was written: earlier texts, the deletion, reactions.
alter table messages add column revisions jsonb;

-- What a provider reported of a message that is not known yet: an edit, a deletion or a reaction may precede its message.
-- Each is kept for two days.
create table early_revisions (
    company_id          bigint      not null,
    channel_id          bigint      not null,
    provider_message_id text        not null,
    kind                text        not null check (kind in ('edited', 'deleted', 'reacted')),
    -- The edit's id, or who has reacted.
    key                 text        not null,
    revision            jsonb       not null,
    at                  timestamptz not null,
    created_at          timestamptz not null default now(),
    primary key (company_id, channel_id, provider_message_id, kind, key),
    foreign key (company_id, channel_id) references channels (company_id, id) on delete cascade
);
create index early_revisions_age on early_revisions (created_at);
alter table early_revisions alter column company_id set statistics 0;

-- Messages of the type `system` have a bit as well.
create or replace function hotline_mark(word text) returns bigint language sql immutable parallel safe as $$
    select 1::bigint << (array_position(array['text', 'media', 'template', 'interactive', 'note', 'inbound', 'outbound',
        'internal', 'queued', 'sent', 'delivered', 'read', 'failed', 'received', 'open', 'closed', 'unassigned',
        'assigned', 'system'], word) - 1)
$$;
