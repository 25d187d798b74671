-- Every filter of the list of contacts finds its rows by an index, in the order of the list.

create index contacts_code on contacts (company_id, code, id);
create index contacts_origin on contacts (company_id, origin, id);
create index contacts_is_group on contacts (company_id, id) where is_group;
create index contacts_created on contacts (company_id, created_at, id);
create index contacts_updated on contacts (company_id, updated_at, id);
-- A span of time that most of a company's contacts lie outside of is found without reading them.
create index contacts_spans on contacts (company_id, id) include (created_at, updated_at);
