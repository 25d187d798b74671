-- Locks: early_statuses (access exclusive), which is small
-- Our own id of the message, if the provider has returned it.
alter table early_statuses add column names bigint;
create index early_statuses_names on early_statuses (company_id, channel_id, names) where names is not null;
