//! A database that has lost commits, like one that failed over to a standby that was behind.

use super::*;

/// A process that has committed some changes of a company.
async fn start_and_commit() -> (TestCluster, Node, Process, Talk, Api) {
    let (cluster, node) = (TestCluster::new().await, Node::new("one"));
    let process = cluster.serve(&node);
    cluster.wait_until_owned(&node, 1024..=1024).await;
    let addresses = Addresses::default();
    addresses.lock().push(process.address);
    let mut talk = Talk::begin(&cluster, &addresses, 0).await;
    talk.send(&addresses).await;
    let api = Api::new(process.address, &talk.company.key);
    (cluster, node, process, talk, api)
}

const LOSE_COMMIT: &str = "update journal_watermark set seq = seq - 1 where journal like 'life %' and seq > 0";
const LOST_MESSAGE: &str = "the database has lost committed changes";

#[actix_web::test]
async fn a_process_that_is_idle_ends_once_its_commits_are_lost() {
    let (cluster, _node, mut process, _talk, _api) = start_and_commit().await;
    let lost = sqlx::query(LOSE_COMMIT).execute(&cluster.database.db).await.expect("commits are lost");
    assert_eq!(lost.rows_affected(), 1);
    assert_eq!(process.wait().code(), Some(75));
    assert!(process.log().contains(LOST_MESSAGE), "{}", process.log());
    cluster.database.drop().await;
}

#[actix_web::test]
async fn no_change_is_acknowledged_after_others_were_lost() {
    let (cluster, _node, mut process, talk, api) = start_and_commit().await;
    let db = &cluster.database.db;
    let mut uncommitted_loss = db.begin().await.expect("a transaction");
    let lost = sqlx::query(LOSE_COMMIT).execute(&mut *uncommitted_loss).await.expect("commits are to be lost");
    assert_eq!(lost.rows_affected(), 1);
    let path = format!("/tickets/{}/notes", talk.ticket);
    let sent = tokio::spawn(Reply::try_of(api.request(Method::POST, &path).json(&json!({"body": "late"}))));
    eventually("the change is being written", || async {
        let waiting = "select count(*) from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock' and query like '%journal_watermark%'";
        cluster.count(waiting).await == 1
    })
    .await;
    // The next heartbeat would find the loss as well, so it is held back.
    let mut heartbeat_lock = db.begin().await.expect("a transaction");
    sqlx::query("select from beats for update")
        .execute(&mut *heartbeat_lock)
        .await
        .expect("no heartbeat comes through");
    uncommitted_loss.commit().await.expect("commits are lost");
    assert_eq!(process.wait().code(), Some(75));
    let log = process.log();
    assert!(log.contains(&format!("the persister cannot continue: {LOST_MESSAGE}")), "{log}");
    assert!(sent.await.expect("the request ends").is_none(), "the lost change was acknowledged");
    heartbeat_lock.rollback().await.expect("released");
    assert_eq!(cluster.count("select count(*) from messages where body = 'late'").await, 0);
    cluster.database.drop().await;
}
