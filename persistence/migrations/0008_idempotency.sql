-- The answers that requests with an idempotency key were given, for 24 hours: written in the transaction of their
-- effect, or by the persister from the journal entry of their effect.

create table idempotency_keys (
    company_id  bigint      not null,
    key         text        not null,
    -- SHA-256 of method, path, query and body: the same key with anything else is a conflict.
    fingerprint bytea       not null,
    status      smallint    not null,
    body        text        not null,
    created_at  timestamptz(3) not null,
    primary key (company_id, key)
);
create index idempotency_keys_age on idempotency_keys (created_at);
