insert into messages (company_id, id, job_id, ticket_id, contact_id, channel_id, direction, type, body, media,
    template, interactive, quoted_message_id, status, error, user_id, user_name, source, session_id, client_id,
    after_send, provider_message_id, created_at, sent_at, delivered_at, read_at,
    integration_id)
select * from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
    $7::text[], $8::text[], $9::text[], $10::jsonb[], $11::jsonb[], $12::jsonb[], $13::bigint[], $14::text[],
    $15::jsonb[], $16::bigint[], $17::text[], $18::text[], $19::text[], $20::text[], $21::jsonb[], $22::text[],
    $23::timestamptz[], $24::timestamptz[], $25::timestamptz[], $26::timestamptz[], $27::bigint[])
on conflict (company_id, id) do nothing
