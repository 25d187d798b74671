-- Contacts of an origin that were created or changed within a span are found in the index, without reading those outside it.
create index contacts_origin_spans on contacts (company_id, origin, id) include (created_at, updated_at);
