-- What a unique name looks like: without characters that show nothing, and with each run of blanks as one. Two names of a company
-- that look the same are the same, and are stored as they were written. Joiners stay where they change the letters or the emoji
-- on both sides, and tags where they make a flag another. `letters::looks` says the same.
--
-- <https://www.unicode.org/Public/UCD/latest/ucd/DerivedCoreProperties.txt> (`Default_Ignorable_Code_Point`)
do $$
begin
    if current_setting('server_encoding') <> 'UTF8' then
        -- Only there do the numbers of characters mean what they do here.
        create function hotline_looks(name text) returns text language sql immutable strict parallel safe
            return btrim(name);
        return;
    end if;
    create function hotline_looks(name text) returns text language sql immutable strict parallel safe
        return btrim(regexp_replace(regexp_replace(regexp_replace(regexp_replace(name collate "C",
            '[\u0001-\u0008\u000e-\u001f\u007f-\u0084\u0086-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f'
                || '\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff0-\ufffb\U0001bca0-\U0001bca3'
                || '\U0001d173-\U0001d17a\U000e0000-\U000e001f\U000e0080-\U000e0fff]'
                || '|(?<!\U0001f3f4[\U000e0020-\U000e007f]*)[\U000e0020-\U000e007f]', '', 'g'),
            '([\u200c\u200d])[\u200c\u200d]+', '\1', 'g'),
            '\u200c(?![\u0620-\u0dff\u0f00-\u109f\u1780-\u18af\ufb50-\ufdff\ufe70-\ufefc])'
                || '|(?<![\u0620-\u0dff\u0f00-\u109f\u1780-\u18af\ufb50-\ufdff\ufe70-\ufefc])\u200c'
                || '|\u200d(?![\u0900-\u0dff\u0f00-\u109f\u1780-\u18af\u2190-\u27ff\u2900-\u2bff\U0001f000-\U0001faff])'
                || '|(?<![\u0900-\u0dff\u0f00-\u109f\u1780-\u18af\u2190-\u27ff\u2900-\u2bff\U0001f000-\U0001faff])\u200d', '', 'g'),
            '[\u0009-\u000d\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u2800\u3000\u3164\uffa0]+', ' ', 'g'));
end $$;

create function hotline_note_looks() returns trigger language plpgsql as $$
begin
    new.looks := hotline_looks(to_jsonb(new) ->> tg_argv[0]);
    return new;
end $$;

-- Of names that look the same already, the oldest has its looks, and the others are not compared until they are changed.
do $$
declare
    noun record;
begin
    for noun in
        select * from (values ('profiles', 'name'), ('queues', 'name'), ('wrapup_categories', 'name'),
            ('wrapup_types', 'name'), ('tags', 'name'), ('quick_messages', 'shortcut'), ('product_categories', 'name'),
            ('products', 'sku'), ('card_statuses', 'name'), ('businesses', 'name'), ('card_origins', 'name'))
            as nouns (of_table, of_column)
    loop
        execute format('alter table %I add column looks text', noun.of_table);
        execute format(
            'update %1$I x set looks = o.looks
             from (select company_id, id, looks, row_number() over (partition by company_id, looks order by id) as place
                 from (select company_id, id, hotline_looks(%2$I) as looks from %1$I) y) o
             where o.company_id = x.company_id and o.id = x.id and o.place = 1 and o.looks is not null',
            noun.of_table, noun.of_column);
        execute format('create unique index %1$I on %2$I (company_id, looks)', noun.of_table || '_looks', noun.of_table);
        execute format(
            'create trigger %1$I before insert on %2$I for each row execute function hotline_note_looks(%3$L)',
            noun.of_table || '_look', noun.of_table, noun.of_column);
        execute format(
            'create trigger %1$I before update of %3$I on %2$I for each row when (old.%3$I is distinct from new.%3$I)
             execute function hotline_note_looks(%3$L)',
            noun.of_table || '_look_other', noun.of_table, noun.of_column);
    end loop;
end $$;
