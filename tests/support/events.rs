//! Checks that the log of events has what the tables have.

use hotline_persistence::{CompanyId, PgPool};
use sqlx::AssertSqlSafe;

/// A `with` clause with every event of a company, one per row: `id`, `kind`, and the `message`, `ticket` or `session`
/// it is about.
const EVENTS_CLAUSE: &str = "with logged as (
    select e.first_id + t.place - 1 as id, t.event ->> 'k' as kind, (t.event -> 'r' -> 'm' ->> 'i')::bigint as message,
        coalesce(g.into_id, x.ticket) as ticket, t.event -> 'r' -> 's' -> 'r' ->> 'id' as session
    from events e cross join jsonb_array_elements(e.told::jsonb) with ordinality t (event, place)
    cross join lateral (select (t.event -> 'r' -> 't' -> 'r' ->> 'id')::bigint as ticket) x
    -- A merged ticket's history moves to the other ticket.
    left join merges g on g.company_id = $1 and g.noun = 'ticket' and g.id = x.ticket
    where e.company_id = $1)";

/// Each property of these events, and the query for its violations, which must find nothing.
const PROPERTIES: [(&str, &str); 7] = [
    (
        "ids are dense, and each occurs once",
        "select min(id), max(id), count(*) from logged having count(*) > 0 and (min(id) <> 1 or count(*) <> max(id)
            or count(distinct id) <> count(*)
            or max(id) <> (select last_id from event_counters where company_id = $1))",
    ),
    (
        "each message has one event of its creation",
        "select m.id, count(t.id), 0::bigint from messages m
         left join logged t on t.message = m.id and t.kind = case m.direction when 'inbound' then 'message.received'
            when 'outbound' then 'message.created'
            else case m.type when 'system' then 'message.created' else 'note.added' end end
         where m.company_id = $1 group by m.id having count(t.id) <> 1",
    ),
    (
        "no event is about a message that does not exist",
        "select t.id, t.message, 0::bigint from logged t where t.message is not null
            and not exists (select from messages m where m.company_id = $1 and m.id = t.message)",
    ),
    (
        "no status of a message has two events",
        "select min(t.id), t.message, count(*) from logged t where t.message is not null and t.kind not in ('message.updated', 'message.reaction')
         group by t.message, t.kind having count(*) > 1",
    ),
    (
        "each delivered, read or failed message has the event of its status",
        "select m.id, 0::bigint, 0::bigint from messages m where m.company_id = $1 and m.direction = 'outbound'
            and m.status in ('delivered', 'read', 'failed')
            and not exists (select from logged t where t.message = m.id and t.kind = 'message.' || m.status)",
    ),
    (
        "each entry of a ticket's history has one event",
        "select coalesce(h.ticket_id, t.ticket), coalesce(h.times, 0), coalesce(t.times, 0)
         from (select ticket_id, type, count(*) as times from ticket_events
                where company_id = $1 and type <> 'note_added' group by 1, 2) h
         full join (select ticket, case when kind = 'ticket.assigned' then 'transferred' else substr(kind, 8) end as type,
                count(*) as times from logged where kind like 'ticket.%' group by 1, 2) t
            on t.ticket = h.ticket_id and t.type = h.type
         where h.times is distinct from t.times",
    ),
    (
        "each session has one event of its start, and one of its end if it has ended",
        "select 0::bigint, count(t.id) filter (where t.kind = 'session.started'),
            count(t.id) filter (where t.kind = 'session.ended') from webchat_sessions s
         left join logged t on t.session = s.id where s.company_id = $1 group by s.id, s.status
         having count(t.id) filter (where t.kind = 'session.started') <> 1
            or count(t.id) filter (where t.kind = 'session.ended') <> (s.status = 'ended')::integer",
    ),
];

/// A `with` clause with the events of plain records, one per row: `id`, `kind`, `noun`, `record`, and the record's
/// `name` at that time; and with the existing records, by `noun` and `id`.
const PLAIN_EVENTS_CLAUSE: &str = "with logged as (
    select e.first_id + t.place - 1 as id, t.event ->> 'k' as kind, split_part(t.event ->> 'k', '.', 1) as noun,
        coalesce(t.event -> 'r' -> 'c' -> 'i', t.event -> 'r' -> 'k' -> 'i', t.event -> 'r' -> 'd' -> 'r' -> 'id')::bigint as record,
        coalesce(t.event -> 'r' -> 'c', t.event -> 'r' -> 'k') -> 's' ->> 'name' as name
    from events e, jsonb_array_elements(e.told::jsonb) with ordinality t (event, place) where e.company_id = $1
), records as (
    select 'contact' as noun, id, name from contacts where company_id = $1
    union all select 'card', id, name from cards where company_id = $1
    union all select 'schedule', id, null from schedules where company_id = $1)";

/// Each property of these events, and the query for its violations, which must find nothing.
const PLAIN_PROPERTIES: [(&str, &str); 3] = [
    (
        "each contact, card and scheduled message has one event of its creation",
        "select r.id, count(t.id), 0::bigint from records r
         left join logged t on t.record = r.id and t.kind = r.noun || '.created'
         group by r.noun, r.id having count(t.id) <> 1",
    ),
    (
        "each deleted contact or card has one event of its deletion; existing and merged ones have none",
        "select t.record, count(*) filter (where t.kind = t.noun || '.deleted'), count(r.id) from logged t
         left join records r on r.noun = t.noun and r.id = t.record where t.noun in ('contact', 'card')
         group by t.noun, t.record
         having count(*) filter (where t.kind = t.noun || '.deleted') <> (count(r.id) = 0 and not exists (
             select from merges g where g.company_id = $1 and g.noun = t.noun and g.id = t.record))::integer",
    ),
    (
        "each contact or card has the name of its last event",
        "select last.record, last.id, 0::bigint from (
             select distinct on (noun, record) noun, record, id, name from logged
             where noun in ('contact', 'card') order by noun, record, id desc
         ) last join records r on r.noun = last.noun and r.id = last.record where last.name is distinct from r.name",
    ),
];

/// Fails unless the log has each change of the company's live records exactly once.
pub async fn check_events(db: &PgPool, company: CompanyId) {
    assert_eq!(wrong_events(db, company).await, Vec::<String>::new());
}

/// The properties of live records that the log violates, each with up to five examples.
pub async fn wrong_events(db: &PgPool, company: CompanyId) -> Vec<String> {
    find_violations(db, company, EVENTS_CLAUSE, &PROPERTIES).await
}

/// Fails unless the log has each change of plain records once, all of which must have come through the API.
pub async fn check_plain_events(db: &PgPool, company: CompanyId) {
    assert_eq!(find_violations(db, company, PLAIN_EVENTS_CLAUSE, &PLAIN_PROPERTIES).await, Vec::<String>::new());
}

async fn find_violations(
    db: &PgPool,
    company: CompanyId,
    with_clause: &str,
    properties: &[(&str, &str)],
) -> Vec<String> {
    let query = format!("{with_clause} select count(*) from logged");
    let count: i64 = sqlx::query_scalar(AssertSqlSafe(query)).bind(company).fetch_one(db).await.expect("a count");
    assert!(count > 0, "the log has no events");
    let mut violations = Vec::new();
    for (property, query) in properties {
        let found: Vec<(Option<i64>, Option<i64>, Option<i64>)> =
            sqlx::query_as(AssertSqlSafe(format!("{with_clause} {query} limit 5")))
                .bind(company)
                .fetch_all(db)
                .await
                .unwrap_or_else(|error| panic!("{property}: {error}"));
        if !found.is_empty() {
            violations.push(format!("{property}: violated by {found:?}, of {count} events"));
        }
    }
    violations
}
