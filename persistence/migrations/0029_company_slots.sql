-- Which of 1024 parts of all companies a company is in. A cluster will give each part to one of its nodes; a single
-- process serves all of them and does not look at it. A column and not a function of the id, so that a large company can
-- be given a part of its own; until somebody does, it is a hash of the id.

-- Made of SHA-256 and not of PostgreSQL's own hash, which may differ from one version to the next.
create function hotline_slot(company bigint) returns smallint
    language sql immutable parallel safe strict
    as $$ select ((get_byte(sha256(int8send(company)), 0) & 3) * 256 + get_byte(sha256(int8send(company)), 1))::smallint $$;

alter table companies add column slot smallint check (slot between 0 and 1023);
update companies set slot = hotline_slot(id);
alter table companies alter column slot set not null;

-- A default cannot look at another column. The release before inserts companies without a slot, and gets one.
create function hotline_company_slot() returns trigger language plpgsql as $$
begin
    new.slot := coalesce(new.slot, hotline_slot(new.id));
    return new;
end $$;

create trigger company_slot before insert on companies for each row execute function hotline_company_slot();
