-- Locks: contact_numbers (access exclusive, catalog only)
-- Whether a number became a former one only because its contact was merged into one that has another: who writes from it is
-- answered there.
alter table contact_numbers add column merged boolean not null default false;
