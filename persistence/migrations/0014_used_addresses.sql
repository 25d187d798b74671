-- Locks: contact_addresses (access exclusive, catalog only)
-- When a contact with several addresses on a channel last wrote from one that was not the newest: they are answered there.
alter table contact_addresses add column used_at timestamptz(3);
