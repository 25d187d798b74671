-- Messages that are written now and leave at a time to come. Live: no foreign keys, as a record that is gone by then is
-- a reason to fail and none to be refused.
create table schedules (
    company_id     bigint      not null,
    id             bigint      not null,
    contact_id     bigint      not null,
    channel_id     bigint      not null,
    -- As it was written: variables are filled in when it leaves.
    body           text        not null,
    -- Where its ticket goes once it is sent.
    queue_id       bigint,
    send_at        timestamptz not null,
    status         text        not null check (status in ('pending', 'sent', 'canceled', 'failed')),
    -- The message it became.
    message_id     bigint,
    -- Why it failed.
    error          jsonb,
    user_id        bigint,
    integration_id bigint,
    created_at     timestamptz not null,
    updated_at     timestamptz not null,
    primary key (company_id, id)
);
alter table schedules alter column company_id set statistics 0;

-- What is due next, and which companies have anything that will be.
create index schedules_due on schedules (company_id, send_at, id) where status = 'pending';
create index schedules_status on schedules (company_id, status, id);
create index schedules_contact on schedules (company_id, contact_id, id);

insert into id_blocks (kind, next) values ('schedule', 1);
