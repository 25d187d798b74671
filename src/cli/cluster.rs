//! `hotline cluster`: the processes on one database, and the slots they serve.

use clap::Subcommand;
use hotline_persistence::PgPool;
use hotline_persistence::cluster::lives::{self, SPEAKS};
use hotline_persistence::cluster::{LEASE_TIME, LifeId, LifeRow, SLOTS, SealRow, SlotRow};
use serde::Serialize;

use super::Failure;
use super::database::with_database;
use super::output::OutputArgs;
use crate::config::DatabaseArgs;

#[derive(Subcommand)]
pub enum Command {
    /// Show the processes and how many of the 1024 slots of companies each serves
    Status {
        #[command(flatten)]
        database: DatabaseArgs,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Move the slots of a process to the others; it forwards requests until it is stopped
    #[command(after_help = "A process that is stopped by a signal drains itself.")]
    Drain {
        /// Node or life number of the process, as shown by `hotline cluster status`
        #[arg(value_name = "NODE|LIFE")]
        node: String,
        #[command(flatten)]
        database: DatabaseArgs,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Check the health of the cluster; exits with status 1 if a check fails
    Check {
        #[command(flatten)]
        database: DatabaseArgs,
        #[command(flatten)]
        output: OutputArgs,
    },
}

/// The output of a process.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    node: String,
    life: i64,
    address: String,
    slots: usize,
    coming: usize,
    leaving: usize,
    cores: i32,
    heard_of_ms_ago: i64,
    draining: bool,
}

/// The result of a check.
#[derive(Debug, PartialEq, Serialize)]
struct Looked {
    what: &'static str,
    good: bool,
    found: String,
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

    fn shown(&self) -> Vec<Shown> {
        let count = |is: &dyn Fn(&SlotRow) -> bool| self.slots.iter().filter(|row| is(row)).count();
        let shown = |life: &LifeRow| {
            let has = |of: Option<LifeId>| of == Some(life.life);
            Shown {
                node: life.node.clone(),
                life: life.life.get(),
                address: life.address.clone(),
                slots: count(&|row| has(row.life)),
                coming: count(&|row| has(row.next)),
                leaving: count(&|row| has(row.life) && row.next.is_some()),
                cores: life.cores,
                heard_of_ms_ago: life.beat_age_ms,
                draining: life.draining,
            }
        };
        self.lives.iter().map(shown).collect()
    }

    fn looked(&self) -> Vec<Looked> {
        let is_there = |life: LifeId| self.lives.iter().any(|known| known.life == life);
        let unserved = self.slots.iter().filter(|row| !row.life.is_some_and(is_there)).count();
        let lease_ms = i64::try_from(LEASE_TIME.as_millis()).unwrap_or(i64::MAX);
        let silent: Vec<&str> =
            self.lives.iter().filter(|life| life.beat_age_ms > lease_ms).map(|life| life.node.as_str()).collect();
        let left = self.seals.iter().filter(|seal| !seal.done).count();
        let takers = self.lives.iter().filter(|life| !life.draining).count();
        let foreign: Vec<&str> =
            self.lives.iter().filter(|life| life.speaks != SPEAKS).map(|life| life.node.as_str()).collect();
        let names = |names: &[&str]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        vec![
            Looked {
                what: "slots",
                good: unserved == 0 && self.slots.len() == usize::from(SLOTS),
                found: format!("{unserved} of {} are not served", self.slots.len()),
            },
            Looked {
                what: "heartbeats",
                good: silent.is_empty(),
                found: format!("older than {lease_ms} ms: {}", names(&silent)),
            },
            Looked {
                what: "takeovers",
                good: left == 0,
                found: format!("{left} ended processes have slots that are not taken over"),
            },
            Looked { what: "capacity", good: takers > 0, found: format!("{takers} processes accept slots") },
            Looked {
                what: "releases",
                good: foreign.is_empty(),
                found: format!("incompatible with this release: {}", names(&foreign)),
            },
        ]
    }
}

pub async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Status { database, output } => {
            let cluster = with_database(&database, async |db| Cluster::read(db).await).await?;
            let columns =
                ["node", "life", "address", "slots", "coming", "leaving", "cores", "heardOfMsAgo", "draining"];
            output.many("processes", &columns, cluster.shown())
        }
        Command::Drain { node, database, output } => {
            let drained = with_database(&database, async |db| {
                let all = lives::all(db).await?;
                let named = all.iter().filter(|life| life.node == node || life.life.to_string() == node);
                let named: Vec<LifeId> = named.map(|life| life.life).collect();
                match named.as_slice() {
                    [] => return Err(format!("no such process: {node}; see `hotline cluster status`").into()),
                    [life] if lives::drain(db, *life).await? => {}
                    [_] => return Err(format!("the process {node} has ended").into()),
                    _ => return Err(format!("several processes are named {node}; use the life number").into()),
                }
                let cluster = Cluster::read(db).await?;
                Ok(cluster.shown().into_iter().find(|shown| Some(shown.life) == named.first().map(|life| life.get())))
            })
            .await?;
            match drained {
                Some(shown) => output.one(shown),
                None => Err(format!("the process {node} has ended").into()),
            }
        }
        Command::Check { database, output } => {
            let looked = with_database(&database, async |db| Ok(Cluster::read(db).await?.looked())).await?;
            let wrong: Vec<&str> = looked.iter().filter(|looked| !looked.good).map(|looked| looked.what).collect();
            let wrong = wrong.join(", ");
            output.many("looked", &["what", "good", "found"], looked)?;
            if wrong.is_empty() { Ok(()) } else { Err(format!("failed checks: {wrong}").into()) }
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
        let wrong = |lives: Vec<LifeRow>, slots: Vec<SlotRow>, seals: Vec<SealRow>| -> Vec<&str> {
            let looked = Cluster { lives, slots, seals }.looked();
            looked.iter().filter(|looked| !looked.good).map(|looked| looked.what).collect()
        };
        let good = life(1, 400, false, SPEAKS);
        assert!(wrong(vec![good.clone()], slots(Some(1)), vec![]).is_empty());
        assert_eq!(wrong(vec![good.clone()], slots(None), vec![]), ["slots"]);
        assert_eq!(wrong(vec![good.clone()], slots(Some(9)), vec![seal]), ["slots", "takeovers"]);
        let late = life(2, 2_001, false, SPEAKS + 1);
        assert_eq!(wrong(vec![good, late], slots(Some(1)), vec![]), ["heartbeats", "releases"]);
        assert_eq!(wrong(vec![life(1, 0, true, SPEAKS)], slots(Some(1)), vec![]), ["capacity"]);
    }
}
