//! `hotline cluster`: the processes on one database, and the slots they serve.

use clap::Subcommand;
use hotline_persistence::PgPool;
use hotline_persistence::cluster::lives::{self, SPEAKS};
use hotline_persistence::cluster::{LEASE_TIME, LifeId, LifeRow, SLOTS, SealRow, SlotRow};
use serde::Serialize;

use super::database::with_database;
use super::{Failure, GlobalArgs};

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
    /// Check the health of the cluster; exits with status 1 if a check fails
    Check,
}

/// The output of a process.
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
    /// Since it was sent.
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

/// The state according to the tables.
struct Cluster {
    lives: Vec<LifeRow>,
    slots: Vec<SlotRow>,
    seals: Vec<SealRow>,
}

impl Cluster {
    async fn read(db: &PgPool) -> Result<Self, Failure> {
        Ok(Self { lives: lives::all(db).await?, slots: lives::slots(db).await?, seals: lives::seals(db).await? })
    }

    fn process_rows(&self) -> Vec<ProcessRow> {
        let count = |is: &dyn Fn(&SlotRow) -> bool| self.slots.iter().filter(|row| is(row)).count();
        let row_of = |life: &LifeRow| {
            let has = |of: Option<LifeId>| of == Some(life.life);
            ProcessRow {
                node: life.node.clone(),
                life: life.life.get(),
                address: life.address.clone(),
                slots: count(&|row| has(row.life)),
                slots_incoming: count(&|row| has(row.next)),
                slots_outgoing: count(&|row| has(row.life) && row.next.is_some()),
                cores: life.cores,
                last_heartbeat_ms: life.beat_age_ms,
                draining: life.draining,
            }
        };
        self.lives.iter().map(row_of).collect()
    }

    fn checks(&self) -> Vec<Check> {
        let is_there = |life: LifeId| self.lives.iter().any(|known| known.life == life);
        let unserved = self.slots.iter().filter(|row| !row.life.is_some_and(is_there)).count();
        let lease_ms = i64::try_from(LEASE_TIME.as_millis()).unwrap_or(i64::MAX);
        let silent: Vec<&str> =
            self.lives.iter().filter(|life| life.beat_age_ms > lease_ms).map(|life| life.node.as_str()).collect();
        let pending = self.seals.iter().filter(|seal| !seal.done).count();
        let candidates = self.lives.iter().filter(|life| !life.draining).count();
        let foreign: Vec<&str> =
            self.lives.iter().filter(|life| life.speaks != SPEAKS).map(|life| life.node.as_str()).collect();
        let names = |names: &[&str]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        vec![
            Check {
                name: "slots",
                ok: unserved == 0 && self.slots.len() == usize::from(SLOTS),
                detail: format!("{unserved} of {} are not served", self.slots.len()),
            },
            Check {
                name: "heartbeats",
                ok: silent.is_empty(),
                detail: format!("older than {lease_ms} ms: {}", names(&silent)),
            },
            Check {
                name: "takeovers",
                ok: pending == 0,
                detail: format!("{pending} ended processes have slots that are not taken over"),
            },
            Check { name: "capacity", ok: candidates > 0, detail: format!("{candidates} processes accept slots") },
            Check {
                name: "releases",
                ok: foreign.is_empty(),
                detail: format!("incompatible with this release: {}", names(&foreign)),
            },
        ]
    }
}

pub async fn run(command: Command, global: &GlobalArgs) -> Result<(), Failure> {
    match command {
        Command::Status => {
            let cluster = with_database(&global.database, async |db| Cluster::read(db).await).await?;
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
            let drained = with_database(&global.database, async |db| {
                let all = lives::all(db).await?;
                let matching = all.iter().filter(|life| life.node == node || life.life.to_string() == node);
                let matching: Vec<LifeId> = matching.map(|life| life.life).collect();
                match matching.as_slice() {
                    [] => return Err(format!("no such process: {node}; see `hotline cluster status`").into()),
                    [life] if lives::drain(db, *life).await? => {}
                    [_] => return Err(format!("the process {node} has ended").into()),
                    _ => return Err(format!("several processes are named {node}; use the life number").into()),
                }
                let cluster = Cluster::read(db).await?;
                Ok(cluster
                    .process_rows()
                    .into_iter()
                    .find(|row| Some(row.life) == matching.first().map(|life| life.get())))
            })
            .await?;
            match drained {
                Some(row) => global.output.one(row),
                None => Err(format!("the process {node} has ended").into()),
            }
        }
        Command::Check => {
            let checks = with_database(&global.database, async |db| Ok(Cluster::read(db).await?.checks())).await?;
            let failed: Vec<&str> = checks.iter().filter(|check| !check.ok).map(|check| check.name).collect();
            let failed = failed.join(", ");
            global.output.many("checks", &["name", "ok", "detail"], checks)?;
            if failed.is_empty() { Ok(()) } else { Err(format!("failed checks: {failed}").into()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use hotline_persistence::cluster::Slot;

    use super::*;

    #[test]
    fn each_thing_that_is_wrong_is_found() {
        let at = DateTime::UNIX_EPOCH;
        let life = |number: i64, beat_age_ms: i64, draining: bool, speaks: i32| LifeRow {
            life: LifeId::new(number),
            node: format!("n{number}"),
            address: "n:1".to_owned(),
            speaks,
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
            let checks = Cluster { lives, slots, seals }.checks();
            checks.iter().filter(|check| !check.ok).map(|check| check.name).collect()
        };
        let healthy = life(1, 400, false, SPEAKS);
        assert!(failed(vec![healthy.clone()], slots(Some(1)), vec![]).is_empty());
        assert_eq!(failed(vec![healthy.clone()], slots(None), vec![]), ["slots"]);
        assert_eq!(failed(vec![healthy.clone()], slots(Some(9)), vec![seal]), ["slots", "takeovers"]);
        let late = life(2, 2_001, false, SPEAKS + 1);
        assert_eq!(failed(vec![healthy, late], slots(Some(1)), vec![]), ["heartbeats", "releases"]);
        assert_eq!(failed(vec![life(1, 0, true, SPEAKS)], slots(Some(1)), vec![]), ["capacity"]);
    }
}
