insert into tickets (company_id, id, channel_id, contact_id, queue_id, user_id, status, creation_source,
    unread_count, last_message_id, wrapup_type_id, wrapup_note, reopen_count, opened_at, first_response_at,
    closed_at, waiting_since, answer_id, created_at, updated_at, handled_by)
select * from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
    $7::text[], $8::text[], $9::integer[], $10::bigint[], $11::bigint[], $12::text[], $13::integer[],
    $14::timestamptz[], $15::timestamptz[], $16::timestamptz[], $17::timestamptz[], $18::bigint[], $19::timestamptz[], $20::timestamptz[],
    $21::text[])
on conflict (company_id, id) do update set
    queue_id = excluded.queue_id,
    user_id = excluded.user_id,
    status = excluded.status,
    unread_count = excluded.unread_count,
    last_message_id = excluded.last_message_id,
    wrapup_type_id = excluded.wrapup_type_id,
    wrapup_note = excluded.wrapup_note,
    reopen_count = excluded.reopen_count,
    opened_at = excluded.opened_at,
    first_response_at = excluded.first_response_at,
    closed_at = excluded.closed_at,
    waiting_since = excluded.waiting_since,
    answer_id = excluded.answer_id,
    updated_at = excluded.updated_at,
    handled_by = excluded.handled_by
