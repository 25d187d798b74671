//! Everything that runs during a measurement: Hotline on a private PostgreSQL as it starts one itself, the yardsticks,
//! and the ids that requests use. All of it is removed with its folder.

use std::fs::Permissions;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hotline_persistence::{PgPool, pool};
use hotline_postgres::{Cluster, ClusterOptions};
use serde_json::json;
use tempfile::TempDir;

use crate::answers::Answers;
use crate::figures::Round;
use crate::generator::Load;
use crate::options::GrownArgs;
use crate::outcome::{Failure, Outcome};
use crate::scenario::Server;
use crate::seed::{Api, Company};
use crate::service::{Binary, NEVER_S, Service};
use crate::usage::Watched;
use crate::yardstick::{self, Process, Settings};
use crate::{disk, grown, subjects};

/// How long the tables may be behind after a measurement before it counts as a defect.
const SETTLE_TIME_MAX: Duration = Duration::from_secs(300);

/// How often this is checked.
const SETTLE_INTERVAL: Duration = Duration::from_millis(50);

/// The database of the yardstick (b), beside Hotline's.
const PLAIN_DATABASE: &str = "plain";

/// The fields are in the order in which they must be dropped.
pub struct Stage {
    yardstick: Process,
    pub service: Service,
    pub company: Company,
    pub api: Api,
    /// Hotline's tables.
    pub db: PgPool,
    /// The tables of (b).
    plain: PgPool,
    /// Contacts without a ticket.
    pub pool: Vec<i64>,
    pub watched: Watched,
    http: reqwest::Client,
    folder: TempDir,
}

/// A new folder on a disk, which PostgreSQL's user may enter too.
pub fn create_folder() -> Outcome<TempDir> {
    let folder = tempfile::Builder::new().prefix("hotline-load-").tempdir()?;
    disk::check_durable(folder.path())?;
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o711))?;
    Ok(folder)
}

/// Hotline's private PostgreSQL, which must be running.
pub async fn open_postgres(folder: &Path) -> Outcome<Cluster> {
    Ok(Cluster::open(ClusterOptions::new(folder)).await?)
}

/// Starts a private PostgreSQL, as Hotline does, for processes that share it.
pub async fn start_postgres(folder: &Path) -> Outcome<Cluster> {
    Ok(Cluster::start(ClusterOptions::new(folder)).await?)
}

impl Stage {
    /// Starts and seeds everything. `pool_size` is the number of contacts without a ticket; with `grown` there is a
    /// year of data.
    pub async fn set_up(binary: &Binary, tickets: usize, pool_size: usize, grown: Option<&GrownArgs>) -> Outcome<Self> {
        let folder = create_folder()?;
        let began = Instant::now();
        // Actors stay hot for the whole run, so that figures do not depend on which of them are.
        let (service, mut company, api) = match grown {
            Some(options) => grown::start::start(binary, folder.path(), options).await?,
            None => {
                let service = Service::start(binary, folder.path(), NEVER_S)?;
                let (company, api) = Company::create(&service).await?;
                (service, company, api)
            }
        };
        let channel = company.channel;
        company.add_conversations(&api, channel, tickets).await?;

        let cluster = open_postgres(folder.path()).await?;
        let options = cluster.connect_options();
        let db = pool::connect(options.clone());
        // One more contact, whose ticket is opened and closed to record the answers.
        let mut pool = company.insert_pool(&db, pool_size + 1).await?;
        let spare = pool.pop().ok_or("no contact was made")?;
        let answers = Answers::record(&api, &company, spare).await?;
        let plain = yardstick::prepare(&db, options.database(PLAIN_DATABASE), &company).await?;
        let settings = Settings {
            database_url: cluster.url(),
            plain_database: PLAIN_DATABASE.to_owned(),
            company: company.id,
            answers,
        };
        let yardstick = Process::start(folder.path(), &settings)?;
        sqlx::query("vacuum analyze").execute(&db).await?;
        let postgres = cluster.pid().ok_or("PostgreSQL has no process")?;
        let watched = Watched { hotline: service.pid(), postgres, yardstick: Some(yardstick.pid()) };
        // No connection is kept: the listener of the metrics closes those idle for five seconds, as long as some steps
        // take.
        let http = hotline::tls::client().pool_max_idle_per_host(0).build()?;
        let stage = Self { yardstick, service, company, api, db, plain, pool, watched, http, folder };
        stage.settle().await?;
        eprintln!("{tickets} tickets, {pool_size} contacts beside them: made in {:.1?}", began.elapsed());
        Ok(stage)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes the file with the ids that the scripts use, and returns its path.
    pub fn subjects(&self, contacts: &[i64], closing: &[i64]) -> Outcome<PathBuf> {
        let path = self.folder.path().join("subjects.lua");
        subjects::write(&path, &self.company, contacts, closing)?;
        Ok(path)
    }

    /// The address of a server.
    pub fn address(&self, server: Server) -> SocketAddr {
        if server == Server::Hotline { self.service.address } else { self.yardstick.address }
    }

    /// Runs a load; fails if a request failed, or if the tables do not have the messages that were sent.
    pub async fn measure(&self, load: &Load<'_>) -> Outcome<Round> {
        let messages = self.count_messages(load.server).await?;
        let before = self.watched.cpu()?;
        let counted = load.run().await?;
        let cpu = self.watched.cpu()?.since(before);
        let memory = self.watched.memory()?;
        let behind_s = self.settle().await?.as_secs_f64();
        let what = format!("{} on {}", load.scenario.title(), load.server.title());
        if counted.errors.total() > 0 {
            return Err(self.failure(&format!("{what}: {:?}", counted.errors)).await);
        }
        if counted.requests == 0 {
            return Err(format!("{what}: nothing was answered").into());
        }
        if let (Some(each), Some(before), Some(after)) =
            (load.scenario.messages_per_request(), messages, self.count_messages(load.server).await?)
        {
            // The last requests may have been carried out without the generator waiting for their answers.
            let least = counted.requests * each;
            let most = (counted.requests + u64::from(load.connections)) * each;
            let made = u64::try_from(after - before)?;
            if !(least..=most).contains(&made) {
                return Err(format!("{what}: {least} were answered, {made} are in the table").into());
            }
        }
        Ok(Round { counted, cpu, memory, behind_s })
    }

    /// Number of messages in the tables of a server; `None` if it writes none.
    async fn count_messages(&self, server: Server) -> Outcome<Option<i64>> {
        let db = match server {
            Server::Hotline => &self.db,
            Server::Plain => &self.plain,
            Server::Bare | Server::SameSql => return Ok(None),
        };
        Ok(Some(sqlx::query_scalar("select count(*) from messages").fetch_one(db).await?))
    }

    /// The failure, with the requests that the service refused.
    async fn failure(&self, what: &str) -> Failure {
        match self.service.scrape(&self.http).await {
            Ok(metrics) => format!("{what}\n{}", metrics.refused().join("\n")).into(),
            Err(failure) => format!("{what}; and the service shows no metrics: {failure}").into(),
        }
    }

    /// A sample of the service's metrics.
    pub async fn figure(&self, sample: &str) -> Outcome<f64> {
        self.service.scrape(&self.http).await?.value(sample)
    }

    /// Waits until the tables have everything, so that no writes fall into the next measurement; returns how long it
    /// took.
    pub async fn settle(&self) -> Outcome<Duration> {
        let began = Instant::now();
        while self.figure("hotline_flush_pending_entries").await? > 0.0 {
            if began.elapsed() > SETTLE_TIME_MAX {
                return Err(format!("the tables are behind after {SETTLE_TIME_MAX:?}").into());
            }
            tokio::time::sleep(SETTLE_INTERVAL).await;
        }
        Ok(began.elapsed())
    }

    /// The tickets of the pool that are open.
    pub async fn open_pool_tickets(&self) -> Outcome<Vec<i64>> {
        let sql =
            "select id from tickets where company_id = $1 and status = 'open' and contact_id = any($2) order by id";
        Ok(sqlx::query_scalar(sql).bind(self.company.id).bind(&self.pool).fetch_all(&self.db).await?)
    }

    /// Closes the tickets of the pool that are open.
    pub async fn close_pool_tickets(&self) -> Outcome<()> {
        let wrapup = json!({"wrapupTypeId": self.company.wrapup_type});
        let close = |ticket: &i64| (format!("/tickets/{ticket}/close"), wrapup.clone());
        self.api.post_each(self.open_pool_tickets().await?, close).await?;
        self.settle().await?;
        Ok(())
    }

    /// Reopens the tickets that the mix left closed, so that every mix begins alike.
    pub async fn reopen_changed(&self) -> Outcome<()> {
        let (changing, _) = subjects::split(&self.company.tickets);
        let sql = "select id from tickets where company_id = $1 and status = 'closed' and id = any($2)";
        let closed: Vec<i64> = sqlx::query_scalar(sql).bind(self.company.id).bind(changing).fetch_all(&self.db).await?;
        self.api.post_each(closed, |ticket| (format!("/tickets/{ticket}/reopen"), json!({}))).await?;
        self.settle().await?;
        Ok(())
    }

    pub async fn postgres_version(&self) -> Outcome<String> {
        Ok(sqlx::query_scalar("show server_version").fetch_one(&self.db).await?)
    }

    /// Stops everything, and removes it.
    pub async fn tear_down(self) -> Outcome<()> {
        Ok(self.stop().await?.close()?)
    }

    /// Stops everything; fails if the service did not end with success. Returns its folder.
    pub async fn stop(self) -> Outcome<TempDir> {
        let Self { yardstick, service, db, plain, folder, .. } = self;
        drop(yardstick);
        db.close().await;
        plain.close().await;
        service.stop()?;
        Ok(folder)
    }
}
