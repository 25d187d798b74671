-- Whether a user who leaves has scheduled messages, which keep their name.
create index schedules_user on schedules (company_id, user_id) where user_id is not null;
