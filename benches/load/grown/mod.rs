//! `load grown`: a database that has been in use for a year. Every filter of every list, every report, with sends beside
//! them; and the scenarios of `load run`, in turn with the same on an empty database.

mod requests;
mod rows;
pub mod start;

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

/// Milliseconds at p95: any page of any list, a report, a dashboard.
const LIST_MS_MAX: f64 = 50.0;
const REPORT_MS_MAX: f64 = 100.0;
const DASHBOARD_MS_MAX: f64 = 20.0;

/// Requests a second on the grown database, of those on the empty one.
const SCENARIO_RATIO_MIN: f64 = 0.9;

/// Connections of the sends beside the requests that are measured.
const WRITERS: u32 = 8;

/// Longer than all requests take: the sends are ended when these are.
const WRITING_TIME_MAX: Duration = Duration::from_secs(3 * 3600);

/// One request, asked several times.
#[derive(Clone, Debug, Serialize)]
pub struct RequestTimes {
    pub path: String,
    pub aim_ms: f64,
    pub p50_ms: f64,
    pub p95_ms: f64,
    /// Statuses that were no success.
    pub refused: Vec<u16>,
}

impl RequestTimes {
    pub fn is_met(&self) -> bool {
        self.refused.is_empty() && self.p95_ms <= self.aim_ms
    }
}

/// A scenario on both databases.
#[derive(Clone, Debug, Serialize)]
pub struct ScenarioComparison {
    pub scenario: Scenario,
    pub empty_per_second: f64,
    pub grown_per_second: f64,
}

/// What `load grown` has measured.
#[derive(Debug, Serialize)]
pub struct GrownResult {
    pub machine: Machine,
    pub contacts: i64,
    pub tickets: i64,
    pub messages: i64,
    pub companies: i64,
    /// How much of all this the one company has that is measured.
    pub percent: i64,
    pub rounds: u64,
    pub sends_per_second: f64,
    pub asked: Vec<RequestTimes>,
    pub compared: Vec<ScenarioComparison>,
}

impl GrownResult {
    pub fn verdicts(&self) -> Vec<Verdict> {
        // None where none was asked for (`--only`).
        let of = |title: &str, matches: &dyn Fn(&str) -> bool| {
            let these: Vec<&RequestTimes> = self.asked.iter().filter(|asked| matches(&asked.path)).collect();
            let met = these.iter().filter(|asked| asked.is_met()).count();
            these.first().map(|one| Verdict {
                what: title.to_owned(),
                aim: format!("each within {} ms at p95", one.aim_ms),
                measured: format!("{met} of {}", these.len()),
                is_met: met == these.len(),
            })
        };
        let is_report = |path: &str| path.starts_with("/reports/");
        let is_dashboard = |path: &str| path.starts_with("/dashboards/");
        let mut verdicts: Vec<Verdict> = [
            of("pages of lists", &|path| !is_report(path) && !is_dashboard(path)),
            of("reports", &is_report),
            of("dashboards", &is_dashboard),
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
        verdicts
    }
}

/// Passes what it has measured to `report`, also before the scenarios: they may fail, and what is before took long.
pub async fn run(
    shared: &SharedArgs,
    options: &GrownArgs,
    report: impl Fn(&GrownResult) -> Outcome<()>,
) -> Outcome<()> {
    let stage = Stage::set(&Binary::measured()?, shared.tickets, options.pool, Some(options)).await?;
    let mut requests = requests::lists(&stage.db, &stage.company, LIST_MS_MAX).await?;
    requests.extend(requests::reports(REPORT_MS_MAX, DASHBOARD_MS_MAX)?);
    if !options.only.is_empty() {
        requests.retain(|request| options.only.iter().any(|word| request.path.contains(word)));
    }
    let subjects = stage.subjects(&[], &[])?;
    let writing = Load {
        scenario: Scenario::Send,
        server: Server::Hotline,
        address: stage.address(Server::Hotline),
        subjects: &subjects,
        connections: WRITERS,
        time: WRITING_TIME_MAX,
        rate: Some(options.sends_per_second),
    };
    let asked = tokio::select! {
        asked = ask(&stage, &requests, options.rounds) => asked?,
        written = writing.run() => return Err(format!("the sends ended first: {written:?}").into()),
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
    };
    if options.seconds > 0 {
        report(&measured)?;
        measured.compared = compare(shared, options, &stage).await?;
    }
    stage.clear().await?;
    report(&measured)
}

/// Asks for each in turn, so that an unquiet minute falls on all of them.
async fn ask(stage: &Stage, requests: &[Request], rounds: u64) -> Outcome<Vec<RequestTimes>> {
    eprintln!("{} requests, {rounds} times each", requests.len());
    let mut times = vec![Vec::new(); requests.len()];
    let mut refused = vec![Vec::new(); requests.len()];
    // Once before it counts: connections and plans.
    for round in 0..=rounds {
        for (index, request) in requests.iter().enumerate() {
            let began = Instant::now();
            let response = stage.api.send(Method::GET, &request.path, None).await?;
            let status = response.status();
            response.bytes().await?;
            if round == 0 {
                continue;
            }
            times[index].push(began.elapsed().as_secs_f64() * 1e3);
            if !status.is_success() {
                refused[index].push(status.as_u16());
            }
        }
    }
    let shown = requests.iter().zip(times).zip(refused).map(|((request, mut times), refused)| {
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times[((times.len() as f64 * share).ceil() as usize).clamp(1, times.len()) - 1];
        RequestTimes { path: request.path.clone(), aim_ms: request.aim_ms, p50_ms: at(0.5), p95_ms: at(0.95), refused }
    });
    Ok(shown.collect())
}

/// The scenarios on this database and on an empty one, in turn.
async fn compare(shared: &SharedArgs, options: &GrownArgs, grown: &Stage) -> Outcome<Vec<ScenarioComparison>> {
    let empty = Stage::set(&Binary::measured()?, shared.tickets, options.pool, None).await?;
    let mut compared = Vec::new();
    for scenario in Scenario::ALL {
        // They measure something else, or need what the one before has left.
        if matches!(scenario, Scenario::HalfLoad | Scenario::Close) {
            continue;
        }
        let mut reached = [Vec::new(), Vec::new()];
        for _ in 0..options.scenario_rounds {
            for (stage, reached) in [&empty, grown].into_iter().zip(&mut reached) {
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
                reached.push(stage.measure(&load).await?.counted.per_second());
                match scenario {
                    Scenario::Open => stage.close_opened().await?,
                    Scenario::Mix => stage.reopen_changed().await?,
                    _ => {}
                }
            }
        }
        let [empty_per_second, grown_per_second] = reached.map(|mut reached| {
            reached.sort_by(f64::total_cmp);
            reached[reached.len() / 2]
        });
        eprintln!("{:<20} empty {empty_per_second:>8.0}/s  grown {grown_per_second:>8.0}/s", scenario.title());
        compared.push(ScenarioComparison { scenario, empty_per_second, grown_per_second });
    }
    empty.clear().await?;
    Ok(compared)
}
