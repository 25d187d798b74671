-- No plan depends on how many rows the statistics say a company has. They are a sample of some hour: a company that is
-- new, or has grown since, was planned for as if it had one row, and a statement that is quick for one row read all
-- that company had, once for each value it looked for. Without statistics on the company every company is taken for
-- a two-hundredth of its table, however many rows that is: large enough that an index on more than the company is
-- preferred wherever there is one.
--
-- `type bigint` changes nothing but that it forgets the statistics there are.
do $$
declare held record;
begin
    for held in
        select c.oid::regclass as name from pg_class c join pg_attribute a on a.attrelid = c.oid
        where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and a.attname = 'company_id'
            and not a.attisdropped
        order by c.relname
    loop
        execute format('alter table %s alter column company_id type bigint, alter column company_id set statistics 0',
            held.name);
    end loop;
end $$;

-- A search looks through its own company's rows only, whatever the others call theirs: the company is part of the
-- index. The list of what is not yet sorted into it is kept short, as every search reads all of it.
create extension if not exists btree_gin;

drop index contacts_search;
create index contacts_search on contacts using gin (company_id, search gin_trgm_ops)
    with (gin_pending_list_limit = 512);

do $$
declare held record;
begin
    for held in select * from (values
        ('tags_search', 'tags', 'hotline_fold(name)'),
        ('queues_search', 'queues', 'hotline_fold(name)'),
        ('wrapup_categories_search', 'wrapup_categories', 'hotline_fold(name)'),
        ('wrapup_types_search', 'wrapup_types', 'hotline_fold(name)'),
        ('users_search', 'users', 'hotline_fold(name || E''\n'' || email)'),
        ('profiles_search', 'profiles', 'hotline_fold(name)'),
        ('custom_fields_search', 'custom_fields', 'hotline_fold(name || E''\n'' || key)'),
        ('global_variables_key', 'global_variables', 'hotline_fold(key)'),
        ('global_variables_description', 'global_variables', 'hotline_fold(description)'),
        ('quick_messages_shortcut', 'quick_messages', 'hotline_fold(shortcut)'),
        ('quick_messages_message', 'quick_messages', 'hotline_fold(message)')
    ) as x (index_name, table_name, folded) loop
        execute format('drop index %I', held.index_name);
        execute format('create index %I on %I using gin (company_id, %s gin_trgm_ops) with (gin_pending_list_limit = 512)',
            held.index_name, held.table_name, held.folded);
    end loop;
end $$;
