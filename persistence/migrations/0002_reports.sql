-- Locks: beats, for a moment (its catalogue entry only)
-- What each process of a cluster last reported of the others: which of them it reaches, and its folder of message files.
alter table beats add column report jsonb, add column reported_at timestamptz;
