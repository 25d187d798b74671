-- The lists of the organization are searched by name; deletions and metrics ask which tickets refer to what.

create index queues_search on queues using gin (hotline_fold(name) gin_trgm_ops);
create index wrapup_categories_search on wrapup_categories using gin (hotline_fold(name) gin_trgm_ops);
create index wrapup_types_search on wrapup_types using gin (hotline_fold(name) gin_trgm_ops);
create index wrapup_types_category on wrapup_types (company_id, category_id);
create index users_search on users using gin (hotline_fold(name || E'\n' || email) gin_trgm_ops);
create index users_profile on users (company_id, profile_id);
create index profiles_search on profiles using gin (hotline_fold(name) gin_trgm_ops);
create index channels_queue on channels (company_id, queue_id);

create index tickets_wrapup_type on tickets (company_id, wrapup_type_id, id) where wrapup_type_id is not null;
create index tickets_user_opened on tickets (company_id, user_id, opened_at) where user_id is not null;
