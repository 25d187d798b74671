//! What the log of events must hold of the tables.

use hotline_persistence::{CompanyId, PgPool};
use sqlx::AssertSqlSafe;

/// Every event of a company, one a row: `id`, `kind`, and of messages `message` and `status`.
const EVENTS: &str = "with told as (
    select e.first_id + t.place - 1 as id, t.event ->> 'k' as kind, (t.event -> 'r' -> 'm' ->> 'i')::bigint as message,
        (t.event -> 'r' -> 't' -> 'r' ->> 'id')::bigint as ticket, t.event -> 'r' -> 's' -> 'r' ->> 'id' as session
    from events e, jsonb_array_elements(e.told::jsonb) with ordinality t (event, place) where e.company_id = $1)";

/// What is asked of them, and must find nothing.
const QUESTIONS: [(&str, &str); 7] = [
    (
        "ids are dense, each there once",
        "select min(id), max(id), count(*) from told having count(*) > 0 and (min(id) <> 1 or count(*) <> max(id)
            or count(distinct id) <> count(*)
            or max(id) <> (select last_id from event_counters where company_id = $1))",
    ),
    (
        "each message is told of once, when it comes",
        "select m.id, count(t.id), 0::bigint from messages m
         left join told t on t.message = m.id and t.kind = case m.direction when 'inbound' then 'message.received'
            when 'outbound' then 'message.created' else 'note.added' end
         where m.company_id = $1 group by m.id having count(t.id) <> 1",
    ),
    (
        "nothing is told of messages there are not",
        "select t.id, t.message, 0::bigint from told t where t.message is not null
            and not exists (select from messages m where m.company_id = $1 and m.id = t.message)",
    ),
    (
        "no message comes twice as far",
        "select min(t.id), t.message, count(*) from told t where t.message is not null and t.kind <> 'message.updated'
         group by t.message, t.kind having count(*) > 1",
    ),
    (
        "how far a message has come is told",
        "select m.id, 0::bigint, 0::bigint from messages m where m.company_id = $1 and m.direction = 'outbound'
            and m.status in ('delivered', 'read', 'failed')
            and not exists (select from told t where t.message = m.id and t.kind = 'message.' || m.status)",
    ),
    (
        "what happened to a ticket is told as often as it did",
        "select coalesce(h.ticket_id, t.ticket), coalesce(h.times, 0), coalesce(t.times, 0)
         from (select ticket_id, type, count(*) as times from ticket_events
                where company_id = $1 and type <> 'note_added' group by 1, 2) h
         full join (select ticket, case when kind = 'ticket.assigned' then 'transferred' else substr(kind, 8) end as type,
                count(*) as times from told where kind like 'ticket.%' group by 1, 2) t
            on t.ticket = h.ticket_id and t.type = h.type
         where h.times is distinct from t.times",
    ),
    (
        "each session is told of when it starts, and when it ends",
        "select 0::bigint, count(t.id) filter (where t.kind = 'session.started'),
            count(t.id) filter (where t.kind = 'session.ended') from webchat_sessions s
         left join told t on t.session = s.id where s.company_id = $1 group by s.id, s.status
         having count(t.id) filter (where t.kind = 'session.started') <> 1
            or count(t.id) filter (where t.kind = 'session.ended') <> (s.status = 'ended')::integer",
    ),
];

/// Fails unless the log tells each change of what the tables hold once.
pub async fn check_events(db: &PgPool, company: CompanyId) {
    let count = format!("{EVENTS} select count(*) from told");
    let count: i64 = sqlx::query_scalar(AssertSqlSafe(count)).bind(company).fetch_one(db).await.expect("a count");
    assert!(count > 0, "nothing was told at all");
    for (what, question) in QUESTIONS {
        let found: Vec<(Option<i64>, Option<i64>, Option<i64>)> =
            sqlx::query_as(AssertSqlSafe(format!("{EVENTS} {question} limit 5")))
                .bind(company)
                .fetch_all(db)
                .await
                .unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(found.is_empty(), "{what}: not so for {found:?} of {count} events");
    }
}
