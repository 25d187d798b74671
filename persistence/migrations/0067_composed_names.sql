-- Unique names are stored in Unicode's form C, so that two of them that look the same are the same. Those of before are
-- composed, unless another record has that name already: then both stay as they are.
do $$
declare
    noun record;
begin
    -- Only there does Unicode have forms.
    if current_setting('server_encoding') <> 'UTF8' then
        return;
    end if;
    for noun in
        select * from (values ('profiles', 'name'), ('queues', 'name'), ('wrapup_categories', 'name'),
            ('wrapup_types', 'name'), ('tags', 'name'), ('quick_messages', 'shortcut'), ('product_categories', 'name'),
            ('products', 'sku'), ('card_statuses', 'name'), ('businesses', 'name'), ('card_origins', 'name'))
            as nouns (of_table, of_column)
    loop
        execute format(
            'update %1$I x set %2$I = normalize(x.%2$I, NFC) where x.%2$I is not nfc normalized and not exists (
                 select from %1$I o where o.company_id = x.company_id and o.id <> x.id
                     and normalize(o.%2$I, NFC) = normalize(x.%2$I, NFC))',
            noun.of_table, noun.of_column);
    end loop;
end $$;
