-- Locks: cards (access exclusive, catalog only)
-- The user to whom a won or lost card was assigned when they were removed: in reports it is still theirs. It is not shown,
-- so it has no foreign key.
alter table cards add column former_user_id bigint;
