//! `load curves`: throughput against connections and against the rows there are, latency against the rate that is offered, each
//! server beside the others.

use std::time::Duration;

use serde::Serialize;

use crate::disk::Sync;
use crate::figures::Round;
use crate::generator::Load;
use crate::machine::Machine;
use crate::options::{CurvesArgs, GrownArgs, SharedArgs};
use crate::outcome::Outcome;
use crate::scenario::{Scenario, Server};
use crate::service::Binary;
use crate::stage::Stage;

/// How many callers there are, each with one request at a time.
const CONNECTIONS: [u32; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/// What is asked by so many.
const SCENARIOS: [Scenario; 2] = [Scenario::Send, Scenario::Read];

/// Parts of the most Hotline has answered that are offered.
const PARTS: [f64; 7] = [0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8];

/// Callers that a rate is offered with.
const PACED_CONNECTIONS: u32 = 128;

/// What is asked of databases that differ in size, and by how many callers.
pub const BY_ROWS: [Scenario; 2] = [Scenario::Send, Scenario::List100];
const BY_ROWS_CONNECTIONS: u32 = 32;

/// A server is offered no more than this part of what it has answered: beyond it only the queue grows.
const OFFERED_MOST: f64 = 0.9;

/// One point of a curve.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    pub scenario: Scenario,
    pub server: Server,
    pub connections: u32,
    /// Requests a second that were offered; none: as many as were answered.
    pub offered: Option<f64>,
    /// Messages that were there before; none: those of the tickets that are asked for.
    pub rows: Option<i64>,
    #[serde(flatten)]
    pub round: Round,
}

/// Everything `load curves` has measured.
#[derive(Clone, Debug, Serialize)]
pub struct CurvesResult {
    pub machine: Machine,
    pub seconds: u64,
    pub tickets: usize,
    pub sync: Sync,
    pub points: Vec<Point>,
}

impl CurvesResult {
    /// The most a server has answered.
    pub fn most(&self, scenario: Scenario, server: Server) -> f64 {
        let is_it = |point: &&Point| point.scenario == scenario && point.server == server && point.rows.is_none();
        let points = self.points.iter().filter(is_it);
        points.map(|point| point.round.counted.per_second()).fold(0.0, f64::max)
    }
}

pub async fn run(shared: &SharedArgs, options: &CurvesArgs) -> Outcome<CurvesResult> {
    let stage = Stage::set(&Binary::measured()?, shared.tickets, 0, None).await?;
    let mut curved = CurvesResult {
        machine: Machine::here(stage.postgres_version().await?)?,
        seconds: options.seconds,
        tickets: shared.tickets,
        sync: Sync::measure(stage.folder())?,
        points: Vec::new(),
    };
    let time = Duration::from_secs(options.seconds);
    for scenario in SCENARIOS {
        for connections in CONNECTIONS {
            for server in scenario.servers() {
                let point = measure(&stage, scenario, *server, connections, time, None).await?;
                curved.points.push(point);
            }
        }
    }
    let most = curved.most(Scenario::Send, Server::Hotline);
    for part in PARTS {
        for server in Scenario::Offered.servers() {
            let rate = most * part;
            if rate > curved.most(Scenario::Send, *server) * OFFERED_MOST {
                continue;
            }
            let point = measure(&stage, Scenario::Offered, *server, PACED_CONNECTIONS, time, Some(rate)).await?;
            curved.points.push(point);
        }
    }
    stage.clear().await?;
    for messages in &options.messages {
        let stage = Stage::set(&Binary::measured()?, shared.tickets, 0, Some(&GrownArgs::with(*messages))).await?;
        for scenario in BY_ROWS {
            for server in scenario.servers() {
                let point = measure(&stage, scenario, *server, BY_ROWS_CONNECTIONS, time, None).await?;
                curved.points.push(Point { rows: Some(*messages), ..point });
            }
        }
        stage.clear().await?;
    }
    Ok(curved)
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
