//! `load run`: every scenario with every number of connections, alternating between Hotline and its yardsticks.

use std::path::Path;
use std::time::Duration;

use futures_util::future::join;

use crate::disk::SyncTimes;
use crate::figures::{Measure, Throughput};
use crate::generator::Load;
use crate::machine::Machine;
use crate::options::{RunArgs, SharedArgs};
use crate::outcome::Outcome;
use crate::scenario::{INBOX_OFFERED, OFFERED, Scenario, Server};
use crate::service::Binary;
use crate::stage::Stage;

/// Seconds of load before a measurement: opens connections, fills caches and grows buffers.
const WARM_UP_S: u64 = 2;

pub async fn run(shared: &SharedArgs, options: &RunArgs) -> Outcome<Throughput> {
    let chosen = if options.scenarios.is_empty() { Scenario::ALL.to_vec() } else { options.scenarios.clone() };
    let uses_pool = chosen.iter().any(|scenario| scenario.consumes_subjects());
    let pool = if uses_pool { options.pool } else { 0 };
    let stage = Stage::set_up(&Binary::measured()?, shared.tickets, pool, None).await?;
    let mut runner = Runner {
        time: Duration::from_secs(options.seconds),
        rounds: options.rounds,
        run: Throughput {
            machine: Machine::here(stage.postgres_version().await?)?,
            seconds: options.seconds,
            rounds: options.rounds,
            tickets: shared.tickets,
            sync: SyncTimes::measure(stage.folder())?,
            measures: Vec::new(),
        },
        stage,
    };
    for scenario in Scenario::ALL {
        for connections in options.connections.iter().copied() {
            match scenario {
                // Closing needs the tickets that opening leaves: they are measured together.
                Scenario::Open if uses_pool => runner.open_and_close(connections).await?,
                Scenario::Open | Scenario::Close => {}
                // Scenarios with a fixed rate run once, with the most connections.
                _ if scenario.is_paced() && options.connections.iter().max() != Some(&connections) => {}
                Scenario::HalfLoad if chosen.contains(&scenario) => runner.measure_half_load(connections).await?,
                Scenario::Offered if chosen.contains(&scenario) => runner.measure_offered(connections).await?,
                Scenario::BusyInbox if chosen.contains(&scenario) => runner.measure_busy_inbox(connections).await?,
                _ if chosen.contains(&scenario) => runner.measure_alternating(scenario, connections).await?,
                _ => {}
            }
        }
    }
    let Runner { stage, run, .. } = runner;
    stage.tear_down().await?;
    Ok(run)
}

/// Measures the scenarios on one stage.
struct Runner {
    stage: Stage,
    time: Duration,
    rounds: u64,
    run: Throughput,
}

impl Runner {
    fn load<'a>(&self, scenario: Scenario, server: Server, connections: u32, subjects: &'a Path) -> Load<'a> {
        let address = self.stage.address(server);
        Load { scenario, server, address, subjects, connections, time: self.time, rate: None }
    }

    async fn measure_alternating(&mut self, scenario: Scenario, connections: u32) -> Outcome<()> {
        let subjects = self.stage.subjects(&[], &[])?;
        let mut measures = empty_measures(scenario, connections);
        for measure in &measures {
            let load = self.load(scenario, measure.server, connections, &subjects);
            let time = self.time.min(Duration::from_secs(WARM_UP_S));
            self.stage.measure(&Load { time, ..load }).await?;
            self.reset(scenario, measure.server).await?;
        }
        for _ in 0..self.rounds {
            for measure in &mut measures {
                let load = self.load(scenario, measure.server, connections, &subjects);
                measure.rounds.push(self.stage.measure(&load).await?);
                self.reset(scenario, measure.server).await?;
            }
        }
        self.add(measures);
        Ok(())
    }

    /// Reopens the tickets that the mix has closed.
    async fn reset(&self, scenario: Scenario, server: Server) -> Outcome<()> {
        match (scenario, server) {
            (Scenario::Mix, Server::Hotline) => self.stage.reopen_changed().await,
            _ => Ok(()),
        }
    }

    /// Each round opens tickets until its time is over, and then closes as many of them as its time allows.
    async fn open_and_close(&mut self, connections: u32) -> Outcome<()> {
        let mut opening = empty_measures(Scenario::Open, connections);
        let mut closing = empty_measures(Scenario::Close, connections);
        for _ in 0..self.rounds {
            for (open, close) in opening.iter_mut().zip(&mut closing) {
                let server = open.server;
                let subjects = self.stage.subjects(&self.stage.pool, &[])?;
                let load = self.load(Scenario::Open, server, connections, &subjects);
                open.rounds.push(self.stage.measure(&load).await?);

                // The bare handler accepts any id.
                let opened = if server == Server::Hotline {
                    self.stage.open_pool_tickets().await?
                } else {
                    self.stage.pool.clone()
                };
                let subjects = self.stage.subjects(&[], &opened)?;
                let load = self.load(Scenario::Close, server, connections, &subjects);
                close.rounds.push(self.stage.measure(&load).await?);
            }
            self.stage.close_pool_tickets().await?;
        }
        self.add(opening);
        self.add(closing);
        Ok(())
    }

    /// Sends at half of Hotline's throughput, to Hotline and to the bare handler (a).
    async fn measure_half_load(&mut self, connections: u32) -> Outcome<()> {
        let subjects = self.stage.subjects(&[], &[])?;
        let per_second = match self.run.find(Scenario::Send, Server::Hotline, connections) {
            Some(measure) => measure.per_second(),
            None => {
                let load = self.load(Scenario::Send, Server::Hotline, connections, &subjects);
                self.stage.measure(&load).await?.counted.per_second()
            }
        };
        self.measure_paced(Scenario::HalfLoad, connections, per_second / 2.0).await
    }

    /// Sends at a rate that all servers reach.
    async fn measure_offered(&mut self, connections: u32) -> Outcome<()> {
        self.measure_paced(Scenario::Offered, connections, OFFERED).await
    }

    /// Requests lists while messages are sent.
    async fn measure_busy_inbox(&mut self, connections: u32) -> Outcome<()> {
        let subjects = self.stage.subjects(&[], &[])?;
        let mut measures = empty_measures(Scenario::BusyInbox, connections);
        for _ in 0..self.rounds {
            for measure in &mut measures {
                let list = self.load(Scenario::BusyInbox, measure.server, connections, &subjects);
                let list = Load { rate: Some(INBOX_OFFERED), ..list };
                let sends = Load { scenario: Scenario::Send, rate: Some(OFFERED), ..list };
                let (round, sends) = join(self.stage.measure(&list), sends.run()).await;
                if sends?.errors.total() > 0 {
                    return Err("sends beside lists failed".into());
                }
                measure.rounds.push(round?);
            }
        }
        self.add(measures);
        Ok(())
    }

    async fn measure_paced(&mut self, scenario: Scenario, connections: u32, rate: f64) -> Outcome<()> {
        let subjects = self.stage.subjects(&[], &[])?;
        let mut measures = empty_measures(scenario, connections);
        for _ in 0..self.rounds {
            for measure in &mut measures {
                let load = self.load(scenario, measure.server, connections, &subjects);
                measure.rounds.push(self.stage.measure(&Load { rate: Some(rate), ..load }).await?);
            }
        }
        self.add(measures);
        Ok(())
    }

    /// Adds measurements to the result, and prints them.
    fn add(&mut self, measures: Vec<Measure>) {
        for measure in &measures {
            eprintln!(
                "{:<20} {:>4}  {:<16} {:>9.0}/s  p50 {:>8.2} ms  p99 {:>8.2} ms",
                measure.scenario.title(),
                measure.connections,
                measure.server.title(),
                measure.per_second(),
                measure.p50_us() / 1e3,
                measure.p99_us() / 1e3
            );
        }
        self.run.measures.extend(measures);
    }
}

fn empty_measures(scenario: Scenario, connections: u32) -> Vec<Measure> {
    let measure = |server: &Server| Measure { scenario, server: *server, connections, rounds: Vec::new() };
    scenario.servers().iter().map(measure).collect()
}
