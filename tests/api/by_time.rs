//! Lists filtered by time, over more rows than one zone (1,024 ids) of their zone map holds: for every span, the list
//! has the rows whose times lie in it, in order, page by page.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use sqlx::PgPool;

use crate::steps::ids;
use crate::support::service::TestOptions;
use crate::support::{Company, OwnApp, TestApp};

/// A list, the name of the time it is filtered by, that time's column, and other filters, each as in the API and in
/// SQL.
type Kind<'a> = (&'a str, &'a str, &'a str, &'a [(&'a str, &'a str)]);

const KINDS: usize = 7;

/// Consecutive ids, enough for more than three zones.
const ROWS: i64 = 3_500;

/// Days their times are spread over.
const DAYS: i64 = 60;

/// Lists that are compared: each of the seven kinds six times, with different filters and ends of the span.
const LISTS: usize = 42;

/// Rows of a page, so few that a long list has several pages.
const PER_PAGE: i64 = 500;

const FIRST_ID: i64 = 10_000_000;

fn timestamp(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Inserts tickets and messages with consecutive ids, whose times mostly rise with the ids: some are out of order, or
/// were reopened, closed or changed at any time after.
async fn seed(db: &PgPool, company: &Company) {
    for statement in [
        "insert into contacts (company_id, name, number)
         select $1, 'Some ' || n, (5500000000 + n)::text from generate_series(1, $4) n",
        "insert into tickets (company_id, id, channel_id, contact_id, status, creation_source, unread_count, reopen_count,
             opened_at, closed_at, created_at, updated_at)
         select $1, $3 + n, $2, contact, case when n % 3 = 0 then 'open' else 'closed' end, 'api', 0, 0,
             made + case when n % 50 = 0 then later / 2 else '0' end,
             case when n % 3 > 0 then made + later end, made, made + later
         from generate_series(1, $4) n
         join (select id as contact, row_number() over (order by id) as k from contacts where company_id = $1) c on k = n,
             lateral (select date_trunc('milliseconds', now() - interval '1 hour' - (1 - n::float8 / $4) * $5 * interval '1 day'
                     - case when n % 40 = 0 then random() * 5 else 0 end * interval '1 day') as made,
                 date_trunc('milliseconds', random() ^ 6 * (1 - n::float8 / $4) * $5 * interval '1 day') as later) x",
        "insert into messages (company_id, id, ticket_id, contact_id, channel_id, direction, type, body, status, source,
             created_at, updated_at)
         select company_id, id, id, contact_id, channel_id, case when id % 2 = 0 then 'inbound' else 'outbound' end, 'text',
             'Some text', case when id % 2 = 0 then 'received' when id % 7 = 0 then 'failed' else 'sent' end, 'api',
             created_at, case when id % 5 = 0 then updated_at end
         from tickets where company_id = $1 and $2::bigint + $3 + $4 + $5 > 0",
    ] {
        sqlx::query(statement)
            .bind(company.id)
            .bind(company.phone)
            .bind(FIRST_ID)
            .bind(ROWS)
            .bind(DAYS)
            .execute(db)
            .await
            .expect(statement);
    }
    sqlx::query("select hotline_fill_zones($1)").bind(company.id).execute(db).await.expect("zones");
}

/// The ids of a whole list, in the order of its pages.
async fn list_ids(app: &TestApp, path: &str) -> Vec<i64> {
    let mut found = Vec::new();
    for page in 1.. {
        let reply = app.api.get(&format!("{path}&page={page}")).await;
        found.extend(ids(reply.data(200).as_array().expect("a list")));
        if reply.body["meta"]["hasMore"] == false {
            break;
        }
    }
    found
}

#[actix_web::test]
async fn a_list_filtered_by_time_has_exactly_the_rows_of_the_span() {
    let app = OwnApp::start_with(TestOptions { per_page_max: PER_PAGE, ..TestOptions::default() }).await;
    let db = &app.db;
    seed(db, &app.company).await;
    let zones: i64 = sqlx::query_scalar("select count(*) from zones where company_id = $1 and noun = 'ticket'")
        .bind(app.company.id)
        .fetch_one(db)
        .await
        .expect("zones");
    assert!(zones > 3, "too few zones to test the zone map: {zones}");
    let mut random = StdRng::seed_from_u64(18);
    let mut row_count = 0;
    for round in 0..LISTS {
        let ago = |random: &mut StdRng| Utc::now() - TimeDelta::seconds(random.random_range(0..(DAYS + 5) * 86_400));
        let (one, other) = (ago(&mut random), ago(&mut random));
        let (from, to) = (one.min(other), one.max(other));
        // Both ends, the earlier one alone, the later one alone.
        let ends = (round + round / KINDS) % 3;
        let (from, to) = [(Some(from), Some(to)), (Some(from), None), (None, Some(to))][ends];
        let (order, sign) = if random.random_bool(0.5) { ("asc", 1) } else { ("desc", -1) };
        let (phone, webchat) = (app.company.phone, app.company.webchat);
        let (phone_filter, webchat_filter) = (format!("&channelId={phone}"), format!("&channelId={webchat}"));
        let (is_on_phone, is_on_webchat) = (format!("channel_id = {phone}"), format!("channel_id = {webchat}"));
        let kinds: [Kind<'_>; KINDS] = [
            ("tickets", "created", "created_at", &[("", "true"), ("&status=closed", "status = 'closed'")]),
            ("tickets", "opened", "opened_at", &[("", "true"), ("&unassigned=true", "true")]),
            ("tickets", "closed", "closed_at", &[("", "true"), ("&status=open", "status = 'open'")]),
            ("tickets", "updated", "updated_at", &[("", "true"), ("&status=closed", "status = 'closed'")]),
            ("messages", "created", "created_at", &[("", "true"), ("&status=failed", "status = 'failed'")]),
            ("messages", "updated", "coalesce(updated_at, created_at)", &[("", "true")]),
            (
                "messages",
                "created",
                "created_at",
                &[
                    ("&direction=inbound", "direction = 'inbound'"),
                    (&phone_filter, &is_on_phone),
                    (&webchat_filter, &is_on_webchat),
                ],
            ),
        ];
        let (table, name, column, filters) = kinds[round % KINDS];
        let (filter, condition) = filters[round / KINDS % filters.len()];
        let mut path = format!("/{table}?perPage={PER_PAGE}&order={order}{filter}");
        for (end, at) in [("From", from), ("To", to)] {
            if let Some(at) = at {
                path += &format!("&{name}{end}={}", timestamp(at));
            }
        }
        let statement = format!(
            "select id from {table} where company_id = $1 and {condition}
                and ($2::timestamptz is null or {column} >= date_trunc('milliseconds', $2))
                and ($3::timestamptz is null or {column} <= date_trunc('milliseconds', $3)) order by id * {sign}"
        );
        let expected: Vec<i64> = sqlx::query_scalar(sqlx::AssertSqlSafe(statement))
            .bind(app.company.id)
            .bind(from)
            .bind(to)
            .fetch_all(db)
            .await
            .expect("ids");
        assert_eq!(list_ids(&app, &path).await, expected, "{path}");
        row_count += expected.len();
    }
    assert!(row_count > ROWS as usize, "the lists had too few rows: {row_count}");
    app.stop().await;
}

/// Zones cover the rows that the service itself writes, including old tickets that change.
#[actix_web::test]
async fn changed_rows_are_found_by_the_time_of_their_change() {
    let app = OwnApp::start().await;
    seed(&app.db, &app.company).await;
    let begun = Utc::now() - TimeDelta::seconds(1);
    let old = FIRST_ID + 4;
    app.api.post(&format!("/tickets/{old}/reopen"), json!({})).await.data(200);
    let new =
        app.api.post("/contacts", json!({"name": "New", "number": "5511977776666"})).await.data(201)["id"].clone();
    let body = json!({"channelId": app.company.phone, "contactId": new});
    let new = app.api.post("/tickets", body).await.data(201)["id"].as_i64().expect("id");
    let since = timestamp(begun);
    let mut both = vec![old, new];
    both.sort_unstable();
    assert_eq!(list_ids(&app, &format!("/tickets?updatedFrom={since}")).await, both);
    assert_eq!(list_ids(&app, &format!("/tickets?openedFrom={since}")).await, both);
    assert_eq!(list_ids(&app, &format!("/tickets?createdFrom={since}")).await, [new]);

    let body = json!({"wrapupTypeId": app.company.solved});
    app.api.post(&format!("/tickets/{old}/close"), body).await.data(200);
    assert_eq!(list_ids(&app, &format!("/tickets?closedFrom={since}")).await, [old]);
    let noted = app.api.post(&format!("/tickets/{new}/notes"), json!({"body": "Noted"})).await.data(201)["id"].as_i64();
    assert_eq!(list_ids(&app, &format!("/messages?createdFrom={since}")).await, [noted.expect("id")]);

    // A visitor's conversation has a channel, a queue, a user and message types that the seeded rows lack.
    let body = json!({"channelId": app.company.webchat, "visitor": {"name": "Visitor"}});
    let session = app.api.post("/webchat/sessions", body).await.data(201).clone();
    let path = format!("/webchat/sessions/{}/messages", session["id"].as_str().expect("id"));
    let ticket = app.api.post(&path, json!({"body": "Hello"})).await.data(201)["ticketId"].clone();
    let body = json!({"ticketId": ticket, "type": "text", "body": "Good morning"});
    app.api.post("/messages", body).await.data(202);
    let body = json!({"queueId": app.company.support, "userId": app.company.ana});
    app.api.post(&format!("/tickets/{ticket}/transfer"), body).await.data(200);
    for (query, count) in [
        (format!("queueId={}", app.company.support), 1),
        (format!("userId={}", app.company.ana), 1),
        (format!("channelId={}", app.company.webchat), 1),
        ("unassigned=false".to_owned(), 1),
    ] {
        assert_eq!(list_ids(&app, &format!("/tickets?{query}")).await.len(), count, "{query}");
    }
    for query in ["type=note", "direction=internal", "status=sent&createdFrom=2100-01-01T00:00:00Z"] {
        let count = usize::from(!query.contains("2100"));
        assert_eq!(list_ids(&app, &format!("/messages?{query}")).await.len(), count, "{query}");
    }
    assert_zones_cover_rows(&app.db).await;
    app.stop().await;
}

/// Asserts that the zones which the service wrote cover the values of their rows.
async fn assert_zones_cover_rows(db: &PgPool) {
    let mut transaction = db.begin().await.expect("a transaction");
    for statement in [
        // With this lock, a row that is written with its zone is seen by all of these statements, or by none.
        "lock table zones in exclusive mode",
        "create temporary table noted on commit drop as select * from zones",
        "delete from zones",
        "select hotline_fill_zones()",
    ] {
        sqlx::query(statement).execute(&mut *transaction).await.expect(statement);
    }
    let (zone_count, missed): (i64, i64) = sqlx::query_as(
        "select count(*), count(*) filter (where n.zone is null or n.created_from > z.created_from
            or n.created_until < z.created_until or n.opened_until < z.opened_until or n.closed_until < z.closed_until
            or n.updated_until < z.updated_until or n.marks & z.marks <> z.marks or n.channels & z.channels <> z.channels
            or n.queues & z.queues <> z.queues)
         from zones z left join noted n using (company_id, noun, zone)",
    )
    .fetch_one(&mut *transaction)
    .await
    .expect("zones");
    assert!(zone_count > 6, "too few zones to test the zone map: {zone_count}");
    assert_eq!(missed, 0, "zones of {zone_count} that do not cover their rows");
}
