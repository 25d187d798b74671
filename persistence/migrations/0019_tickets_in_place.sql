-- A ticket's row is written again for every message, and none of what changes is indexed. Where its page has room for the
-- new version no index is touched; on full pages eight of them were, for most of what a message cost.
alter table tickets set (fillfactor = 80);
