-- Files of messages: which there are, and which have lost their message. The files themselves lie in the media store,
-- in a folder for each hour in which they were stored.

create table media (
    company_id bigint not null,
    -- Unguessable; begins with the hour.
    id         text   not null,
    message_id bigint not null,
    -- Since when there is no message any more: its contact was deleted. The file goes first, then this row.
    left_at    timestamptz(3),
    primary key (company_id, id)
);
create index media_left on media (left_at) where left_at is not null;

-- Whoever writes or deletes messages need not think of their files: a file is known exactly as long as its message is
-- there, in the same transaction.

create function hotline_media_came() returns trigger language plpgsql as $$
begin
    insert into media (company_id, id, message_id) values (new.company_id, new.media ->> 'id', new.id)
    on conflict (company_id, id) do nothing;
    return null;
end $$;

create function hotline_media_left() returns trigger language plpgsql as $$
begin
    update media set left_at = now()
    where company_id = old.company_id and id = old.media ->> 'id' and message_id = old.id;
    return null;
end $$;

-- A file that a contact sent comes after its message, once it was fetched from the provider.
create trigger media_came after insert or update of media on messages
    for each row when (new.media ? 'id') execute function hotline_media_came();
create trigger media_replaced after update of media on messages
    for each row when (old.media ? 'id' and old.media ->> 'id' is distinct from new.media ->> 'id')
    execute function hotline_media_left();
create trigger media_left after delete on messages
    for each row when (old.media ? 'id') execute function hotline_media_left();

-- Files without a message are looked for once, hour by hour. This is the last hour that is done, in hours since 1970.
create table media_sweep (
    only_row boolean primary key default true check (only_row),
    hour     bigint  not null
);
insert into media_sweep (hour) values (extract(epoch from now())::bigint / 3600 - 1);

-- Secrets of the installation, which all its processes share.
create table installation_keys (
    name       text        primary key,
    key        bytea       not null,
    created_at timestamptz(3) not null default now()
);
