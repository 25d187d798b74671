//! `load curves`: throughput by connections and by rows, and latency by offered rate, of each server.

use std::time::Duration;

use serde::Serialize;

use crate::disk::SyncTimes;
use crate::figures::Round;
use crate::generator::Load;
use crate::machine::Machine;
use crate::options::{CurvesArgs, GrownArgs, SharedArgs};
use crate::outcome::Outcome;
use crate::scenario::{Scenario, Server};
use crate::service::Binary;
use crate::stage::Stage;

/// Numbers of connections, each with one request at a time.
const CONNECTIONS: [u32; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/// The scenarios measured with these connections.
const SCENARIOS: [Scenario; 2] = [Scenario::Send, Scenario::Read];

/// The offered rates, as fractions of Hotline's maximum throughput.
const RATE_FRACTIONS: [f64; 7] = [0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8];

/// Connections with which a rate is offered.
const PACED_CONNECTIONS: u32 = 128;

/// The scenarios measured on databases of different sizes, and their connections.
pub const BY_ROWS: [Scenario; 2] = [Scenario::Send, Scenario::List100];
const BY_ROWS_CONNECTIONS: u32 = 32;

/// Maximum offered rate, as a fraction of the server's maximum throughput: beyond it only the queue grows.
const OFFERED_RATIO_MAX: f64 = 0.9;

/// One point of a curve.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    pub scenario: Scenario,
    pub server: Server,
    pub connections: u32,
    /// Offered requests per second; `None`: as many as are answered.
    pub offered: Option<f64>,
    /// Messages in the database at the start; `None`: only those of the tickets used.
    pub rows: Option<i64>,
    #[serde(flatten)]
    pub round: Round,
}

/// The result of `load curves`.
#[derive(Clone, Debug, Serialize)]
pub struct CurvesResult {
    pub machine: Machine,
    pub seconds: u64,
    pub tickets: usize,
    pub sync: SyncTimes,
    pub points: Vec<Point>,
}

impl CurvesResult {
    /// A server's maximum throughput.
    pub fn max_per_second(&self, scenario: Scenario, server: Server) -> f64 {
        let matches = |point: &&Point| point.scenario == scenario && point.server == server && point.rows.is_none();
        let points = self.points.iter().filter(matches);
        points.map(|point| point.round.counted.per_second()).fold(0.0, f64::max)
    }
}

pub async fn run(shared: &SharedArgs, options: &CurvesArgs) -> Outcome<CurvesResult> {
    let stage = Stage::set_up(&Binary::measured()?, shared.tickets, 0, None).await?;
    let mut result = CurvesResult {
        machine: Machine::here(stage.postgres_version().await?)?,
        seconds: options.seconds,
        tickets: shared.tickets,
        sync: SyncTimes::measure(stage.folder())?,
        points: Vec::new(),
    };
    let time = Duration::from_secs(options.seconds);
    for scenario in SCENARIOS {
        for connections in CONNECTIONS {
            for server in scenario.servers() {
                let point = measure(&stage, scenario, *server, connections, time, None).await?;
                result.points.push(point);
            }
        }
    }
    let max_per_second = result.max_per_second(Scenario::Send, Server::Hotline);
    for fraction in RATE_FRACTIONS {
        for server in Scenario::Offered.servers() {
            let rate = max_per_second * fraction;
            if rate > result.max_per_second(Scenario::Send, *server) * OFFERED_RATIO_MAX {
                continue;
            }
            let point = measure(&stage, Scenario::Offered, *server, PACED_CONNECTIONS, time, Some(rate)).await?;
            result.points.push(point);
        }
    }
    stage.tear_down().await?;
    for messages in &options.messages {
        let stage = Stage::set_up(&Binary::measured()?, shared.tickets, 0, Some(&GrownArgs::with(*messages))).await?;
        for scenario in BY_ROWS {
            for server in scenario.servers() {
                let point = measure(&stage, scenario, *server, BY_ROWS_CONNECTIONS, time, None).await?;
                result.points.push(Point { rows: Some(*messages), ..point });
            }
        }
        stage.tear_down().await?;
    }
    Ok(result)
}

async fn measure(
    stage: &Stage,
    scenario: Scenario,
    server: Server,
    connections: u32,
    time: Duration,
    offered: Option<f64>,
) -> Outcome<Point> {
    let subjects = stage.subjects(&[], &[])?;
    let load = Load {
        scenario,
        server,
        address: stage.address(server),
        subjects: &subjects,
        connections,
        time,
        rate: offered,
    };
    let round = stage.measure(&load).await?;
    let counted = &round.counted;
    eprintln!(
        "{:<16} {connections:>4}  {:<16} {:>9.0}/s  p50 {:>8.2} ms  p99 {:>8.2} ms",
        scenario.title(),
        server.title(),
        counted.per_second(),
        counted.p50_us as f64 / 1e3,
        counted.p99_us as f64 / 1e3
    );
    Ok(Point { scenario, server, connections, offered, rows: None, round })
}
