//! `load grown`: measures a database with a year of data. First every report, and every list with each of its filters,
//! during concurrent sends. Then, compared with an empty database: the scenarios of `load run`, a deletion of old
//! conversations, a backup and a start.

mod requests;
mod rows;
pub mod start;
mod upkeep;

use std::time::{Duration, Instant};

use reqwest::Method;
use serde::Serialize;

use crate::figures::Verdict;
use crate::generator::Load;
use crate::machine::Machine;
use crate::options::{GrownArgs, SharedArgs};
use crate::outcome::Outcome;
use crate::scenario::{Scenario, Server};
use crate::service::Binary;
use crate::stage::Stage;
use requests::Request;
pub use upkeep::{SendLatency, Upkeep};

/// Maximum p95, in milliseconds: of a page of a list, a report, and a dashboard.
const LIST_MS_MAX: f64 = 50.0;
const REPORT_MS_MAX: f64 = 100.0;
const DASHBOARD_MS_MAX: f64 = 20.0;

/// Minimum throughput on the grown database, as a fraction of that on the empty one.
const SCENARIO_RATIO_MIN: f64 = 0.9;

/// Connections of the concurrent sends.
const WRITERS: u32 = 8;

/// The duration of the sends, which is not reached: they are stopped after the last measured request.
const SENDING_TIME_MAX: Duration = Duration::from_secs(3 * 3600);

/// The times of a request that was sent repeatedly.
#[derive(Clone, Debug, Serialize)]
pub struct RequestTimes {
    pub path: String,
    pub aim_ms: f64,
    pub p50_ms: f64,
    pub p95_ms: f64,
    /// Statuses of failed responses.
    pub refused: Vec<u16>,
}

impl RequestTimes {
    pub fn is_met(&self) -> bool {
        self.refused.is_empty() && self.p95_ms <= self.aim_ms
    }
}

/// The throughput of a scenario on both databases.
#[derive(Clone, Debug, Serialize)]
pub struct ScenarioComparison {
    pub scenario: Scenario,
    pub empty_per_second: f64,
    pub grown_per_second: f64,
}

/// The result of `load grown`.
#[derive(Debug, Serialize)]
pub struct GrownResult {
    pub machine: Machine,
    pub contacts: i64,
    pub tickets: i64,
    pub messages: i64,
    pub companies: i64,
    /// The share of all of these that the measured company has.
    pub percent: i64,
    pub rounds: u64,
    pub sends_per_second: f64,
    pub asked: Vec<RequestTimes>,
    pub compared: Vec<ScenarioComparison>,
    /// Of the empty and of the grown database.
    pub upkeep: Option<[Upkeep; 2]>,
}

impl GrownResult {
    pub fn verdicts(&self) -> Vec<Verdict> {
        // `None` if `--only` excludes all of its requests.
        let verdict = |title: &str, matches: &dyn Fn(&str) -> bool| {
            let requests: Vec<&RequestTimes> = self.asked.iter().filter(|times| matches(&times.path)).collect();
            let met = requests.iter().filter(|times| times.is_met()).count();
            requests.first().map(|first| Verdict {
                what: title.to_owned(),
                aim: format!("each within {} ms at p95", first.aim_ms),
                measured: format!("{met} of {}", requests.len()),
                is_met: met == requests.len(),
            })
        };
        let is_report = |path: &str| path.starts_with("/reports/");
        let is_dashboard = |path: &str| path.starts_with("/dashboards/");
        let mut verdicts: Vec<Verdict> = [
            verdict("pages of lists", &|path| !is_report(path) && !is_dashboard(path)),
            verdict("reports", &is_report),
            verdict("dashboards", &is_dashboard),
        ]
        .into_iter()
        .flatten()
        .collect();
        verdicts.extend(self.compared.iter().map(|compared| {
            let ratio = compared.grown_per_second / compared.empty_per_second;
            Verdict {
                what: compared.scenario.title().to_owned(),
                aim: format!("{SCENARIO_RATIO_MIN} of the empty database"),
                measured: format!("{ratio:.2}"),
                is_met: ratio >= SCENARIO_RATIO_MIN,
            }
        }));
        verdicts.extend(self.upkeep.iter().flat_map(|[_, grown]| grown.verdicts()));
        verdicts
    }
}

/// Reports after each step, because each takes long, and the next one may fail.
pub async fn run(
    shared: &SharedArgs,
    options: &GrownArgs,
    report: impl Fn(&GrownResult) -> Outcome<()>,
) -> Outcome<()> {
    requests::check()?;
    let binary = Binary::measured()?;
    let stage = Stage::set_up(&binary, shared.tickets, options.pool, Some(options)).await?;
    let mut requests = requests::lists(&stage.db, &stage.company, LIST_MS_MAX).await?;
    requests.extend(requests::reports(REPORT_MS_MAX, DASHBOARD_MS_MAX)?);
    if !options.only.is_empty() {
        requests.retain(|request| options.only.iter().any(|word| request.path.contains(word)));
    }
    let subjects = stage.subjects(&[], &[])?;
    let sends = Load {
        scenario: Scenario::Send,
        server: Server::Hotline,
        address: stage.address(Server::Hotline),
        subjects: &subjects,
        connections: WRITERS,
        time: SENDING_TIME_MAX,
        rate: Some(options.sends_per_second),
    };
    let asked = tokio::select! {
        asked = measure_requests(&stage, &requests, options.rounds) => asked?,
        sent = sends.run() => return Err(format!("the sends ended first: {sent:?}").into()),
    };
    stage.settle().await?;
    let machine = Machine::here(stage.postgres_version().await?)?;
    let mut measured = GrownResult {
        machine,
        contacts: options.contacts,
        tickets: options.conversations,
        messages: options.messages,
        companies: options.companies,
        percent: options.percent,
        rounds: options.rounds,
        sends_per_second: options.sends_per_second,
        asked,
        compared: Vec::new(),
        upkeep: None,
    };
    if options.seconds == 0 {
        stage.tear_down().await?;
        return report(&measured);
    }
    report(&measured)?;
    let empty = Stage::set_up(&binary, shared.tickets, options.pool, None).await?;
    measured.compared = compare(options, &empty, &stage).await?;
    report(&measured)?;
    let empty_upkeep = upkeep::measure(&binary, empty, options.sends_per_second).await?;
    measured.upkeep = Some([empty_upkeep, upkeep::measure(&binary, stage, options.sends_per_second).await?]);
    report(&measured)
}

/// Sends all requests in each round, so that a slow minute of the machine affects all alike.
async fn measure_requests(stage: &Stage, requests: &[Request], rounds: u64) -> Outcome<Vec<RequestTimes>> {
    eprintln!("{} requests, {rounds} times each", requests.len());
    let mut times = vec![Vec::new(); requests.len()];
    let mut refused = vec![Vec::new(); requests.len()];
    // The first round only opens connections and prepares statements.
    for round in 0..=rounds {
        for (index, request) in requests.iter().enumerate() {
            let started_at = Instant::now();
            let response = stage.api.send(Method::GET, &request.path, None).await?;
            let status = response.status();
            response.bytes().await?;
            if round == 0 {
                continue;
            }
            times[index].push(started_at.elapsed().as_secs_f64() * 1e3);
            if !status.is_success() {
                refused[index].push(status.as_u16());
            }
        }
    }
    let results = requests.iter().zip(times).zip(refused).map(|((request, mut times), refused)| {
        times.sort_by(f64::total_cmp);
        let quantile = |share: f64| times[((times.len() as f64 * share).ceil() as usize).clamp(1, times.len()) - 1];
        let (p50_ms, p95_ms) = (quantile(0.5), quantile(0.95));
        RequestTimes { path: request.path.clone(), aim_ms: request.aim_ms, p50_ms, p95_ms, refused }
    });
    Ok(results.collect())
}

/// Measures the scenarios on this database and on an empty one, alternating.
async fn compare(options: &GrownArgs, empty: &Stage, grown: &Stage) -> Outcome<Vec<ScenarioComparison>> {
    let mut compared = Vec::new();
    for scenario in Scenario::ALL {
        // A fixed rate measures latency, and closing needs the tickets that opening leaves.
        if scenario.is_paced() || scenario == Scenario::Close {
            continue;
        }
        let mut rates = [Vec::new(), Vec::new()];
        for _ in 0..options.scenario_rounds {
            for (stage, rates) in [empty, grown].into_iter().zip(&mut rates) {
                let contacts = if scenario == Scenario::Open { stage.pool.as_slice() } else { &[] };
                let subjects = stage.subjects(contacts, &[])?;
                let load = Load {
                    scenario,
                    server: Server::Hotline,
                    address: stage.address(Server::Hotline),
                    subjects: &subjects,
                    connections: options.connections,
                    time: Duration::from_secs(options.seconds),
                    rate: None,
                };
                rates.push(stage.measure(&load).await?.counted.per_second());
                match scenario {
                    Scenario::Open => stage.close_pool_tickets().await?,
                    Scenario::Mix => stage.reopen_changed().await?,
                    _ => {}
                }
            }
        }
        let [empty_per_second, grown_per_second] = rates.map(|mut rates| {
            rates.sort_by(f64::total_cmp);
            rates[rates.len() / 2]
        });
        eprintln!("{:<20} empty {empty_per_second:>8.0}/s  grown {grown_per_second:>8.0}/s", scenario.title());
        compared.push(ScenarioComparison { scenario, empty_per_second, grown_per_second });
    }
    Ok(compared)
}
