//! The end of a member that serves no company, and through which visitors' sockets reach their company.

use crate::balancer::Rule;
use crate::load::{random_pause, rounds};
use crate::rig::Rig;
use crate::summary::Row;
use crate::visitors::{ClosedSocket, Visitors};

const CHANGES_MIN: u64 = 15;
const VISITORS: usize = 30;

/// The codes after which a widget reconnects: the company moves, the service stops, the connection broke
/// (`docs/webchat.md`).
const RECONNECT_CODES: [Option<u16>; 3] = [Some(1012), Some(1001), None];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a run of a cluster: make cluster"]
async fn visitors_reconnect_to_another_member_when_their_edge_ends() {
    let row = Row::begin(
        17,
        "of three members two serve no company (they were drained), and visitors' sockets go through them: one is stopped \
         (SIGTERM), behind a balancer that asks `/health/ready`, the other killed (`kill -9`)",
        "only their sockets are closed; their visitors reconnect to another member, and each visitor is shown every message once and \
         in order; no request fails for the one that is stopped",
    );
    let mut rig = Rig::start(3).await;
    rig.balance(Rule::Any);
    let load = rig.load().await;
    let (mut stops, mut kills, mut messages, mut stopped_members) = (0, 0, 0, Vec::new());
    for round in rounds(1) {
        rig.serve_again(&stopped_members).await;
        let owner = rig.owner().await;
        let [stopped, killed] = [1, 2].map(|next| (owner + next) % rig.members.len());
        for edge in [stopped, killed] {
            rig.drain(edge).await;
        }
        let visitors = Visitors::begin(&rig, owner, VISITORS).await;
        load.progress(CHANGES_MIN).await;
        let address = rig.members[stopped].address();
        rig.members[stopped].stop();
        rig.open_doors();
        visitors.wait_for_closed(VISITORS / 3).await;
        load.progress(CHANGES_MIN).await;
        let closed = visitors.closed();
        let is_of_stop = |closed: &ClosedSocket| closed.at == address && RECONNECT_CODES.contains(&closed.code);
        assert!(closed.iter().all(is_of_stop), "closed by something other than the stop of {address}: {closed:?}");
        stops += closed.len();
        if round == 0 {
            load.check_none_failed();
        }

        random_pause().await;
        let address = rig.members[killed].address();
        rig.members[killed].kill();
        rig.open_doors();
        visitors.wait_for_closed(closed.len() + VISITORS / 3).await;
        load.progress(CHANGES_MIN).await;
        let closed = visitors.closed().split_off(closed.len());
        let is_of_kill = |closed: &ClosedSocket| closed.at == address && closed.code.is_none();
        assert!(closed.iter().all(is_of_kill), "closed by something other than the end of {address}: {closed:?}");
        kills += closed.len();
        messages += visitors.end().await.0;
        stopped_members = vec![stopped, killed];
    }
    let (verdict, reads) = rig.end(load).await;
    row.end(
        &verdict,
        &format!(
            "{messages} messages to {VISITORS} visitors, each shown once; {stops} sockets closed by a stop, {kills} by a kill; \
             {reads} reads"
        ),
    );
}
