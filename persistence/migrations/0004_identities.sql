-- Locks: contact_addresses (access exclusive, catalog only); companies (share row exclusive), for a moment: it is referred to
-- By what a contact is known: the kind of a provider's id (null: of a person), and until when it was used (null: it is).
alter table contact_addresses add column kind text, add column until timestamptz(3);
-- Numbers of contacts that their provider has changed: the former ones with their end, which find the contact still, and since
-- when the current one is used. No foreign key to contacts, whose rows it would lock: deleted with the contact.
create table contact_numbers (
    company_id bigint         not null references companies on delete cascade,
    number     text           not null,
    contact_id bigint         not null,
    since      timestamptz(3),
    until      timestamptz(3),
    primary key (company_id, number, contact_id)
);
create index contact_numbers_contact on contact_numbers (company_id, contact_id);
alter table contact_numbers alter column company_id set statistics 0;
-- Two contacts that a provider says are one person: a row of each. Merging them is up to people.
create table contact_merge_suggestions (
    company_id bigint         not null references companies on delete cascade,
    contact_id bigint         not null,
    other_id   bigint         not null,
    kind       text           not null,
    value      text           not null,
    created_at timestamptz(3) not null default now(),
    primary key (company_id, contact_id, other_id)
);
alter table contact_merge_suggestions alter column company_id set statistics 0;
