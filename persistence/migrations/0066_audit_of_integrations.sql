-- What integrations do to users and other parts of the setup is in the audit log as well. The release before leaves such
-- entries out of its list.
do $$
declare
    part regclass;
begin
    alter table audit_log drop constraint audit_log_actor_kind_check;
    -- A partition was made like its parent, so the constraint is also its own.
    for part in select inhrelid::regclass from pg_inherits where inhparent = 'audit_log'::regclass loop
        execute format('alter table %s drop constraint if exists audit_log_actor_kind_check', part);
    end loop;
end $$;
alter table audit_log add constraint audit_log_actor_kind_check check (actor_kind in ('user', 'admin', 'integration'));
