-- Answers under a key are as small as they can be, and dropped by the hour of their expiry in place of being deleted one
-- by one: a key and a request are the first 16 bytes of their SHA-256, and there is one index.

alter table idempotency_keys rename to idempotency_keys_before;
alter index idempotency_keys_pkey rename to idempotency_keys_before_pkey;

create table idempotency_keys (
    company_id  bigint         not null,
    key         bytea          not null,
    -- Of method, path, query and body: the same key with anything else is a conflict.
    fingerprint bytea          not null,
    status      smallint       not null,
    body        text           not null,
    created_at  timestamptz(3) not null,
    primary key (company_id, key, created_at)
) partition by range (created_at);
alter table idempotency_keys alter column company_id set statistics 0;
create table idempotency_keys_default partition of idempotency_keys default;
alter table idempotency_keys_default alter column company_id set statistics 0;

-- What was kept before goes into one partition that ends with the present six hours, and expires with them.
do $$
declare
    today date := (now() at time zone 'UTC')::date;
    block int  := extract(hour from now() at time zone 'UTC')::int / 6 * 6;
    name  text := format('idempotency_keys_p%s_%s', to_char(today, 'YYYYMMDD'), to_char(block, 'FM00'));
begin
    if not exists (select from idempotency_keys_before) then return; end if;
    execute format('create table %I partition of idempotency_keys for values from (%L) to (%L)', name,
        format('%s 00:00+00', today - 7), format('%s %s:00+00', today, block)::timestamptz + interval '6 hours');
    execute format('alter table %I alter column company_id set statistics 0', name);
    insert into idempotency_keys (company_id, key, fingerprint, status, body, created_at)
        select company_id, substring(sha256(convert_to(key, 'UTF8')) for 16), substring(fingerprint for 16), status, body,
            created_at
        from idempotency_keys_before;
end $$;
drop table idempotency_keys_before;

-- Nothing of the release before knows a key by its hash.
update schema_needs set least = 47;
