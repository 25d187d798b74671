-- Lists that were deleted and whose contacts are still to be taken out: a list may have a million, which is more than one
-- statement deletes in its time.
create table removed_contact_lists (
    company_id      bigint not null,
    contact_list_id bigint not null,
    primary key (company_id, contact_list_id)
);
alter table removed_contact_lists alter column company_id set statistics 0;

create or replace function hotline_empty_list() returns trigger language plpgsql as $$
begin
    insert into removed_contact_lists (company_id, contact_list_id) values (old.company_id, old.id);
    return null;
end $$;
