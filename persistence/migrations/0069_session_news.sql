-- Tells running services that a session of a person has ended: what it has open, such as a stream of events, ends too.
create trigger directory_changed after delete on person_sessions
    for each row execute function hotline_directory_changed();
