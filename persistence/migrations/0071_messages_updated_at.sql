-- When what the API shows of a message changed last; null: never since it was created. A sync asks for what changed since
-- (`updatedFrom`), so a change that is written later is never dated before one that was.
alter table messages add column updated_at timestamptz(3);

create function hotline_message_moves_on() returns trigger language plpgsql as $$
begin
    new.updated_at := greatest(now(), coalesce(old.updated_at, old.created_at) + interval '1 millisecond');
    return new;
end
$$;

create trigger messages_move_on before update on messages
    for each row when (
        (old.status, old.error, old.media, old.body, old.sent_at, old.delivered_at, old.read_at)
        is distinct from (new.status, new.error, new.media, new.body, new.sent_at, new.delivered_at, new.read_at)
    ) execute function hotline_message_moves_on();
