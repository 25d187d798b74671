-- Locks: companies (share row exclusive), for a moment: it is referred to
-- People whose data is to be erased: a contact, with what is known of where its data is. A running service does it in steps,
-- and so does the command line while none runs. The row stays as a record without personal data.
create table erasures (
    company_id   bigint         not null references companies on delete cascade,
    contact_id   bigint         not null,
    -- The ids of the records that belong to the contact, until all of them are deleted.
    traces       jsonb          not null default '{}',
    -- How many of each kind were removed.
    removed      jsonb          not null default '{}',
    -- Why the last step failed; null: it did not.
    failure      text,
    requested_at timestamptz(3) not null default now(),
    done_at      timestamptz(3),
    primary key (company_id, contact_id)
);
create index erasures_pending on erasures (requested_at) where done_at is null;
alter table erasures alter column company_id set statistics 0;
