-- no-transaction
-- Locks: messages (share update exclusive)
-- The company's reactions that their provider does not have yet: read when a channel's outbox is.
create index concurrently if not exists messages_reactions_sending on messages (company_id, channel_id)
    where revisions ? 'sending';
