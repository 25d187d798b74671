-- Tells running services that a company's directory changed (tokens, channels, queues, users, wrap-up types):
-- they hold it in memory and load it anew.

create function hotline_directory_changed() returns trigger language plpgsql as $$
begin
    perform pg_notify('hotline_directory', (case when tg_op = 'DELETE' then old else new end).company_id::text);
    return null;
end $$;

create function hotline_company_changed() returns trigger language plpgsql as $$
begin
    perform pg_notify('hotline_directory', (case when tg_op = 'DELETE' then old else new end).id::text);
    return null;
end $$;

create trigger directory_changed after insert or update or delete on companies
    for each row execute function hotline_company_changed();

-- `last_used_at` is written often and means nothing to the directory.
create trigger directory_changed after insert or delete or update of
    name, permissions, allowed_ips, expires_at, revoked_at, hash on tokens
    for each row execute function hotline_directory_changed();

do $$
declare listened text;
begin
    foreach listened in array array['profiles', 'users', 'queues', 'queue_users', 'wrapup_types', 'wrapup_type_queues', 'channels'] loop
        execute format('create trigger directory_changed after insert or update or delete on %I
            for each row execute function hotline_directory_changed()', listened);
    end loop;
end $$;
