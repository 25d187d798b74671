//! Observes the conditions that an operator must know about ([`crate::telemetry::conditions`]): every second whether
//! the database responds and changes are accepted, every few seconds disks and files, every minute rejected rows.
//!
//! The monitor changes nothing, and no request waits for it.

mod backup;
mod disks;
mod files;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use actix_web::web::Data;
use hotline_persistence::probe::{Finding, Probe};
use hotline_persistence::{Durability, error, rejected};
use tokio::time::{MissedTickBehavior, interval};

pub use self::backup::last_backup_at;
use self::disks::ObservedDisk;
use self::files::MissingFile;
use crate::app::App;
use crate::telemetry::conditions::{ActiveConditions, Condition};

/// How often the database, and everything that is in memory, is observed.
const OBSERVE_EVERY: Duration = Duration::from_secs(1);

/// Disks, descriptors and files are observed once in this many observations.
const OBSERVATIONS_PER_DISK_CHECK: u64 = 5;

/// The table of rejected rows is observed once in this many observations.
const OBSERVATIONS_PER_TABLE_CHECK: u64 = 60;

/// Time without an observed shortage after which database connections count as sufficient again.
const QUIET_TIME: Duration = Duration::from_secs(10);

/// What is observed besides the service itself.
pub(super) struct MonitorOptions {
    /// The folder of the journal.
    pub data_dir: PathBuf,
    /// The folder of message files.
    pub media_dir: PathBuf,
    /// Free bytes below which files are refused; 0: no limit.
    pub free_bytes_min: u64,
    /// When changes count as durable.
    pub durability: Durability,
}

/// Observes a running service.
pub(super) struct Monitor {
    app: Data<App>,
    probe: Probe,
    database: String,
    durability: Durability,
    disks: Vec<ObservedDisk>,
    /// The file in which a backup records its completion.
    backup_file: PathBuf,
    missing_file: Option<MissingFile>,
    /// Whether the database responded at the last observation.
    has_responded: bool,
    /// Whether the database accepted changes at the last observation.
    has_accepted_changes: bool,
    /// [`error::connection_timeouts`] at the last observation.
    connection_timeouts: u64,
    /// When a shortage of connections was last observed.
    shortage_at: Option<Instant>,
    /// The changes that the log has refused, at the last observation.
    refused_changes: u64,
}

impl Monitor {
    pub(super) fn new(app: Data<App>, options: MonitorOptions) -> Self {
        let probe = app.engine.store().probe();
        let backup_file = options.data_dir.join(backup::FILE);
        let disk = |name, folder| ObservedDisk::of(name, folder, options.free_bytes_min);
        let disks = vec![disk("journal", options.data_dir), disk("media", options.media_dir)];
        Self {
            database: probe.address(),
            probe,
            durability: options.durability,
            disks,
            backup_file,
            missing_file: None,
            has_responded: true,
            has_accepted_changes: true,
            connection_timeouts: error::connection_timeouts(),
            shortage_at: None,
            refused_changes: app.engine.store().log.refused_count(),
            app,
        }
    }

    /// Observes until the service stops.
    pub(super) async fn run(mut self) {
        let mut ticks = interval(OBSERVE_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for number in 0_u64.. {
            ticks.tick().await;
            let finding = self.probe.check().await;
            // The next check starts a whole interval after this one ended, even if this one took long: an outage that
            // it found is reported at least for that interval.
            ticks.reset();
            if self.app.is_stopping() {
                return;
            }
            self.observe_database(finding);
            self.observe_journal();
            self.observe_connections();
            self.observe_readiness();
            if number.is_multiple_of(OBSERVATIONS_PER_DISK_CHECK) {
                self.observe_descriptors();
                self.observe_disks().await;
                self.observe_backup().await;
                if self.has_responded {
                    self.observe_files().await;
                }
            }
            if number.is_multiple_of(OBSERVATIONS_PER_TABLE_CHECK) && self.has_responded {
                self.observe_rejected_rows().await;
            }
        }
    }

    fn conditions(&self) -> &ActiveConditions {
        &self.app.metrics.conditions
    }

    fn observe_database(&mut self, finding: Finding) {
        let timeouts = error::connection_timeouts();
        let has_timed_out = std::mem::replace(&mut self.connection_timeouts, timeouts) != timeouts;
        let (conditions, database) = (&self.app.metrics.conditions, self.database.as_str());
        let queue = self.app.engine.store().log.queue();
        let responded_before = std::mem::replace(&mut self.has_responded, !matches!(finding, Finding::Fails(_)));
        let shortage = match finding {
            Finding::Fails(reason) => {
                // An outage explains everything else about the database.
                conditions.begin(Condition::Database, database, &reason);
                conditions.end(Condition::DatabaseChanges, database);
                (self.has_accepted_changes, self.shortage_at) = (true, None);
                return conditions.end(Condition::DatabaseConnections, database);
            }
            Finding::TooManyConnections(reason) => Some(reason),
            // Requests that waited during an outage time out shortly after it, so they are not counted.
            Finding::Responds if has_timed_out && responded_before => Some("requests timed out".to_owned()),
            Finding::Responds => None,
        };
        conditions.end(Condition::Database, database);
        let accepted_before = std::mem::replace(&mut self.has_accepted_changes, queue.is_up());
        match (accepted_before, self.has_accepted_changes) {
            // Not at the first failure: the connection may just have been lost.
            (false, false) => conditions.begin(Condition::DatabaseChanges, database, &queue.last_failure()),
            (_, true) => conditions.end(Condition::DatabaseChanges, database),
            (true, false) => {}
        }
        if let Some(reason) = shortage {
            conditions.begin(Condition::DatabaseConnections, database, &reason);
            self.shortage_at = Some(Instant::now());
        } else if self.shortage_at.is_none_or(|at| at.elapsed() > QUIET_TIME) {
            conditions.end(Condition::DatabaseConnections, database);
        }
    }

    fn observe_journal(&mut self) {
        let log = &self.app.engine.store().log;
        let refused_count = log.refused_count();
        let new_refusals = refused_count - std::mem::replace(&mut self.refused_changes, refused_count);
        if self.durability == Durability::Database {
            // Without a journal, changes are refused because of the database, which `observe_database` reports.
            return;
        }
        let (conditions, room) = (self.conditions(), log.check_room());
        if let Err(error) = &room {
            conditions.begin(Condition::Journal, "", &error.to_string());
        } else if new_refusals > 0 {
            conditions.begin(Condition::Journal, "", "it was full for a moment");
        }
        conditions.add(Condition::Journal, "", new_refusals);
        if room.is_ok() && new_refusals == 0 {
            conditions.end(Condition::Journal, "");
        }
    }

    fn observe_connections(&self) {
        let connections = &self.app.metrics.connections;
        let (open, limit) = (connections.open(), connections.limit());
        if limit > 0 && open >= limit {
            self.conditions().begin(Condition::Connections, "", &format!("{open} of {limit} connections are open"));
        } else if open < limit - limit / 10 {
            self.conditions().end(Condition::Connections, "");
        }
    }

    fn observe_readiness(&self) {
        self.conditions().set_ready(self.app.is_ready());
    }

    async fn observe_rejected_rows(&self) {
        let Ok(has_rows) = rejected::has_rows(&self.app.engine.store().housekeeping).await else { return };
        if has_rows {
            self.conditions().begin(Condition::RejectedRows, &self.database, "the table rejected_changes has rows");
        } else {
            self.conditions().end(Condition::RejectedRows, &self.database);
        }
    }
}
