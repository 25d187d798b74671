//! The one writer and its lock, when PostgreSQL still has the session of a process or a connection that no longer
//! exists.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::future::{join, join_all};
use hotline::service::Service;
use hotline::telemetry::conditions::Condition;
use serde_json::json;

use super::link::Link;
use crate::load::{Conversation, LoadProgress};
use crate::process::{Process, data_folder, serving};
use crate::support::service::TestOptions;
use crate::support::{Api, Company, TestDatabase, check_events, eventually, patience};

const CONVERSATIONS: usize = 4;

/// How long a lost connection may stay unnoticed.
const NOTICED_TIME_MAX: Duration = Duration::from_secs(30);

/// How long after the end of a process the next one may take to serve.
const REPLACED_TIME_MAX: Duration = Duration::from_secs(60);

/// When the network stops carrying the connections, without notice to either side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    Any,
    /// While PostgreSQL waits for the rows of a copy, so the session is active and not idle.
    DuringCopy,
}

#[actix_web::test]
async fn a_writer_whose_connections_are_forgotten_is_back_in_30_s_and_nothing_is_lost() {
    forget_connections_under_load(Moment::Any).await;
}

#[actix_web::test]
async fn a_writer_whose_connection_is_forgotten_within_a_copy_is_back_in_30_s_and_nothing_is_lost() {
    forget_connections_under_load(Moment::DuringCopy).await;
}

async fn forget_connections_under_load(moment: Moment) {
    let (folder, database) = (data_folder(), TestDatabase::migrated().await);
    let link = Link::to(&database.options);
    let company = Company::create(&database.db, "Acme").await;
    let service = Service::start(TestOptions::default().settings(&folder, link.options())).await.expect("a start");
    let api = Api::new(service.address, &company.key);
    let mut conversations = Vec::new();
    for number in 0..CONVERSATIONS {
        conversations.push(Conversation::begin(&api, &company, &format!("visitor-{number}")).await);
    }

    let progress = Arc::new(LoadProgress::default());
    let talk = conversations.iter_mut().map(|conversation| conversation.run(&api, &company, progress.clone()));
    let log = service.app.engine.store().log.clone();
    let forgetting = async {
        eventually("the conversations run", || async {
            progress.answered.load(Ordering::Acquire) > CONVERSATIONS * 10
        })
        .await;
        match moment {
            Moment::Any => link.forget(),
            Moment::DuringCopy => link.forget_once_sent("copy messages"),
        }
        eventually("the connections are forgotten", || async { link.has_forgotten() }).await;
        progress.is_slow.store(true, Ordering::Release);
        let (forgotten_at, appended) = (Instant::now(), log.appended());
        let mut was_reported = false;
        let mut is_back = || {
            was_reported |= service.app.metrics.conditions.holds(Condition::Database);
            log.flushed() > appended
        };
        eventually("the writer is back", || std::future::ready(is_back())).await;
        let took = forgotten_at.elapsed();
        // At any other moment the writer may be back before the outage is reported.
        assert!(was_reported || moment == Moment::Any, "no `database does not respond` in {took:?}");
        eventually("lists are served again", || async { api.get("/tickets").await.status == 200 }).await;
        progress.must_end.store(true, Ordering::Release);
        took
    };
    let (took, _) = join(forgetting, join_all(talk)).await;
    assert!(took < patience(NOTICED_TIME_MAX), "the writer was away for {took:?}");

    for conversation in &conversations {
        assert!(conversation.unknown.is_empty(), "not answered: {:?}", conversation.unknown);
        conversation.check(&api).await;
    }
    service.stop().await.expect("a clean stop");
    assert_eq!(log.flushed(), log.appended());
    check_events(&database.db, company.id).await;
    database.drop().await;
}

#[actix_web::test]
async fn a_start_ends_the_session_of_its_killed_predecessor_that_postgresql_still_has() {
    let (folder, database) = (data_folder(), TestDatabase::migrated().await);
    let link = Link::to(&database.options);
    let company = Company::create(&database.db, "Acme").await;
    let url = link.url();
    let serve = || {
        let mut serve = serving(folder.path());
        serve.args(["--database-url", &url]);
        serve
    };
    let first = Process::start(folder.path(), &mut serve()).expect("the first start");
    let api = Api::new(first.address, &company.key);
    let send = json!({"channelId": company.phone, "number": "5511900000001", "type": "text", "body": "hello"});
    let job = api.post("/messages", send).await.data(202)["jobId"].as_str().expect("a job").to_owned();
    link.forget();
    first.kill();

    let killed_at = Instant::now();
    let second =
        Process::start(folder.path(), &mut serve()).unwrap_or_else(|log| panic!("hotline does not start: {log}"));
    let took = killed_at.elapsed();
    assert!(took < patience(REPLACED_TIME_MAX), "the next start took {took:?}");
    let ended = "ended a session that wrote for this data folder and lost its connection";
    assert_eq!(second.log().matches(ended).count(), 1, "{}", second.log());
    let api = Api::new(second.address, &company.key);
    eventually("the message is shown", || async { api.get(&format!("/messages/jobs/{job}")).await.status == 200 })
        .await;
    second.kill();
    database.drop().await;
}
