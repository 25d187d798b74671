//! What a killed process left in its journal is replayed, even if PostgreSQL refuses some of it.

use std::path::Path;

use hotline_persistence::tables::contacts::{self, ContactByNumber};
use hotline_persistence::tables::reports;
use hotline_persistence::tables::source::Source;
use hotline_persistence::{ContactId, PgPool, change, journal};

use super::cases::{Case, Owner, cases, check, neighbour};
use crate::process::{Process, serving, with_database};
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, check_events};

async fn row_count(db: &PgPool, table: &str) -> i64 {
    let count = sqlx::AssertSqlSafe(format!("select count(*) from {table}"));
    sqlx::query_scalar(count).fetch_one(db).await.expect("a count")
}

/// Writes a journal like that of a process killed before its persister has begun. Returns its id and last entry.
fn write_journal(folder: &Path, cases: &[Case], neighbour_owner: &Owner) -> (String, journal::Seq) {
    let options = journal::Options { segment_bytes: 1 << 20, ..journal::Options::default() };
    let recovered = journal::open(&folder.join("journal"), options).expect("a journal");
    let id = recovered.id().to_owned();
    let journal = recovered.start(0, |_: &mut Vec<(journal::Seq, ())>| {}, |_| {}).expect("begun");
    let append = |changes: &[change::Change]| {
        let bytes = change::encode(changes).expect("an entry");
        journal.reserve().expect("a place").append(&bytes, ()).expect("appended")
    };
    let mut last = 0;
    for (number, case) in (0_i64..).zip(cases) {
        append(&case.changes);
        last = append(&[neighbour(neighbour_owner, number)]);
    }
    journal.close().expect("closed");
    (id, last)
}

#[actix_web::test]
async fn a_start_replays_past_whatever_is_refused_in_any_column() {
    replays(false).await;
}

/// Messages are written before the other changes of their entries, over a connection of their own. The next start knows
/// which of them were refused.
#[actix_web::test]
async fn a_replay_that_dies_when_its_messages_are_written_continues_after_them() {
    replays(true).await;
}

async fn replays(dies: bool) {
    let folder = prepared_folder();
    let (owner, neighbour_owner) = with_database(folder.path(), async |db| {
        let company = Company::create(db, "Acme").await;
        let other = Company::create(db, "Other").await;
        let new = ContactByNumber { number: "5511900000001", name: None, country: None };
        let contact = contacts::find_or_create_by_number(db, company.id, new, Source::Api).await.expect("contact");
        (Owner { company, contact: contact.id }, Owner { company: other, contact: ContactId::new(1) })
    })
    .await;
    let cases = cases(&owner);
    let (id, last) = write_journal(folder.path(), &cases, &neighbour_owner);
    with_database(folder.path(), async |db| {
        sqlx::query("insert into journal_watermark (journal, seq, epoch) values ($1, 0, 0)")
            .bind(&id)
            .execute(db)
            .await
            .expect("the journal is known");
    })
    .await;
    if dies {
        // The second start finds messages written already, and dies at the same point.
        for _ in 0..2 {
            let failing = &mut serving(folder.path());
            let died = Process::start(folder.path(), failing.env("FAILPOINTS", "events_appended=return"));
            assert!(died.is_err(), "it has died before it served");
        }
        with_database(folder.path(), async |db| {
            let [messages, counted] = [row_count(db, "messages").await, row_count(db, "report_messages").await];
            assert!(messages > 0 && counted == 0, "{messages} messages, {counted} figures");
            let mut connection = db.acquire().await.expect("a connection");
            let rebuilt = reports::rebuild(&mut connection, neighbour_owner.company.id).await;
            assert!(rebuilt.is_err(), "they would be counted once more by the next start: {rebuilt:?}");
        })
        .await;
    }
    let served = Process::serve(folder.path());
    assert_eq!(served.replayed(), last);
    let api = Api::new(served.address, &neighbour_owner.company.key);
    for path in ["/tickets", "/messages", "/contacts"] {
        api.get(path).await.data(200);
    }
    served.kill();
    // The watermark is at `last` or later: of the start's own changes after it, some may have been lost in the kill.
    with_database(folder.path(), async |db| {
        check(db, &cases, last).await;
        let watermarks: i64 = sqlx::query_scalar("select count(*) from journal_watermark where journal like $1 || '%'")
            .bind(&id)
            .fetch_one(db)
            .await
            .expect("watermarks");
        assert_eq!(watermarks, 1, "the replay has left the watermark of messages");
        check_events(db, neighbour_owner.company.id).await;
        for owner in [&owner, &neighbour_owner] {
            let counted: (i64, i64) = sqlx::query_as(
                "select (select sum(outbound)::bigint from report_messages where company_id = $1 and dimension = 'company' and grain = 'day'),
                     (select count(*) from messages where company_id = $1 and direction = 'outbound')",
            )
            .bind(owner.company.id)
            .fetch_one(db)
            .await
            .expect("figures");
            assert_eq!(counted.0, counted.1, "what was written was counted, and nothing that was refused");
        }
    })
    .await;
    let again = Process::serve(folder.path());
    assert!(again.replayed() < last, "what was replayed once is not replayed again: {} of {last}", again.replayed());
    again.kill();
}
