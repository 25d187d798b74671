//! `load cluster`: one, two and three processes on one PostgreSQL, each with the same share of this machine's processors.
//! Measures the throughput of more processes, and the cost of a request at a process that does not serve its company.
//!
//! PostgreSQL and the generators use the rest of the processors. Each process has its own generator, which requests
//! data of all companies, as behind a balancer that knows nothing of companies.

mod member;
mod share;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use hotline_persistence::{PgPool, pool};
use serde::Serialize;

use self::member::{Common, Member};
use crate::figures::Verdict;
use crate::generator::{Load, LoadCounts};
use crate::machine::Machine;
use crate::options::{ClusterArgs, SharedArgs};
use crate::outcome::Outcome;
use crate::scenario::{Scenario, Server};
use crate::seed::Company;
use crate::service::Binary;
use crate::{stage, subjects, usage};

/// Numbers of processes, in this order: down and up again, so that a machine that is slow for a while affects all
/// alike.
const NODE_COUNTS: [usize; 6] = [3, 2, 1, 1, 2, 3];

pub const SCENARIOS: [Scenario; 2] = [Scenario::Send, Scenario::Read];

/// Minimum throughput of three processes, as a fraction of three times that of one.
const SCALE_MIN: f64 = 0.55;

/// Maximum processor time of a hop between processes, in microseconds.
const HOP_US_MAX: f64 = 25.0;

/// Length of one run that warms connections, actors and plans; it is repeated until every ticket has been requested.
const WARM_UP_TIME: Duration = Duration::from_secs(3);

/// How long slots may take to be shared out.
const SHARE_OUT_TIME_MAX: Duration = Duration::from_secs(60);
const SHARE_OUT_INTERVAL: Duration = Duration::from_millis(100);

/// Companies created, at most, for each that is needed: processes have equal shares of the slots.
const TRIES_MAX: u64 = 20;

/// One measurement.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Round {
    pub scenario: Scenario,
    pub nodes: usize,
    pub per_second: f64,
    pub p50_us: u64,
    pub p99_us: u64,
    /// Processor time for a request, in microseconds: of all processes, and of PostgreSQL.
    pub hotline_us: f64,
    pub postgres_us: f64,
}

/// What `load cluster` has measured.
#[derive(Debug, Serialize)]
pub struct ClusterResult {
    pub machine: Machine,
    pub seconds: u64,
    pub connections: u32,
    pub percent: u64,
    pub companies: usize,
    pub rounds: Vec<Round>,
    /// Of two processes: at the one that serves the company, and at the other one.
    pub at_owner: Vec<Round>,
    pub elsewhere: Vec<Round>,
}

impl ClusterResult {
    /// The median of a figure.
    pub fn median(rounds: &[Round], scenario: Scenario, nodes: usize, figure: impl Fn(&Round) -> f64) -> f64 {
        let matches = |round: &&Round| round.scenario == scenario && round.nodes == nodes;
        let mut figures: Vec<f64> = rounds.iter().filter(matches).map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// The throughput of this many processes, as a fraction of that many times the throughput of one.
    pub fn scale(&self, scenario: Scenario, nodes: usize) -> f64 {
        let per_second = |nodes| Self::median(&self.rounds, scenario, nodes, |round| round.per_second);
        per_second(nodes) / (nodes as f64 * per_second(1))
    }

    /// Additional processor time of a request at a process that does not serve its company, in microseconds.
    pub fn hop_us(&self, scenario: Scenario) -> f64 {
        let used = |rounds: &[Round]| Self::median(rounds, scenario, 2, |round| round.hotline_us);
        used(&self.elsewhere) - used(&self.at_owner)
    }

    pub fn verdicts(&self) -> Vec<Verdict> {
        let scale = |scenario: Scenario| {
            let scale = self.scale(scenario, 3);
            Verdict {
                what: format!("{} of three processes", scenario.title()),
                aim: format!("at least {SCALE_MIN} of three times one"),
                measured: format!("{scale:.2}"),
                is_met: scale >= SCALE_MIN,
            }
        };
        let hop = |scenario: Scenario| {
            let hop = self.hop_us(scenario);
            Verdict {
                what: format!("the hop of a {}", if scenario == Scenario::Read { "read" } else { "send" }),
                aim: format!("at most {HOP_US_MAX} µs of processor"),
                measured: format!("{hop:.0} µs"),
                is_met: hop <= HOP_US_MAX,
            }
        };
        SCENARIOS.into_iter().map(scale).chain(SCENARIOS.into_iter().map(hop)).collect()
    }
}

pub async fn run(shared: &SharedArgs, options: &ClusterArgs) -> Outcome<ClusterResult> {
    let binary = Binary::measured()?;
    let folder = stage::create_folder()?;
    std::fs::create_dir(folder.path().join("media"))?;
    // Declared before the members, so that on a failure they are dropped, and stop, before their PostgreSQL.
    let postgres = stage::start_postgres(folder.path()).await?;
    let url = postgres.url();
    let common = Common { binary: &binary, folder: folder.path(), database_url: &url, percent: options.percent };
    let mut cluster = MeasuredCluster {
        db: pool::connect(postgres.connect_options()),
        postgres: postgres.pid().ok_or("PostgreSQL has no process")?,
        members: Vec::new(),
        companies: Vec::new(),
        folder: folder.path(),
        options,
    };
    cluster.resize(&common, NODE_COUNTS[0]).await?;
    cluster.create_companies(shared.tickets).await?;

    let (mut rounds, mut at_owner, mut elsewhere) = (Vec::new(), Vec::new(), Vec::new());
    for (turn, nodes) in NODE_COUNTS.into_iter().enumerate() {
        cluster.resize(&common, nodes).await?;
        for scenario in SCENARIOS {
            let all_tickets = cluster.tickets(None).await?;
            let all_members: Vec<usize> = (0..nodes).collect();
            cluster.warm_up(scenario, &all_tickets, &all_members).await?;
            for _ in 0..options.rounds.div_ceil(2) {
                rounds.push(cluster.measure(scenario, &all_tickets, &all_members).await?);
            }
            // Not repeated on the way up, because only processor time is compared.
            if nodes == 2 && turn < NODE_COUNTS.len() / 2 {
                let tickets_of_first = cluster.tickets(Some(0)).await?;
                for _ in 0..options.rounds {
                    at_owner.push(cluster.measure(scenario, &tickets_of_first, &[0]).await?);
                    elsewhere.push(cluster.measure(scenario, &tickets_of_first, &[1]).await?);
                }
            }
        }
    }
    let measured = ClusterResult {
        machine: Machine::here(sqlx::query_scalar("show server_version").fetch_one(&cluster.db).await?)?,
        seconds: options.seconds,
        connections: options.connections,
        percent: options.percent,
        companies: cluster.companies.len(),
        rounds,
        at_owner,
        elsewhere,
    };
    cluster.tear_down().await?;
    postgres.stop().await?;
    Ok(measured)
}

/// The measured processes, and their companies.
struct MeasuredCluster<'a> {
    /// In the order of their starts.
    members: Vec<Member>,
    companies: Vec<Company>,
    db: PgPool,
    postgres: u32,
    folder: &'a Path,
    options: &'a ClusterArgs,
}

impl MeasuredCluster<'_> {
    /// Starts or stops processes until there are `nodes`, and waits until each has its share of the slots.
    async fn resize(&mut self, common: &Common<'_>, nodes: usize) -> Outcome<()> {
        while self.members.len() > nodes {
            if let Some(member) = self.members.pop() {
                member.stop()?;
            }
        }
        while self.members.len() < nodes {
            self.members.push(Member::start(common, self.members.len())?);
        }
        let since = Instant::now();
        let slots_min = i64::try_from(1024 / nodes * 9 / 10)?;
        while !self.is_shared_out(slots_min).await? {
            if since.elapsed() > SHARE_OUT_TIME_MAX {
                return Err(format!("slots are not shared out after {SHARE_OUT_TIME_MAX:?}").into());
            }
            tokio::time::sleep(SHARE_OUT_INTERVAL).await;
        }
        Ok(())
    }

    /// Whether each process has at least this many slots, and no slot moves.
    async fn is_shared_out(&self, slots_min: i64) -> Outcome<bool> {
        let statement =
            "select count(s.slot), count(s.next) from lives l left join slots s on s.life = l.life group by l.life";
        let found: Vec<(i64, i64)> = sqlx::query_as(statement).fetch_all(&self.db).await?;
        let is_at_rest = |(slots, moving): &(i64, i64)| *slots >= slots_min && *moving == 0;
        Ok(found.len() == self.members.len() && found.iter().all(is_at_rest))
    }

    /// Creates companies until each process serves as many of them as the options say. Surplus companies are not used;
    /// the tickets are divided among the others.
    async fn create_companies(&mut self, tickets: usize) -> Outcome<()> {
        let each = usize::try_from(self.options.companies)?;
        let count = each * self.members.len();
        let mut kept = vec![0; self.members.len()];
        for _ in 0..TRIES_MAX * count as u64 {
            let (mut company, api) = Company::create(self.members[0].service()).await?;
            let owner = self.owner(company.id).await?;
            if kept[owner] == each {
                continue;
            }
            kept[owner] += 1;
            let channel = company.channel;
            company.add_conversations(&api, channel, tickets / count).await?;
            self.companies.push(company);
            if self.companies.len() == count {
                return Ok(());
            }
        }
        Err(format!("not every process got {each} companies: {kept:?}").into())
    }

    /// The process that serves a company.
    async fn owner(&self, company: i64) -> Outcome<usize> {
        let statement = "select l.node from companies c join slots s on s.slot = c.slot join lives l on l.life = s.life
             where c.id = $1";
        let name: String = sqlx::query_scalar(statement).bind(company).fetch_one(&self.db).await?;
        let owner = self.members.iter().position(|member| member.name == name);
        Ok(owner.ok_or_else(|| format!("{name} has ended"))?)
    }

    /// The tickets, with the company's key, of all companies or of those that one process serves; one of each company
    /// in turn.
    async fn tickets(&self, owner: Option<usize>) -> Outcome<Vec<(i64, &str)>> {
        let mut companies = Vec::new();
        for company in &self.companies {
            let is_wanted = match owner {
                Some(owner) => self.owner(company.id).await? == owner,
                None => true,
            };
            companies.extend(is_wanted.then_some(company));
        }
        let tickets_each = companies.iter().map(|company| company.tickets.len()).min().ok_or("it serves no company")?;
        let turn = |index: usize| companies.iter().map(move |company| (company.tickets[index], company.key.as_str()));
        Ok((0..tickets_each).flat_map(turn).collect())
    }

    /// Requests each ticket once through the processes `targets`, so that the process that serves it has loaded it
    /// before the measurement.
    async fn warm_up(&self, scenario: Scenario, tickets: &[(i64, &str)], targets: &[usize]) -> Outcome<()> {
        let (mut cold, mut asked) = (tickets.to_vec(), 0);
        while asked < tickets.len() {
            let counted = self.ask(scenario, &cold, targets, WARM_UP_TIME).await?;
            // Each process continues from its own place in the list.
            let each = counted.iter().map(|counted| counted.requests).min().unwrap_or_default();
            let each = usize::try_from(each)?.min(tickets.len());
            cold.rotate_left(each);
            asked += each * targets.len();
        }
        Ok(())
    }

    async fn measure(&self, scenario: Scenario, tickets: &[(i64, &str)], targets: &[usize]) -> Outcome<Round> {
        let (hotline, postgres) = self.used()?;
        let counted = self.ask(scenario, tickets, targets, Duration::from_secs(self.options.seconds)).await?;
        let (hotline_after, postgres_after) = self.used()?;
        let requests: u64 = counted.iter().map(|counted| counted.requests).sum();
        let us = |seconds: f64| seconds * 1e6 / requests as f64;
        let round = Round {
            scenario,
            nodes: self.members.len(),
            per_second: counted.iter().map(LoadCounts::per_second).sum(),
            p50_us: counted.iter().map(|counted| counted.p50_us).max().unwrap_or_default(),
            p99_us: counted.iter().map(|counted| counted.p99_us).max().unwrap_or_default(),
            hotline_us: us(hotline_after - hotline),
            postgres_us: us(postgres_after - postgres),
        };
        eprintln!(
            "{} of {} through {targets:?}: {:.0} a second, {:.0} µs of Hotline, {:.0} of PostgreSQL",
            scenario.title(),
            round.nodes,
            round.per_second,
            round.hotline_us,
            round.postgres_us
        );
        Ok(round)
    }

    /// Seconds of processor time that all processes and PostgreSQL have used.
    fn used(&self) -> Outcome<(f64, f64)> {
        let hotline = self.members.iter().map(Member::processor_s).sum::<Outcome<f64>>()?;
        Ok((hotline, usage::postgres_s(self.postgres)?))
    }

    /// Sends requests to these processes, each over its share of the connections; fails if any request fails.
    async fn ask(
        &self,
        scenario: Scenario,
        tickets: &[(i64, &str)],
        targets: &[usize],
        time: Duration,
    ) -> Outcome<Vec<LoadCounts>> {
        let mut loads = Vec::new();
        for target in targets {
            // Each begins at a different ticket, so that they do not always request the same one.
            let mut turned = tickets.to_vec();
            turned.rotate_left(tickets.len() / self.members.len() * target);
            let path = self.folder.join(format!("subjects-{target}.lua"));
            subjects::write_tickets(&path, &turned)?;
            loads.push((*target, path));
        }
        let connections = self.options.connections / u32::try_from(targets.len())?;
        let run = async |(target, subjects): &(usize, PathBuf)| {
            let load = Load {
                scenario,
                server: Server::Hotline,
                address: self.members[*target].address(),
                subjects,
                connections,
                time,
                rate: None,
            };
            load.run().await
        };
        let counted = try_join_all(loads.iter().map(run)).await?;
        let failed = counted.iter().find(|counted| counted.errors.total() > 0 || counted.requests == 0);
        match failed {
            Some(failed) => {
                Err(format!("{} of {} processes: {:?}", scenario.title(), self.members.len(), failed.errors).into())
            }
            None => Ok(counted),
        }
    }

    async fn tear_down(self) -> Outcome<()> {
        self.db.close().await;
        self.members.into_iter().rev().try_for_each(Member::stop)
    }
}
