-- A record that many others show is deleted at once, and taken from them in steps. Until then they hold an id that is in no
-- table: reads join what there is, so nobody sees it. What is to be done yet is noted here, with how others showed the record,
-- for their events, and who deleted it.
create table cascades (
    company_id bigint         not null references companies on delete cascade,
    noun       text           not null check (noun in ('tag', 'custom_field', 'card_status', 'business', 'card_origin', 'product',
        'product_category', 'user', 'contact')),
    id         bigint         not null,
    shown      jsonb          not null,
    by         jsonb          not null,
    created_at timestamptz(3) not null default now(),
    primary key (company_id, noun, id)
);
alter table cascades alter column company_id set statistics 0;

-- A foreign key would change every row that refers to the record within the statement that deletes it. What is left of it is the
-- other half: a new reference locks the record, as a foreign key does, and is refused when it is gone. The release
-- before deletes as it did: it takes the record from all others first, and what it misses nobody sees.
do $$
declare made record;
begin
    for made in select * from (values
        ('contact_tags', 'tag_id', 'tags'),
        ('contact_custom_field_values', 'custom_field_id', 'custom_fields'),
        ('card_custom_field_values', 'custom_field_id', 'custom_fields'),
        ('cards', 'status_id', 'card_statuses'),
        ('cards', 'business_id', 'businesses'),
        ('cards', 'origin_id', 'card_origins'),
        ('cards', 'assigned_user_id', 'users'),
        ('card_products', 'product_id', 'products'),
        ('card_contacts', 'contact_id', 'contacts'),
        ('products', 'category_id', 'product_categories')
    ) as x (holder, reference, target) loop
        execute format('alter table %I drop constraint %I', made.holder,
            made.holder || '_company_id_' || made.reference || '_fkey');
        execute format($function$
            create function %1$I() returns trigger language plpgsql as $body$
            begin
                perform from %2$I where company_id = new.company_id and id = new.%3$I for key share;
                if not found then
                    raise foreign_key_violation using table = tg_table_name, column = %3$L,
                        message = 'a row refers to a record that is not there';
                end if;
                return new;
            end $body$
        $function$, 'hotline_' || made.holder || '_' || made.reference, made.target, made.reference);
        execute format('create trigger %I before insert on %I for each row when (new.%I is not null) execute function %I()',
            'refers_by_' || made.reference, made.holder, made.reference, 'hotline_' || made.holder || '_' || made.reference);
        execute format('create trigger %I before update of %I on %I for each row
            when (new.%2$I is not null and new.%2$I is distinct from old.%2$I) execute function %4$I()',
            'refers_anew_by_' || made.reference, made.reference, made.holder,
            'hotline_' || made.holder || '_' || made.reference);
    end loop;
end $$;

-- Nobody is shown who made a card: the id stays when they leave.
alter table cards drop constraint cards_company_id_created_by_user_id_fkey;
