//! The time of the last backup, from the file that `hotline backup` writes in the data folder.

use std::io::Read;
use std::path::Path;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use tokio::task::spawn_blocking;

use super::Monitor;

/// The file's name in the data folder.
pub(super) const FILE: &str = "backup.json";

/// When the last backup of this data folder was completed; `None` if none was, or its record is unreadable.
pub fn last_backup_at(data_dir: &Path) -> Option<DateTime<Utc>> {
    completed_at(&data_dir.join(FILE))
}

/// Maximum size of the file that is read.
const BYTES_MAX: u64 = 64 << 10;

/// The part of the file that is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Backup {
    completed_at: DateTime<Utc>,
}

/// The time in the file; `None` if there is no file, or no time in it.
fn completed_at(path: &Path) -> Option<DateTime<Utc>> {
    let mut text = String::new();
    std::fs::File::open(path).ok()?.take(BYTES_MAX).read_to_string(&mut text).ok()?;
    serde_json::from_str::<Backup>(&text).ok().map(|backup| backup.completed_at)
}

impl Monitor {
    pub(super) async fn observe_backup(&self) {
        let path = self.backup_file.clone();
        let Ok(Some(time)) = spawn_blocking(move || completed_at(&path)).await else { return };
        self.app.metrics.host.set_backup_completed_at_s(time.timestamp());
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use super::*;

    #[test]
    fn the_time_of_the_last_backup_is_read_and_other_files_are_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(FILE);
        assert_eq!(completed_at(&path), None);
        for (text, seconds) in [
            (r#"{"completedAt": "1970-01-01T00:01:00Z", "folder": "/backup"}"#, Some(60)),
            (r#"{"completedAt": 7}"#, None),
            ("", None),
        ] {
            std::fs::write(&path, text).expect("written");
            assert_eq!(completed_at(&path).map(|time| time.timestamp()), seconds, "{text}");
        }
    }
}
