//! Which of the other processes this one reaches, and what it reports about them: in the log, in the metrics and, for
//! `hotline cluster check`, in its row.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use futures_util::future::join_all;
use hotline_persistence::cluster::lives::{self, PeerReport, Report};
use hotline_persistence::cluster::{LEASE_TIME, LifeId, LifeRow, Peer};
use tokio::time::{MissedTickBehavior, interval};

use super::Member;
use crate::cluster::reach;
use crate::cluster::signer::Signer;
use crate::telemetry::conditions::Condition;

/// How often each process checks all others.
const CHECK_EVERY: Duration = Duration::from_secs(2);

/// Consecutive failed checks after which a process counts as unreachable: it may just have been restarted.
const FAILURES_MIN: u32 = 2;

/// Consecutive checks after which processes of the same name are reported: a killed one is listed until it is fenced.
const SAME_NAME_MIN: u32 = 5;

/// What one check remembers for the next.
#[derive(Default)]
struct CheckCounts {
    /// Consecutive failed checks of each life.
    failures: HashMap<LifeId, u32>,
    /// Consecutive checks in which several processes had this name.
    same_names: BTreeMap<String, u32>,
}

impl Member {
    pub(super) async fn run_reach_checks(&self) {
        let mut clock = interval(CHECK_EVERY);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let signer = Signer::new(self.0.membership.peer_key());
        let mut counts = CheckCounts::default();
        loop {
            clock.tick().await;
            // During an outage of the database the others are unknown; the outage has a condition of its own.
            match lives::reports(&self.0.db).await {
                Ok(all) => self.check_peers(&mut counts, &signer, &all).await,
                Err(error) => tracing::debug!(%error, "the other processes could not be listed; will retry"),
            }
        }
    }

    async fn check_peers(&self, counts: &mut CheckCounts, signer: &Signer, all: &[(LifeRow, Option<Report>)]) {
        let lease_ms = i64::try_from(LEASE_TIME.as_millis()).unwrap_or(i64::MAX);
        let lives: Vec<&LifeRow> =
            all.iter().map(|(life, _)| life).filter(|life| life.beat_age_ms < lease_ms).collect();
        self.report_same_names(counts, &lives);
        // A process that starts or stops is marked as draining: its listener may be closed.
        let others: Vec<&LifeRow> =
            lives.iter().copied().filter(|life| life.life != self.life() && !life.draining).collect();
        let checks = others.iter().map(|life| async move {
            let peer = Peer { life: life.life, node: life.node.clone(), address: life.address.clone() };
            reach::check(&peer, signer).await.err()
        });
        let reasons = join_all(checks).await;
        counts.failures.retain(|life, _| others.iter().any(|other| other.life == *life));
        let mut peers = Vec::with_capacity(others.len());
        for (life, reason) in others.iter().zip(reasons) {
            let failures = counts.failures.entry(life.life).or_default();
            *failures = if reason.is_some() { *failures + 1 } else { 0 };
            let reason = reason.filter(|_| *failures >= FAILURES_MIN);
            match &reason {
                Some(reason) => self.conditions().begin(Condition::Peer, &life.node, reason),
                None if *failures == 0 => self.conditions().end(Condition::Peer, &life.node),
                None => {}
            }
            peers.push(PeerReport { life: life.life, node: life.node.clone(), reason });
        }
        self.conditions().forget(Condition::Peer, |node| others.iter().any(|life| life.node == node));
        self.metrics().set_reachability(peers.iter().map(|peer| (peer.node.clone(), peer.reason.is_none())).collect());
        self.conditions().forget(Condition::NodeName, |node| all.iter().any(|(life, _)| life.node == node));
        self.report_folders(all);
        let report = Report { peers, folder: self.0.deps.media_folder.clone() };
        if let Err(error) = lives::save_report(&self.0.db, self.life(), &report).await {
            tracing::debug!(%error, "the report on other processes could not be saved; will retry");
        }
    }

    /// Reports processes with the same `--cluster-node`.
    fn report_same_names(&self, counts: &mut CheckCounts, lives: &[&LifeRow]) {
        let is_shared = |node: &String| lives.iter().filter(|life| life.node == *node).count() > 1;
        let shared_names: Vec<String> = lives.iter().map(|life| life.node.clone()).filter(is_shared).collect();
        counts.same_names.retain(|node, _| shared_names.contains(node));
        for node in shared_names {
            *counts.same_names.entry(node).or_default() += 1;
        }
        for (node, _) in counts.same_names.iter().filter(|(_, checks)| **checks >= SAME_NAME_MIN) {
            self.conditions().begin(Condition::NodeName, node, "each process needs a --cluster-node of its own");
        }
        for life in lives.iter().filter(|life| !counts.same_names.contains_key(&life.node)) {
            self.conditions().end(Condition::NodeName, &life.node);
        }
    }

    /// Reports processes whose shared folder of message files is not this process's.
    fn report_folders(&self, all: &[(LifeRow, Option<Report>)]) {
        let Some(own) = &self.0.deps.media_folder else { return };
        for (life, report) in all.iter().filter(|(life, _)| life.life != self.life()) {
            match report.as_ref().and_then(|report| report.folder.as_ref()) {
                Some(folder) if folder != own => self.conditions().begin(
                    Condition::SharedFolder,
                    &life.node,
                    "its --media-shared is another folder than that of this process",
                ),
                Some(_) => self.conditions().end(Condition::SharedFolder, &life.node),
                // It has not reported yet, or has no shared folder.
                None => {}
            }
        }
        let is_listed = |node: &str| all.iter().any(|(life, _)| life.node == node);
        self.conditions().forget(Condition::SharedFolder, is_listed);
    }
}
