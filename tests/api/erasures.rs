//! Erasures of contacts during other work of their company.

use hotline_persistence::tables::erasures;

use crate::support::{OwnApp, eventually};

/// The id of the company's last event: a search of so many events takes much longer than the drop of a company waits
/// for its work.
const LAST_EVENT: i64 = 10_000_000_000;

/// A company is dropped when it moves to another process. Its requests wait meanwhile.
#[actix_web::test]
async fn a_company_is_dropped_from_memory_in_the_middle_of_an_erasure() {
    let app = OwnApp::start().await;
    let (db, company) = (&app.db, app.company.id);
    let contact = app.contact("5511900000001").await;
    sqlx::query(
        "insert into event_counters (company_id, last_id) values ($1, $2)
         on conflict (company_id) do update set last_id = excluded.last_id",
    )
    .bind(company)
    .bind(LAST_EVENT)
    .execute(db)
    .await
    .expect("many events");
    erasures::request(db, company, contact).await.expect("it is requested");
    let path = format!("/contacts/{contact}");
    eventually("the contact is deleted", || async { app.api.get(&path).await.status == 404 }).await;
    app.service.forget(company).await.expect("it waits for one statement only");
    let erasure = erasures::find(db, company, contact).await.expect("it is read").expect("it exists");
    assert_eq!(erasure.done_at, None, "the search had ended before");
    app.stop().await;
}
