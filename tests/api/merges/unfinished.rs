//! A merge that is committed, but cannot be read into memory because PostgreSQL refuses a statement.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use futures_util::future::join;
use parking_lot::Mutex;
use serde_json::json;
use tracing::field::Field;
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};

use super::{create_contact, merge};
use crate::support::service::TestOptions;
use crate::support::{Company, OwnApp, TestDatabase, empty_folder, eventually};

/// Counts the log lines that name a change that cannot be finished, and those that report one more attempt.
#[derive(Clone, Default)]
struct LineCounter(Arc<[AtomicUsize; 2]>);

impl LineCounter {
    fn counts(&self) -> [usize; 2] {
        [&self.0[0], &self.0[1]].map(|count| count.load(Ordering::Relaxed))
    }
}

impl<S: tracing::Subscriber> Layer<S> for LineCounter {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut message = String::new();
        event.record(&mut |field: &Field, value: &dyn Debug| {
            if field.name() == "message" {
                message = format!("{value:?}");
            }
        });
        let prefixes = ["could not finish a change", "finishing a change will be retried"];
        if let Some(kind) = prefixes.iter().position(|prefix| message.starts_with(prefix)) {
            self.0[kind].fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[actix_web::test]
async fn a_merge_that_cannot_be_read_into_memory_is_logged_once_and_finished_when_the_cause_is_removed() {
    let lines = LineCounter::default();
    let subscriber = tracing_subscriber::registry().with(lines.clone());
    tracing::subscriber::set_global_default(subscriber).expect("each test has a process of its own");
    let database = TestDatabase::migrated().await;
    let company = Company::create(&database.db, "Acme").await;
    let app = OwnApp::serve(&TestOptions::default(), database, empty_folder(), company).await;
    let into = create_contact(&app.api, json!({"name": "Ana", "number": "5511900000001"})).await;
    let from = create_contact(&app.api, json!({"name": "Ana too"})).await;

    // After the commit, the statement that reads the contacts is refused.
    let (commit_reached, commits) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    fail::cfg_callback("contact_merge_committed", move || {
        let _ = commit_reached.send(());
        // Ends once `release` is dropped.
        let _ = released.lock().recv();
    })
    .expect("failpoint");
    let hide_column = async {
        eventually("the merge is committed", || async { commits.try_recv().is_ok() }).await;
        let hide = "alter table contacts rename column verified to hidden";
        sqlx::query(hide).execute(&app.db).await.expect(hide);
        drop(release);
    };
    let (merged, ()) = join(merge(&app.api, into, from), hide_column).await;
    merged.data(200);
    eventually("it is tried again", || async { lines.counts()[1] >= 2 }).await;
    assert_eq!(lines.counts()[0], 1, "the cause is not logged exactly once");

    let show = "alter table contacts rename column hidden to verified";
    sqlx::query(show).execute(&app.db).await.expect(show);
    let send = json!({"channelId": app.company.phone, "contactId": into, "type": "text", "body": "hello"});
    let is_sent = || async { app.api.post("/messages", send.clone()).await.status == 202 };
    eventually("the contact is written to", is_sent).await;
    app.stop().await;
}
