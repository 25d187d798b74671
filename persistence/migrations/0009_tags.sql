-- The list of tags is searched by name, however many there are.

create index tags_search on tags using gin (hotline_fold(name) gin_trgm_ops);
