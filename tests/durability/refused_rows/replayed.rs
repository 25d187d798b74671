//! What a killed process left in its journal is replayed, whatever PostgreSQL says to some of it.

use std::path::Path;

use hotline_persistence::tables::contacts::{self, Numbered};
use hotline_persistence::tables::source::Source;
use hotline_persistence::{ContactId, change, journal};

use super::cases::{Case, Owner, cases, check, neighbour};
use crate::process::{Process, data_folder, with_database};
use crate::support::{Api, Company};

/// Writes a journal as a process leaves it that is killed before its persister has begun; answers its id.
fn leave(folder: &Path, cases: &[Case], beside: &Owner) -> (String, journal::Seq) {
    let recovered = journal::open(&folder.join("journal"), journal::Options::default()).expect("a journal");
    let id = recovered.id().to_owned();
    let written = recovered.start(0, |_: &mut Vec<(journal::Seq, ())>| {}, |_| {}).expect("begun");
    let append = |changes: &[change::Change]| {
        let bytes = change::encode(changes).expect("an entry");
        written.reserve().expect("a place").append(bytes, ()).expect("appended")
    };
    let mut last = 0;
    for (number, case) in (0_i64..).zip(cases) {
        append(&case.changes);
        last = append(&[neighbour(beside, number)]);
    }
    written.close().expect("closed");
    (id, last)
}

#[actix_web::test]
async fn a_start_replays_past_whatever_is_refused_in_any_column() {
    let folder = data_folder();
    let (owner, beside) = with_database(folder.path(), async |db| {
        hotline_persistence::pool::migrate(db).await.expect("migrate");
        let company = Company::create(db, "Acme").await;
        let other = Company::create(db, "Other").await;
        let numbered = Numbered { number: "5511900000001", name: None, country: None };
        let contact = contacts::find_or_create_by_number(db, company.id, numbered, Source::Api).await.expect("contact");
        (Owner { company, contact: contact.id }, Owner { company: other, contact: ContactId::new(1) })
    })
    .await;
    let cases = cases(&owner);
    let (id, last) = leave(folder.path(), &cases, &beside);
    with_database(folder.path(), async |db| {
        sqlx::query("insert into journal_watermark (journal, seq, epoch) values ($1, 0, 0)")
            .bind(&id)
            .execute(db)
            .await
            .expect("the journal is known");
    })
    .await;
    let served = Process::serve(folder.path());
    assert_eq!(served.replayed(), last);
    for owner in [&beside] {
        let api = Api::new(served.address, &owner.company.key);
        for path in ["/tickets", "/messages", "/contacts"] {
            api.get(path).await.data(200);
        }
    }
    served.kill();
    // Up to `last` at least: what the start has written of its own since then may have been lost with it.
    with_database(folder.path(), async |db| check(db, &cases, last).await).await;
    let again = Process::serve(folder.path());
    assert!(again.replayed() < last, "what was replayed once is not replayed again: {} of {last}", again.replayed());
    again.kill();
}
