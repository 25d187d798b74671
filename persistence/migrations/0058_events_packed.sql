-- What a transaction tells is packed by lz4 where the server has it: the slower way of old was most of what the log cost a
-- send. What is stored is read as before, and partitions to come are made like their parent.
do $$
declare part regclass;
begin
    for part in select 'events'::regclass union all select inhrelid::regclass from pg_inherits where inhparent = 'events'::regclass
    loop
        execute format('alter table %s alter column told set compression lz4', part);
    end loop;
exception when feature_not_supported then
    -- A server that was built without lz4.
    null;
end $$;
