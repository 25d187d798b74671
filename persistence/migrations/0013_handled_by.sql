-- Locks: tickets (access exclusive, catalog only)
-- The app of the provider that handles the conversation in place of Hotline: the provider's id of it, empty if it is unknown.
alter table tickets add column handled_by text;
