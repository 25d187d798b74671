update tickets t set
    queue_id = x.queue_id,
    user_id = x.user_id,
    status = x.status,
    unread_count = x.unread_count,
    last_message_id = x.last_message_id,
    wrapup_type_id = x.wrapup_type_id,
    wrapup_note = x.wrapup_note,
    reopen_count = x.reopen_count,
    opened_at = x.opened_at,
    first_response_at = x.first_response_at,
    closed_at = x.closed_at,
    waiting_since = x.waiting_since,
    answer_id = x.answer_id,
    updated_at = x.updated_at,
    handled_by = x.handled_by
from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::integer[], $7::bigint[],
    $8::bigint[], $9::text[], $10::integer[], $11::timestamptz[], $12::timestamptz[], $13::timestamptz[],
    $14::timestamptz[], $15::bigint[], $16::timestamptz[], $17::text[])
    as x (company_id, id, queue_id, user_id, status, unread_count, last_message_id, wrapup_type_id, wrapup_note,
        reopen_count, opened_at, first_response_at, closed_at, waiting_since, answer_id, updated_at, handled_by)
where t.company_id = x.company_id and t.id = x.id
