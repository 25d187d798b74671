-- `contacts_origin_spans` serves what this one did. Not in the migration that builds it: what takes a stronger lock on a table
-- than it has already ends with a deadlock as soon as somebody who has read the table waits to write to it.
drop index contacts_origin;
