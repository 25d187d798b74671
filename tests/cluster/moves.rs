//! A member is drained under load, and visitors with open sockets move with their company.

use crate::load::is_long;
use crate::rig::Rig;
use crate::summary::Row;
use crate::visitors::Visitors;

const CHANGES_MIN: u64 = 15;

/// Visitors with an open socket each; in a long run as many busy ones as can move with a company without a long wait.
const VISITORS: usize = 40;
const VISITORS_LONG: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a run of a cluster: make cluster"]
async fn visitors_miss_nothing_while_their_company_moves() {
    let row = Row::begin(
        9,
        "a member drained under load (`hotline cluster drain`), with visitors' sockets at all edges",
        "no request fails; visitors whose sockets are closed with 1012 reconnect; each visitor is shown every message once and in order",
    );
    let rig = Rig::start(3).await;
    let load = rig.load().await;
    let owner = rig.owner().await;
    let count = if is_long() { VISITORS_LONG } else { VISITORS };
    let visitors = Visitors::begin(&rig, owner, count).await;
    load.progress(CHANGES_MIN).await;
    rig.drain(owner).await;
    visitors.wait_for_closed(count).await;
    load.progress(CHANGES_MIN).await;
    let closed = visitors.closed();
    assert!(
        closed.iter().all(|closed| closed.code == Some(1012)),
        "closed by something other than the move: {closed:?}"
    );
    let (messages, failed_attempts) = visitors.end().await;
    assert_eq!(failed_attempts, 0, "messages to visitors were not accepted at once");
    load.check_none_failed();
    let (verdict, reads) = rig.end(load).await;
    row.end(
        &verdict,
        &format!(
            "{messages} messages to {count} visitors, each shown once; {} sockets closed with 1012; {reads} reads",
            closed.len()
        ),
    );
}
