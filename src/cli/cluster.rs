//! `hotline cluster`: the processes on one database, and the slots they serve.

use clap::Subcommand;
use hotline_persistence::PgPool;
use hotline_persistence::cluster::lives::{self, PROTOCOL_VERSION, Report};
use hotline_persistence::cluster::{LEASE_TIME, LifeId, LifeRow, SLOTS, SealRow, SlotRow};
use serde::Serialize;

use super::database::{read_database, with_database};
use super::{Failure, GlobalArgs, Refusal};
use crate::exit_code::Exit;

#[derive(Subcommand)]
pub enum Command {
    /// Show the processes and how many of the 1024 slots of companies each serves
    Status,
    /// Move the slots of a process to the others; it forwards requests until it is stopped
    #[command(after_help = "A process that is stopped by a signal drains itself.")]
    Drain {
        /// Node or life number of the process, as shown by `hotline cluster status`
        #[arg(value_name = "NODE|LIFE")]
        node: String,
    },
    /// Check the health of the cluster, and which process reaches which; exits with status 1 if a check fails
    Check,
}

/// A process, as the command prints it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProcessRow {
    node: String,
    life: i64,
    address: String,
    slots: usize,
    slots_incoming: usize,
    slots_outgoing: usize,
    cores: i32,
    /// Milliseconds since the last heartbeat.
    last_heartbeat_ms: i64,
    draining: bool,
}

/// The result of a check.
#[derive(Debug, PartialEq, Serialize)]
struct Check {
    name: &'static str,
    ok: bool,
    detail: String,
}

/// What one process reports about another.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReachRow {
    from: String,
    to: String,
    reached: bool,
    /// How long ago it was reported.
    age_ms: Option<i64>,
    reason: Option<String>,
}

/// The state of the cluster, as read from its tables.
struct ClusterState {
    lives: Vec<LifeRow>,
    reports: Vec<(LifeId, Report)>,
    /// How long ago each process reported.
    ages_ms: Vec<(LifeId, i64)>,
    slots: Vec<SlotRow>,
    seals: Vec<SealRow>,
}

impl ClusterState {
    async fn read(db: &PgPool) -> Result<Self, Failure> {
        let (lives, reports): (Vec<_>, Vec<_>) = lives::reports(db).await?.into_iter().unzip();
        let reports = lives.iter().zip(reports).filter_map(|(life, report)| Some((life.life, report?))).collect();
        let ages_ms = lives::report_ages(db).await?;
        Ok(Self { lives, reports, ages_ms, slots: lives::slots(db).await?, seals: lives::seals(db).await? })
    }

    fn process_rows(&self) -> Vec<ProcessRow> {
        let count = |matches: &dyn Fn(&SlotRow) -> bool| self.slots.iter().filter(|slot| matches(slot)).count();
        let process_row = |life: &LifeRow| {
            let id = Some(life.life);
            ProcessRow {
                node: life.node.clone(),
                life: life.life.get(),
                address: life.address.clone(),
                slots: count(&|slot| slot.life == id),
                slots_incoming: count(&|slot| slot.next == id),
                slots_outgoing: count(&|slot| slot.life == id && slot.next.is_some()),
                cores: life.cores,
                last_heartbeat_ms: life.beat_age_ms,
                draining: life.draining,
            }
        };
        self.lives.iter().map(process_row).collect()
    }

    /// What each process reports about the others, except those that have ended.
    fn reach_rows(&self) -> Vec<ReachRow> {
        let node = |id: LifeId| self.lives.iter().find(|life| life.life == id).map(|life| life.node.clone());
        let rows = self.reports.iter().flat_map(|(from, report)| {
            let age_ms = self.ages_ms.iter().find(|(life, _)| life == from).map(|(_, age)| *age);
            report.peers.iter().filter_map(move |peer| {
                let (from, to) = (node(*from)?, node(peer.life)?);
                Some(ReachRow { from, to, reached: peer.reason.is_none(), age_ms, reason: peer.reason.clone() })
            })
        });
        rows.collect()
    }

    /// The checks of what the processes report about each other.
    fn reach_checks(&self) -> Vec<Check> {
        let unreached: Vec<String> =
            self.reach_rows().into_iter().filter(|row| !row.reached).map(|row| row.to).collect();
        let mut names: Vec<&str> = self.lives.iter().map(|life| life.node.as_str()).collect();
        names.sort_unstable();
        let total = names.len();
        names.dedup();
        let mut folders: Vec<&String> = self.reports.iter().filter_map(|(_, report)| report.folder.as_ref()).collect();
        folders.sort_unstable();
        folders.dedup();
        let list = if unreached.is_empty() { "none".to_owned() } else { unreached.join(", ") };
        vec![
            Check {
                name: "peers",
                ok: unreached.is_empty(),
                detail: format!("not reached by another process: {list}"),
            },
            Check {
                name: "names",
                ok: names.len() == total,
                detail: format!("{total} processes have {} different names", names.len()),
            },
            Check {
                name: "files",
                ok: folders.len() < 2,
                detail: format!("{} different folders of message files are in use", folders.len()),
            },
        ]
    }

    fn checks(&self) -> Vec<Check> {
        let is_running = |id: LifeId| self.lives.iter().any(|life| life.life == id);
        let unserved = self.slots.iter().filter(|slot| !slot.life.is_some_and(is_running)).count();
        let lease_ms = i64::try_from(LEASE_TIME.as_millis()).unwrap_or(i64::MAX);
        let nodes = |matches: &dyn Fn(&LifeRow) -> bool| {
            let nodes: Vec<&str> =
                self.lives.iter().filter(|life| matches(life)).map(|life| life.node.as_str()).collect();
            if nodes.is_empty() { "none".to_owned() } else { nodes.join(", ") }
        };
        let is_late = |life: &LifeRow| life.beat_age_ms > lease_ms;
        let is_incompatible = |life: &LifeRow| life.protocol_version != PROTOCOL_VERSION;
        let pending = self.seals.iter().filter(|seal| !seal.done).count();
        let candidates = self.lives.iter().filter(|life| !life.draining).count();
        vec![
            Check {
                name: "slots",
                ok: unserved == 0 && self.slots.len() == usize::from(SLOTS),
                detail: format!("{unserved} of {} are not served", self.slots.len()),
            },
            Check {
                name: "heartbeats",
                ok: !self.lives.iter().any(is_late),
                detail: format!("older than {lease_ms} ms: {}", nodes(&is_late)),
            },
            Check {
                name: "takeovers",
                ok: pending == 0,
                detail: format!("{pending} ended processes have slots that are not taken over"),
            },
            Check { name: "capacity", ok: candidates > 0, detail: format!("{candidates} processes accept slots") },
            Check {
                name: "releases",
                ok: !self.lives.iter().any(is_incompatible),
                detail: format!("incompatible with this release: {}", nodes(&is_incompatible)),
            },
        ]
    }
}

pub async fn run(command: Command, global: &GlobalArgs) -> Result<(), Failure> {
    match command {
        Command::Status => {
            let cluster = read_database(&global.database, async |db| ClusterState::read(db).await).await?;
            let columns = [
                "node",
                "life",
                "address",
                "slots",
                "slotsIncoming",
                "slotsOutgoing",
                "cores",
                "lastHeartbeatMs",
                "draining",
            ];
            global.output.many("processes", &columns, cluster.process_rows())
        }
        Command::Drain { node } => {
            let drained = with_database(&global.database, async |db| drain(db, &node).await).await?;
            global.output.one(drained)
        }
        Command::Check => {
            let cluster = read_database(&global.database, async |db| ClusterState::read(db).await).await?;
            let checks: Vec<Check> = cluster.checks().into_iter().chain(cluster.reach_checks()).collect();
            let failed: Vec<&str> = checks.iter().filter(|check| !check.ok).map(|check| check.name).collect();
            let failed = failed.join(", ");
            let reaches = serde_json::to_value(cluster.reach_rows())?;
            global.output.lists([
                ("checks", &["name", "ok", "detail"][..], serde_json::to_value(checks)?),
                ("reaches", &["from", "to", "reached", "ageMs", "reason"][..], reaches),
            ])?;
            let finding = || Refusal::new(Exit::Finding, format!("failed checks: {failed}"));
            if failed.is_empty() { Ok(()) } else { Err(finding().into()) }
        }
    }
}

/// Drains the process with this node or life number.
async fn drain(db: &PgPool, node: &str) -> Result<ProcessRow, Failure> {
    let lives = lives::all(db).await?;
    let matching = lives.iter().filter(|life| life.node == node || life.life.to_string() == node);
    let matching: Vec<LifeId> = matching.map(|life| life.life).collect();
    let [life] = matching.as_slice() else {
        return Err(match matching.len() {
            0 => format!("no such process: {node}; see `hotline cluster status`"),
            _ => format!("several processes are named {node}; use the life number"),
        }
        .into());
    };
    let ended_message = || format!("the process {node} has ended");
    if !lives::drain(db, *life).await? {
        return Err(ended_message().into());
    }
    let processes = ClusterState::read(db).await?.process_rows();
    Ok(processes.into_iter().find(|row| row.life == life.get()).ok_or_else(ended_message)?)
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use hotline_persistence::cluster::Slot;
    use hotline_persistence::cluster::lives::PeerReport;

    use super::*;

    #[test]
    fn each_check_fails_for_its_own_reason() {
        let at = DateTime::UNIX_EPOCH;
        let life = |number: i64, beat_age_ms: i64, draining: bool, protocol_version: i32| LifeRow {
            life: LifeId::new(number),
            node: format!("n{number}"),
            address: "n:1".to_owned(),
            protocol_version,
            draining,
            began_at: at,
            beat_at: at,
            beat_age_ms,
            cores: 2,
        };
        let slots = |owner: Option<i64>| -> Vec<SlotRow> {
            Slot::all().map(|slot| SlotRow { slot, life: owner.map(LifeId::new), next: None }).collect()
        };
        let seal = SealRow { life: LifeId::new(9), heir: LifeId::new(1), sealed_at: at, done: false };
        let failed = |lives: Vec<LifeRow>, slots: Vec<SlotRow>, seals: Vec<SealRow>| -> Vec<&str> {
            let cluster = ClusterState { lives, slots, seals, reports: Vec::new(), ages_ms: Vec::new() };
            let checks: Vec<Check> = cluster.checks().into_iter().chain(cluster.reach_checks()).collect();
            checks.iter().filter(|check| !check.ok).map(|check| check.name).collect()
        };
        let healthy = life(1, 400, false, PROTOCOL_VERSION);
        assert!(failed(vec![healthy.clone()], slots(Some(1)), vec![]).is_empty());
        assert_eq!(failed(vec![healthy.clone()], slots(None), vec![]), ["slots"]);
        assert_eq!(failed(vec![healthy.clone()], slots(Some(9)), vec![seal]), ["slots", "takeovers"]);
        let late = life(2, 2_001, false, PROTOCOL_VERSION + 1);
        assert_eq!(failed(vec![healthy, late], slots(Some(1)), vec![]), ["heartbeats", "releases"]);
        assert_eq!(failed(vec![life(1, 0, true, PROTOCOL_VERSION)], slots(Some(1)), vec![]), ["capacity"]);
    }

    #[test]
    fn what_processes_report_about_each_other_is_checked() {
        let at = DateTime::UNIX_EPOCH;
        let life = |number: i64, node: &str| LifeRow {
            life: LifeId::new(number),
            node: node.to_owned(),
            address: "n:1".to_owned(),
            protocol_version: PROTOCOL_VERSION,
            draining: false,
            began_at: at,
            beat_at: at,
            beat_age_ms: 0,
            cores: 2,
        };
        let report = |peer_life: i64, reason: Option<&str>, folder: &str| {
            let peer =
                PeerReport { life: LifeId::new(peer_life), node: "x".to_owned(), reason: reason.map(str::to_owned) };
            Report { peers: vec![peer], folder: Some(folder.to_owned()) }
        };
        let cluster = |names: [&str; 2], reports: [Report; 2]| {
            let lives = vec![life(1, names[0]), life(2, names[1])];
            let [one, two] = reports;
            let reports = vec![(LifeId::new(1), one), (LifeId::new(2), two)];
            ClusterState { lives, reports, ages_ms: vec![(LifeId::new(1), 7)], slots: vec![], seals: vec![] }
        };
        let failed = |cluster: &ClusterState| -> Vec<&str> {
            cluster.reach_checks().iter().filter(|check| !check.ok).map(|check| check.name).collect()
        };
        let healthy = cluster(["a", "b"], [report(2, None, "f"), report(1, None, "f")]);
        assert!(failed(&healthy).is_empty());
        let rows = healthy.reach_rows();
        assert_eq!((rows[0].from.as_str(), rows[0].to.as_str(), rows[0].age_ms), ("a", "b", Some(7)));
        assert_eq!((rows.len(), rows[1].age_ms), (2, None));
        let broken = cluster(["a", "a"], [report(2, Some("refused"), "f"), report(1, None, "g")]);
        assert_eq!(failed(&broken), ["peers", "names", "files"]);
        // A report about a process that has ended.
        let ended = cluster(["a", "b"], [report(9, Some("refused"), "f"), report(1, None, "f")]);
        assert!(failed(&ended).is_empty());
    }
}
