-- Locks: channels (access exclusive, catalog only)
-- What a phone channel's provider has reported of its quality and of its limit.
alter table channels add column quality text, add column messaging_limit text;
