//! `load soak`: the mix for a long time, at full speed. Memory must stop growing, and the tables must keep up.

use std::pin::pin;
use std::time::{Duration, Instant};

use hotline_persistence::PgPool;
use serde::Serialize;
use sqlx::FromRow;

use crate::figures::{Round, Verdict};
use crate::generator::Load;
use crate::machine::Machine;
use crate::options::{SharedArgs, SoakArgs};
use crate::outcome::Outcome;
use crate::scenario::{Scenario, Server};
use crate::service::Binary;
use crate::stage::Stage;

/// Interval between reads of the figures.
const READ_INTERVAL: Duration = Duration::from_secs(1);

/// Reads per sample, which keeps the maximum of its lags.
const READS_PER_SAMPLE: usize = 5;

/// Maximum growth of memory per minute over the second half, as a fraction: buffers and the allocator vary by half a
/// percent.
const GROWTH_PER_MINUTE_MAX: f64 = 0.005;

/// Maximum age, in seconds, of a change that is not in the tables.
const LAG_MAX_S: f64 = 1.0;

/// Number of tables that are examined at the end, the largest first.
const TABLES: i64 = 12;

/// The figures at one time.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sample {
    pub at_s: f64,
    pub hotline_bytes: u64,
    pub postgres_bytes: u64,
    /// The maximum since the previous sample.
    pub lag_s_max: f64,
    pub pending_max: f64,
    pub hot_tickets: f64,
    pub hot_sessions: f64,
}

/// The result of `load soak`.
#[derive(Debug, Serialize)]
pub struct SoakResult {
    pub machine: Machine,
    pub seconds: u64,
    pub connections: u32,
    pub tickets: usize,
    pub round: Round,
    pub samples: Vec<Sample>,
    /// The largest tables at the end.
    pub tables: Vec<Table>,
}

/// The content of a table's pages, according to `pgstattuple`.
#[derive(Clone, Debug, Serialize, FromRow)]
pub struct Table {
    pub name: String,
    pub bytes: i64,
    pub index_bytes: i64,
    /// Shares of the table's bytes, in percent: live rows, dead rows and free space.
    pub live_percent: f64,
    pub dead_percent: f64,
    pub free_percent: f64,
    /// Number of runs of autovacuum.
    pub vacuumed: i64,
}

pub async fn run(shared: &SharedArgs, options: &SoakArgs) -> Outcome<SoakResult> {
    let stage = Stage::set_up(&Binary::measured()?, shared.tickets, 0, None).await?;
    let subjects = stage.subjects(&[], &[])?;
    let load = Load {
        scenario: Scenario::Mix,
        server: Server::Hotline,
        address: stage.address(Server::Hotline),
        subjects: &subjects,
        connections: options.connections,
        time: Duration::from_secs(options.seconds),
        rate: None,
    };
    let mut samples = Vec::new();
    let round = {
        let mut measurement = pin!(stage.measure(&load));
        let started_at = Instant::now();
        loop {
            let sample = pin!(sample(&stage, started_at));
            tokio::select! {
                round = &mut measurement => break round?,
                sample = sample => samples.push(sample?),
            }
        }
    };
    let tables = tables(&stage.db).await?;
    let machine = Machine::here(stage.postgres_version().await?)?;
    stage.tear_down().await?;
    Ok(SoakResult {
        machine,
        seconds: options.seconds,
        connections: options.connections,
        tickets: shared.tickets,
        round,
        samples,
        tables,
    })
}

async fn sample(stage: &Stage, started_at: Instant) -> Outcome<Sample> {
    let (mut lag_s_max, mut pending_max) = (0.0_f64, 0.0_f64);
    for _ in 0..READS_PER_SAMPLE {
        tokio::time::sleep(READ_INTERVAL).await;
        lag_s_max = lag_s_max.max(stage.figure("hotline_flush_lag_seconds").await?);
        pending_max = pending_max.max(stage.figure("hotline_flush_pending_entries").await?);
    }
    let memory = stage.watched.memory()?;
    Ok(Sample {
        at_s: started_at.elapsed().as_secs_f64(),
        hotline_bytes: memory.hotline_bytes,
        postgres_bytes: memory.postgres_bytes,
        lag_s_max,
        pending_max,
        hot_tickets: stage.figure("hotline_actors_hot{kind=\"tickets\"}").await?,
        hot_sessions: stage.figure("hotline_actors_hot{kind=\"sessions\"}").await?,
    })
}

async fn tables(db: &PgPool) -> Outcome<Vec<Table>> {
    sqlx::query("create extension if not exists pgstattuple").execute(db).await?;
    let statement = "select s.relname::text as name, a.table_len as bytes, pg_indexes_size(s.relid) as index_bytes,
             a.approx_tuple_percent as live_percent, a.dead_tuple_percent as dead_percent,
             a.approx_free_percent as free_percent, s.autovacuum_count as vacuumed
         from pg_stat_user_tables s cross join lateral pgstattuple_approx(s.relid) a
         where pg_table_size(s.relid) > 0 order by a.table_len desc limit $1";
    Ok(sqlx::query_as(statement).bind(TABLES).fetch_all(db).await?)
}

impl SoakResult {
    pub fn verdicts(&self) -> Vec<Verdict> {
        let second_half = &self.samples[self.samples.len() / 2..];
        let points: Vec<(f64, f64)> =
            second_half.iter().map(|sample| (sample.at_s / 60.0, sample.hotline_bytes as f64)).collect();
        let mean = points.iter().map(|(_, bytes)| bytes).sum::<f64>() / points.len() as f64;
        let growth = slope(&points) / mean;
        let lag_s = self.samples.iter().map(|sample| sample.lag_s_max).fold(0.0, f64::max);
        vec![
            Verdict {
                what: "memory, over the second half".to_owned(),
                aim: format!("grows by at most {:.1} % a minute", GROWTH_PER_MINUTE_MAX * 100.0),
                measured: format!("{:+.2} % a minute of {:.0} MiB", growth * 100.0, mean / 1024.0 / 1024.0),
                is_met: growth <= GROWTH_PER_MINUTE_MAX,
            },
            Verdict {
                what: "the tables".to_owned(),
                aim: format!("at most {LAG_MAX_S} s behind"),
                measured: format!("{lag_s:.2} s"),
                is_met: lag_s <= LAG_MAX_S,
            },
        ]
    }
}

/// The slope of the regression line.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let covariance: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let variance: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    covariance / variance
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_does_not_change_the_slope() {
        let points: Vec<(f64, f64)> =
            (0..100).map(|x| (f64::from(x), 3.0 * f64::from(x) + if x % 2 == 0 { 0.5 } else { -0.5 })).collect();
        assert!((slope(&points) - 3.0).abs() < 0.01);
    }
}
