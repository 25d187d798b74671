-- Locks: messages (access exclusive, catalog only)
-- How often a message was handed to its provider, and since when it is unknown whether it has left.
alter table messages add column attempts jsonb;
