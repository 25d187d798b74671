//! What an installation needs before data is lost: a recent backup, and someone who watches the service.

use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use hotline_persistence::clock;

use crate::cli::findings::Finding;
use crate::service::{Settings, last_backup_at};

/// Maximum age of the last backup, as in the alert rule `HotlineBackupOld`: a day, and two hours for the backup itself.
const BACKUP_AGE_MAX: TimeDelta = TimeDelta::hours(26);

/// The alert rules: in the repository, and in the folder of the Debian package's examples.
const ALERT_RULES: &str =
    "packaging/prometheus/hotline.rules.yml, or /usr/share/doc/hotline/examples/hotline.rules.yml";

pub fn check(settings: &Settings) -> Vec<Finding> {
    vec![check_backup(&settings.data_dir, clock::now()), check_alerts(settings)]
}

fn check_backup(data_dir: &Path, now: DateTime<Utc>) -> Finding {
    const BACKUP: &str = "backup";
    let Some(at) = last_backup_at(data_dir) else {
        return Finding::note(
            BACKUP,
            "none is recorded in the data folder",
            "make one every day with `hotline backup DIR`",
        );
    };
    let age = now - at;
    let found = format!("completed {} h ago, at {}", age.num_hours(), at.format("%Y-%m-%dT%H:%M:%SZ"));
    match age > BACKUP_AGE_MAX {
        true => {
            let next = format!(
                "make one every day with `hotline backup DIR`: none was completed for {} h",
                BACKUP_AGE_MAX.num_hours()
            );
            Finding::problem(BACKUP, found, next)
        }
        false => Finding::ok(BACKUP, found),
    }
}

fn check_alerts(settings: &Settings) -> Finding {
    const ALERTS: &str = "alert rules";
    match settings.metrics_listen {
        Some(address) => Finding::ok(ALERTS, format!("for Prometheus, which reads {address}: {ALERT_RULES}")),
        None => {
            let next = format!("set --metrics-listen, and load into Prometheus {ALERT_RULES}");
            Finding::note(ALERTS, "no metrics are served", next)
        }
    }
}
