//! Conditions of this process that an operator must know about: the database does not respond, the journal is full, a
//! peer cannot be reached.
//!
//! Each is logged once when it begins and once when it ends, with its duration, and never once per request or attempt.
//! The current ones are also in the metrics. `docs/operate/runbook.md` has a row for each.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Maximum number of conditions that hold at a time, far above the number of processes of a cluster. Further ones are
/// not recorded.
const ACTIVE_MAX: usize = 1024;

/// A kind of condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// PostgreSQL does not respond.
    Database,
    /// PostgreSQL responds, and accepts no changes.
    DatabaseChanges,
    /// PostgreSQL grants too few connections.
    DatabaseConnections,
    /// The journal has no room.
    Journal,
    /// As many connections are open as the limit of open files allows.
    Connections,
    /// Almost no further file can be opened.
    Files,
    /// Files of messages are missing in the store.
    MessageFiles,
    /// The disk of a folder is nearly full.
    Disk,
    /// PostgreSQL has rejected rows that were acknowledged.
    RejectedRows,
    /// Another process of the cluster cannot be reached at its address.
    Peer,
    /// Processes of the cluster use different folders for the files of messages.
    SharedFolder,
    /// Processes of the cluster have the same name.
    NodeName,
}

/// What the log reports about a condition.
#[derive(Debug)]
struct ConditionTexts {
    /// The label in metrics, and the reason in `/health/ready`.
    name: &'static str,
    begins: &'static str,
    ends: &'static str,
    /// What to do.
    action: &'static str,
}

impl Condition {
    /// Every condition.
    pub const ALL: [Self; 12] = [
        Self::Database,
        Self::DatabaseChanges,
        Self::DatabaseConnections,
        Self::Journal,
        Self::Connections,
        Self::Files,
        Self::MessageFiles,
        Self::Disk,
        Self::RejectedRows,
        Self::Peer,
        Self::SharedFolder,
        Self::NodeName,
    ];

    /// The label in metrics, and the reason in `/health/ready`.
    pub fn name(self) -> &'static str {
        self.texts().name
    }

    /// The message of the log line when the condition begins.
    pub fn message(self) -> &'static str {
        self.texts().begins
    }

    /// Whether its beginning is logged as an error, and not as a warning.
    fn is_severe(self) -> bool {
        matches!(
            self,
            Self::Database | Self::DatabaseChanges | Self::DatabaseConnections | Self::Journal | Self::RejectedRows
        )
    }

    fn texts(self) -> &'static ConditionTexts {
        &TEXTS[self as usize]
    }
}

/// In the order of [`Condition::ALL`].
const TEXTS: [ConditionTexts; Condition::ALL.len()] = [
    ConditionTexts {
        // Database
        name: "database",
        begins: "database does not respond",
        ends: "database responds again",
        action: "check that PostgreSQL runs and that this machine can reach it",
    },
    ConditionTexts {
        // DatabaseChanges
        name: "database_changes",
        begins: "database accepts no changes; they are retried",
        ends: "database accepts changes again",
        action: "remove the reason: a full disk, a missing privilege, a read-only server",
    },
    ConditionTexts {
        // DatabaseConnections
        name: "database_connections",
        begins: "too few database connections; requests that wait for one are answered 503",
        ends: "database connections are available again",
        action: "raise max_connections, or the connection limit of the role or database",
    },
    ConditionTexts {
        // Journal
        name: "journal",
        begins: "journal accepts no changes; they are answered 503",
        ends: "journal accepts changes again",
        action: "restore the database or free disk space; --journal-max-size sets the journal's limit",
    },
    ConditionTexts {
        // Connections
        name: "connections",
        begins: "connection limit is reached; new clients wait",
        ends: "connections are available again",
        action: "raise the limit of open files (LimitNOFILE=, ulimit -n), or find the clients that hold connections",
    },
    ConditionTexts {
        // Files
        name: "open_files",
        begins: "file descriptors are nearly used up",
        ends: "file descriptors are available again",
        action: "raise the limit of open files (LimitNOFILE=, ulimit -n)",
    },
    ConditionTexts {
        // MessageFiles
        name: "message_files",
        begins: "message files are missing in their store",
        ends: "message files are available again",
        action: "mount or restore the folder of message files",
    },
    ConditionTexts {
        // Disk
        name: "disk",
        begins: "disk is nearly full; message files are refused",
        ends: "disk has free space again",
        action: "free disk space or enlarge the disk",
    },
    ConditionTexts {
        // RejectedRows
        name: "rejected_rows",
        begins: "database has rejected rows; acknowledged changes are missing in their tables",
        ends: "database has no rejected rows",
        action: "examine the table rejected_changes, and report the reason",
    },
    ConditionTexts {
        // Peer
        name: "peer",
        begins: "process of the cluster cannot be reached; requests for its companies are answered 503",
        ends: "process of the cluster can be reached again",
        action: "check its --cluster-address, and the network between the nodes",
    },
    ConditionTexts {
        // SharedFolder
        name: "shared_folder",
        begins: "processes of the cluster use different folders for message files",
        ends: "processes of the cluster use the same folder for message files",
        action: "mount the same folder on every node, and name it in --media-shared",
    },
    ConditionTexts {
        // NodeName
        name: "node_name",
        begins: "processes of the cluster have the same name",
        ends: "processes of the cluster have different names",
        action: "give each process a --cluster-node of its own",
    },
];

/// A condition that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveCondition {
    /// The condition.
    pub condition: Condition,
    /// The folder, node or database that the condition concerns; it may be empty.
    pub subject: String,
    /// How long it has lasted.
    pub lasted: Duration,
}

#[derive(Debug)]
struct Record {
    began_at: Instant,
    count: u64,
}

/// The conditions that hold now.
#[derive(Debug, Default)]
pub struct ActiveConditions {
    active: Mutex<BTreeMap<(Condition, String), Record>>,
    is_ready: AtomicBool,
}

impl ActiveConditions {
    /// Records that the condition holds. If it has just begun, it is logged with `reason`, which must contain no
    /// secret.
    pub fn begin(&self, condition: Condition, subject: &str, reason: &str) {
        let mut active = self.active.lock();
        let key = (condition, subject.to_owned());
        if active.contains_key(&key) || active.len() >= ACTIVE_MAX {
            return;
        }
        active.insert(key, Record { began_at: Instant::now(), count: 0 });
        drop(active);
        let ConditionTexts { name, begins, action, .. } = *condition.texts();
        if condition.is_severe() {
            tracing::error!(state = name, subject, reason, action, "{begins}");
        } else {
            tracing::warn!(state = name, subject, reason, action, "{begins}");
        }
    }

    /// Adds to the condition's count of affected things, for example of refused requests.
    pub fn add(&self, condition: Condition, subject: &str, count: u64) {
        if let Some(record) = self.active.lock().get_mut(&(condition, subject.to_owned())) {
            record.count += count;
        }
    }

    /// Records that the condition does not hold. If it held until now, its end is logged.
    pub fn end(&self, condition: Condition, subject: &str) {
        let Some(Record { began_at, count }) = self.active.lock().remove(&(condition, subject.to_owned())) else {
            return;
        };
        let ConditionTexts { name, ends, .. } = *condition.texts();
        let lasted_s = began_at.elapsed().as_secs();
        // Only some conditions count something.
        let count = (count > 0).then_some(count);
        tracing::info!(state = name, subject, lasted_s, count, "{ends}");
    }

    /// Drops a condition for subjects that no longer exist, without logging an end.
    pub fn forget(&self, condition: Condition, exists: impl Fn(&str) -> bool) {
        self.active.lock().retain(|(recorded, subject), _| *recorded != condition || exists(subject));
    }

    /// Whether the condition holds for any subject.
    pub fn holds(&self, condition: Condition) -> bool {
        self.active.lock().keys().any(|(recorded, _)| *recorded == condition)
    }

    /// The conditions that hold.
    pub fn active(&self) -> Vec<ActiveCondition> {
        let active = self.active.lock();
        let active = active.iter().map(|((condition, subject), record)| ActiveCondition {
            condition: *condition,
            subject: subject.clone(),
            lasted: record.began_at.elapsed(),
        });
        active.collect()
    }

    /// Sets whether the service should receive requests.
    pub fn set_ready(&self, is_ready: bool) {
        self.is_ready.store(is_ready, Ordering::Release);
    }

    /// Whether the service should receive requests, as last observed.
    pub fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_begins_and_ends_once_for_each_subject() {
        let conditions = ActiveConditions::default();
        for subject in ["one", "two", "one"] {
            conditions.begin(Condition::Peer, subject, "refused");
        }
        conditions.begin(Condition::Journal, "", "full");
        let subjects = || conditions.active().into_iter().map(|active| active.subject).collect::<Vec<_>>();
        assert_eq!(subjects(), ["", "one", "two"]);
        conditions.forget(Condition::Peer, |subject| subject == "two");
        assert_eq!(subjects(), ["", "two"]);
        conditions.end(Condition::Peer, "one");
        conditions.end(Condition::Peer, "two");
        assert!(conditions.holds(Condition::Journal) && !conditions.holds(Condition::Peer));
    }

    #[test]
    fn the_number_of_conditions_is_limited() {
        let conditions = ActiveConditions::default();
        for subject in 0..=ACTIVE_MAX {
            conditions.begin(Condition::Peer, &subject.to_string(), "refused");
        }
        assert_eq!(conditions.active().len(), ACTIVE_MAX);
    }

    #[test]
    fn every_condition_has_a_name_and_texts_of_its_own() {
        assert!(Condition::ALL.iter().enumerate().all(|(index, condition)| *condition as usize == index));
        let names: std::collections::BTreeSet<_> = Condition::ALL.map(Condition::name).into();
        let texts: std::collections::BTreeSet<_> =
            Condition::ALL.iter().flat_map(|condition| [condition.texts().begins, condition.texts().ends]).collect();
        assert_eq!((names.len(), texts.len()), (Condition::ALL.len(), 2 * Condition::ALL.len()));
    }
}
