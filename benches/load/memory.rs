//! `load memory`: the memory of a hot ticket and of a hot visitor session, everything included, and whether idle ones
//! are freed.
//!
//! Two fresh processes use the same tables and answer the same number of requests: one for a few records, the other for
//! many. The difference of their memory, divided by that of the numbers, is the memory of one. The few and the many are
//! on separate channels, because a channel has the conversations of all its contacts in memory.

use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::{TryStreamExt, stream};
use reqwest::Method;
use serde::Serialize;

use crate::figures::Verdict;
use crate::machine::Machine;
use crate::options::MemoryArgs;
use crate::outcome::Outcome;
use crate::seed::{Api, Company};
use crate::service::{Binary, NEVER_S, Service};
use crate::{stage, usage};

/// Maximum bytes of a hot ticket, everything included.
const TICKET_BYTES_MAX: f64 = 1800.0;

/// Seconds after which actors are idle in the process that frees them: longer than it takes to make them hot.
const IDLE_AFTER_S: u64 = 60;

/// How long idle actors may take to end.
const RETIRE_TIME_MAX: Duration = Duration::from_secs(180);

/// Concurrent requests: few, so that their own memory does not count.
const AT_ONCE: usize = 8;

/// The interval and maximum number of reads until memory is steady, and the difference below which it is.
const STEADY_INTERVAL: Duration = Duration::from_secs(1);
const STEADY_READS_MAX: usize = 30;
const STEADY_BYTES: u64 = 256 * 1024;

/// The kind of the records that are made hot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Tickets,
    Sessions,
}

impl Kind {
    pub fn title(self) -> &'static str {
        match self {
            Self::Tickets => "ticket",
            Self::Sessions => "session",
        }
    }

    /// A request that only the actor can answer, and that changes nothing.
    fn request(self, company: &Company, index: usize) -> (Method, String) {
        match self {
            Self::Tickets => (Method::POST, format!("/tickets/{}/read", company.tickets[index])),
            Self::Sessions => (Method::GET, format!("/webchat/sessions/{}", company.sessions[index])),
        }
    }

    fn metric(self) -> &'static str {
        match self {
            Self::Tickets => "hotline_actors_hot{kind=\"tickets\"}",
            Self::Sessions => "hotline_actors_hot{kind=\"sessions\"}",
        }
    }
}

/// The memory of records of one kind.
#[derive(Debug, Serialize)]
pub struct Cost {
    pub kind: Kind,
    /// Resident memory with few hot, and with many.
    pub few_bytes: u64,
    pub many_bytes: u64,
    /// Memory of one of them.
    pub each_bytes: f64,
}

/// The effect of retiring many idle tickets.
#[derive(Debug, Serialize)]
pub struct RetireResult {
    pub hot_before: f64,
    pub hot_after: f64,
    pub before_bytes: u64,
    pub after_bytes: u64,
    pub seconds: f64,
}

/// The result of `load memory`.
#[derive(Debug, Serialize)]
pub struct MemoryResult {
    pub machine: Machine,
    pub few: usize,
    pub many: usize,
    pub costs: Vec<Cost>,
    pub retired: RetireResult,
}

pub async fn run(options: &MemoryArgs) -> Outcome<MemoryResult> {
    let folder = stage::create_folder()?;
    let folder = folder.path();
    let (few, many) = (0..options.few, options.few..options.few + options.many);
    let (company, machine) = seed(folder, options).await?;
    let mut costs = Vec::new();
    for kind in [Kind::Tickets, Kind::Sessions] {
        let few_bytes = measure_hot(folder, &company, kind, few.clone(), options.many).await?;
        let many_bytes = measure_hot(folder, &company, kind, many.clone(), options.many).await?;
        let each_bytes = (many_bytes as f64 - few_bytes as f64) / (options.many as f64 - options.few as f64);
        eprintln!("a hot {}: {each_bytes:.0} bytes", kind.title());
        costs.push(Cost { kind, few_bytes, many_bytes, each_bytes });
    }
    let retired = retire(folder, &company, many).await?;
    Ok(MemoryResult { machine, few: options.few, many: options.many, costs, retired })
}

async fn seed(folder: &Path, options: &MemoryArgs) -> Outcome<(Company, Machine)> {
    let service = Service::start(&Binary::measured()?, folder, NEVER_S)?;
    let (mut company, api) = Company::create(&service).await?;
    let first = company.channel;
    company.add_conversations(&api, first, options.few).await?;
    let second = company.new_channel(&service, &api, "Shop").await?;
    company.add_conversations(&api, second, options.many).await?;
    let cluster = stage::open_postgres(folder).await?;
    let db = hotline_persistence::pool::connect(cluster.connect_options());
    let version = sqlx::query_scalar("show server_version").fetch_one(&db).await?;
    db.close().await;
    service.stop()?;
    Ok((company, Machine::here(version)?))
}

/// Memory of a fresh process in which the records of `range` are hot, after this many requests.
async fn measure_hot(
    folder: &Path,
    company: &Company,
    kind: Kind,
    range: Range<usize>,
    requests: usize,
) -> Outcome<u64> {
    let service = Service::start(&Binary::measured()?, folder, NEVER_S)?;
    make_hot(&Api::new(&service, &company.key)?, company, kind, range.clone(), requests).await?;
    let hot = count_hot(&service, kind).await?;
    if hot != range.len() as f64 {
        return Err(format!("{hot} are hot, not {}", range.len()).into());
    }
    let bytes = wait_for_steady_memory(&service).await?;
    service.stop()?;
    Ok(bytes)
}

async fn make_hot(api: &Api, company: &Company, kind: Kind, range: Range<usize>, requests: usize) -> Outcome<()> {
    stream::iter(range.cycle().take(requests).map(Ok))
        .try_for_each_concurrent(AT_ONCE, |index| async move {
            let (method, path) = kind.request(company, index);
            let response = api.send(method, &path, None).await?;
            let status = response.status();
            if !status.is_success() {
                return Err(format!("{path}: {status}: {}", response.text().await?).into());
            }
            response.bytes().await?;
            Ok(())
        })
        .await
}

/// Makes many tickets hot, and waits until they are retired as idle.
async fn retire(folder: &Path, company: &Company, many: Range<usize>) -> Outcome<RetireResult> {
    let service = Service::start(&Binary::measured()?, folder, IDLE_AFTER_S)?;
    let api = Api::new(&service, &company.key)?;
    make_hot(&api, company, Kind::Tickets, many.clone(), many.len()).await?;
    let started_at = Instant::now();
    let hot_before = count_hot(&service, Kind::Tickets).await?;
    let before_bytes = usage::resident_bytes(service.pid())?;
    let mut hot_after = hot_before;
    while hot_after > 0.0 && started_at.elapsed() < RETIRE_TIME_MAX {
        tokio::time::sleep(STEADY_INTERVAL).await;
        hot_after = count_hot(&service, Kind::Tickets).await?;
    }
    let seconds = started_at.elapsed().as_secs_f64();
    let after_bytes = wait_for_steady_memory(&service).await?;
    service.stop()?;
    Ok(RetireResult { hot_before, hot_after, before_bytes, after_bytes, seconds })
}

async fn count_hot(service: &Service, kind: Kind) -> Outcome<f64> {
    service.scrape(&hotline::tls::client().build()?).await?.value(kind.metric())
}

/// Resident bytes, once they are steady.
async fn wait_for_steady_memory(service: &Service) -> Outcome<u64> {
    let mut previous = usage::resident_bytes(service.pid())?;
    for _ in 0..STEADY_READS_MAX {
        tokio::time::sleep(STEADY_INTERVAL).await;
        let current = usage::resident_bytes(service.pid())?;
        if current.abs_diff(previous) < STEADY_BYTES {
            return Ok(current);
        }
        previous = current;
    }
    Err("the memory does not become steady".into())
}

impl MemoryResult {
    pub fn verdicts(&self) -> Vec<Verdict> {
        let ticket = self.costs.iter().filter(|cost| cost.kind == Kind::Tickets).map(|cost| Verdict {
            what: "a hot, idle ticket".to_owned(),
            aim: format!("at most {TICKET_BYTES_MAX} bytes"),
            measured: format!("{:.0} bytes", cost.each_bytes),
            // A negative figure is not a measurement: the allocator's memory varies by more than so few tickets need.
            is_met: (0.0..=TICKET_BYTES_MAX).contains(&cost.each_bytes),
        });
        let retired = Verdict {
            what: format!("{} tickets nobody uses for {IDLE_AFTER_S} s", self.many),
            aim: "make room".to_owned(),
            measured: format!("{:.0} hot after {:.0} s", self.retired.hot_after, self.retired.seconds),
            is_met: self.retired.hot_after == 0.0,
        };
        ticket.chain([retired]).collect()
    }
}
