-- Where a contact was last talked to lies beside the contact: each opening wrote a contact anew, and with it an entry into
-- each of twelve indexes, one of them its words.
create table contact_last_channels (
    company_id bigint      not null,
    contact_id bigint      not null,
    channel_id bigint      not null,
    at         timestamptz not null,
    primary key (company_id, contact_id)
) with (fillfactor = 80);
alter table contact_last_channels alter column company_id set statistics 0;

insert into contact_last_channels (company_id, contact_id, channel_id, at)
    select company_id, id, last_channel_id, updated_at from contacts where last_channel_id is not null;
create index contact_last_channels_channel on contact_last_channels (company_id, channel_id, contact_id);

-- No foreign key: its check would lock the contact's row for each opening.
create function hotline_forget_last_channel() returns trigger language plpgsql as $$
begin
    delete from contact_last_channels where company_id = old.company_id and contact_id = old.id;
    return null;
end $$;
create trigger contact_removed after delete on contacts
    for each row execute function hotline_forget_last_channel();

drop index contacts_last_channel;
alter table contacts drop column last_channel_id;

-- A release before this one would read and write the column.
update schema_needs set least = 48;
