//! Conversations whose retention has passed are removed completely, even if the process is killed meanwhile.

use std::time::{Duration, Instant};

use hotline_persistence::PgPool;
use hotline_persistence::tables::{reports, retentions};
use serde_json::json;

use crate::process::{Process, database, with_database};
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, eventually};

/// How many days ago the last of the conversations of [`create_conversations`] was closed.
pub const OLD_DAYS: i64 = 40;

/// Conversations of the runs that are killed.
const CONVERSATIONS: i64 = 1_500;

/// Kills at random moments.
const KILLS: usize = 4;

const FIRST_ID: i64 = 10_000_000;

/// Inserts a closed conversation for each of `number` contacts, with four messages and two events. Every statement
/// gets the same parameters, so its condition also names those that it does not need.
pub async fn create_conversations(db: &PgPool, company: &Company, number: i64) {
    for statement in [
        "insert into contacts (company_id, name, number)
         select $1, 'Some ' || n, (5500000000 + n)::text from generate_series(1, $4) n where $2 + $3 + $5 > 0",
        "insert into tickets (company_id, id, channel_id, contact_id, status, creation_source, unread_count, reopen_count,
             opened_at, closed_at, created_at, updated_at)
         select $1, $3 + k, $2, id, 'closed', 'api', 0, 0, at, at, at, at
         from (select id, row_number() over (order by id) as k from contacts where company_id = $1) c,
             lateral (select now() - ($5 + k % 7) * interval '1 day' as at) x where $4 > 0",
        "insert into messages (company_id, id, ticket_id, contact_id, channel_id, direction, type, body, status, source,
             created_at)
         select company_id, id * 4 + n, id, contact_id, channel_id, case n when 0 then 'inbound' else 'outbound' end, 'text',
             'Some text', case n when 0 then 'received' else 'sent' end, 'api', created_at
         from tickets, generate_series(0, 3) n where company_id = $1 and id > $3 and $2 + $4 + $5 > 0",
        "insert into ticket_events (company_id, id, ticket_id, type, source, created_at)
         select company_id, id * 2 + n, id, case n when 0 then 'opened' else 'closed' end, 'api', created_at
         from tickets, generate_series(0, 1) n where company_id = $1 and id > $3 and $2 + $4 + $5 > 0",
    ] {
        sqlx::query(statement)
            .bind(company.id)
            .bind(company.phone)
            .bind(FIRST_ID)
            .bind(number)
            .bind(OLD_DAYS)
            .execute(db)
            .await
            .expect(statement);
    }
    sqlx::query("select hotline_fill_zones($1)").bind(company.id).execute(db).await.expect("zones");
}

/// How many of the conversations are removed. Fails if one is left in part.
pub async fn removed_count(db: &PgPool) -> i64 {
    let (all, whole, removed): (i64, i64, i64) = sqlx::query_as(
        "select count(*), count(*) filter (where tickets = 1 and messages = 4 and events = 2),
             count(*) filter (where tickets = 0 and messages = 0 and events = 0)
         from (select row_number() over (order by id) + $1 as id from contacts where number like '55000%') c,
             lateral (select (select count(*) from tickets t where t.id = c.id) as tickets,
                 (select count(*) from messages m where m.ticket_id = c.id) as messages,
                 (select count(*) from ticket_events e where e.ticket_id = c.id) as events) x",
    )
    .bind(FIRST_ID)
    .fetch_one(db)
    .await
    .expect("a count");
    assert_eq!(whole + removed, all, "{} conversations are removed in part", all - whole - removed);
    removed
}

#[actix_web::test]
async fn a_killed_removal_leaves_no_conversation_in_part_and_continues_after_the_start() {
    let folder = prepared_folder();
    let mut process = Process::serve(folder.path());
    let db = database(folder.path()).await;
    let company = Company::create(&db, "Acme").await;
    create_conversations(&db, &company, CONVERSATIONS).await;
    let mut connection = db.acquire().await.expect("connection");
    reports::rebuild(&mut connection, company.id).await.expect("a rebuild");
    drop(connection);
    let set_days = async |days: Option<i32>| retentions::set(&db, company.id, days).await.expect("a retention").removed;
    let count_removed = async || removed_count(&db).await;
    process.terminate();
    assert!(process.wait().success());

    // Right before a step is committed, and right after.
    let mut before = 0;
    for point in ["retention_removed", "retention_committed"] {
        let mut dying = Process::serve_with_failpoint(folder.path(), &[], point);
        set_days(Some(30)).await;
        assert!(!dying.wait().success(), "the service did not die at {point}");
        set_days(None).await;
        let now = count_removed().await;
        assert_eq!(now > before, point == "retention_committed", "{point}: {now} of {before} before");
        before = now;
    }
    // Kills at random moments, while the service is used. Answered messages of a young conversation stay.
    let mut sent = 0;
    for round in 0..KILLS {
        set_days(Some(30)).await;
        let process = Process::serve(folder.path());
        let api = Api::new(process.address, &company.key);
        let time_until_kill = Duration::from_millis(rand::random_range(50..1_500));
        let began = Instant::now();
        while began.elapsed() < time_until_kill {
            let body = json!({"channelId": company.phone, "number": "5511900000001", "type": "text", "body": "hello"});
            api.post_while_busy("/messages", &body).await.data(202);
            sent += 1;
        }
        process.kill();
        set_days(None).await;
        let now = count_removed().await;
        println!("kill {round} after {time_until_kill:?}: {now} removed, {sent} sent");
        assert!(now >= before, "removed conversations are back");
        before = now;
    }
    set_days(Some(30)).await;
    let mut process = Process::serve(folder.path());
    // On a slow machine the steps are small and the pauses long, so only a removal without progress fails.
    let mut removed = count_removed().await;
    while removed < CONVERSATIONS {
        eventually("further conversations are removed", || async { count_removed().await > removed }).await;
        removed = count_removed().await;
    }
    assert_eq!(removed, CONVERSATIONS);
    assert_eq!(set_days(None).await, CONVERSATIONS, "a removed conversation was not counted once");
    process.terminate();
    assert!(process.wait().success(), "{}", process.log());
    with_database(folder.path(), async |db| {
        let stored: i64 = sqlx::query_scalar("select count(*) from messages").fetch_one(db).await.expect("count");
        assert_eq!(stored, sent, "messages sent meanwhile are missing");
        let rejected: i64 =
            sqlx::query_scalar("select count(*) from rejected_changes").fetch_one(db).await.expect("count");
        assert_eq!(rejected, 0);
        let mut connection = db.acquire().await.expect("connection");
        let difference = reports::rebuild(&mut connection, company.id).await.expect("a rebuild");
        assert!(difference.is_none(), "{difference:?}");
    })
    .await;
}
