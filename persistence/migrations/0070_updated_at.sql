-- A caller may ask that a contact or card is changed only if it is still as it was read (`If-Match`). Its state is named by
-- `updated_at` as the API shows it, in milliseconds: so each change moves it by at least one, whatever the clock says.
create function hotline_moves_on() returns trigger language plpgsql as $$
begin
    new.updated_at := greatest(new.updated_at, old.updated_at + interval '1 millisecond');
    return new;
end
$$;

create trigger contacts_move_on before update of updated_at on contacts
    for each row execute function hotline_moves_on();
create trigger cards_move_on before update of updated_at on cards
    for each row execute function hotline_moves_on();
