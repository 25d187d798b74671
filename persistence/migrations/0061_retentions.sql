-- How long a company keeps a conversation once it is closed. A table of its own: nothing of the directory needs it, and what is
-- noted here with every step must not look like a change of the company.
create table retentions (
    company_id   bigint         not null primary key references companies on delete cascade,
    -- Days after which a closed conversation goes; null: it stays.
    days         integer        check (days >= 30),
    -- From this midnight in UTC on reports can be counted anew; of before, conversations are missing. Null: none is.
    counted_from timestamptz,
    -- Conversations that have gone.
    removed      bigint         not null default 0,
    -- When it was last looked through to the end.
    ran_at       timestamptz(3),
    created_at   timestamptz(3) not null default now(),
    updated_at   timestamptz(3) not null default now()
);
alter table retentions alter column company_id set statistics 0;

-- What was closed longest ago. Closing and reopening write an index of the status anyway; nothing else writes this one.
create index tickets_closed on tickets (company_id, closed_at, id) where status = 'closed';
