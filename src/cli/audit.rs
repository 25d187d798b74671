//! Records the changes of the command line in the audit log, as those of the panel are. The actor is unknown: anyone who may
//! run the binary on this machine.

use hotline_persistence::tables::audit_log::{self, NewEntry};
use hotline_persistence::tables::companies;
use hotline_persistence::tables::people::{INSTALLATION, PersonId};
use hotline_persistence::{AdminId, CompanyId, PgPool};

use super::{Failure, failure};

/// The actor: no administrator has this id.
const ACTOR: PersonId = PersonId::Admin(AdminId::new(0));

/// The actor's name in the log.
const ACTOR_NAME: &str = "command line";

/// The outcomes in the log: the statuses that the same operation has over HTTP.
const SUCCEEDED: u16 = 200;
const FAILED: u16 = 400;

/// The record that an action changes: its id, and its name if it has one.
pub(super) struct Target(String, Option<String>);

impl Target {
    /// A record with a name.
    pub(super) fn named(id: impl ToString, name: &str) -> Self {
        Self(id.to_string(), Some(name.to_owned()))
    }

    /// A record without one.
    pub(super) fn of(id: impl ToString) -> Self {
        Self(id.to_string(), None)
    }
}

/// An action that is recorded in the audit log.
pub(super) struct AuditedAction {
    /// The company of the log; `None`: there is no such company.
    company: Option<CompanyId>,
    /// The id of the operation that does the same over HTTP, if there is one.
    action: &'static str,
    target: Option<String>,
}

impl AuditedAction {
    /// In the installation's log.
    pub(super) fn of_installation(action: &'static str) -> Self {
        Self { company: Some(INSTALLATION), action, target: None }
    }

    /// In a company's log. Without a company nothing is recorded, because the action itself then fails.
    pub(super) fn of_company(company: Option<CompanyId>, action: &'static str) -> Self {
        Self { company, action, target: None }
    }

    /// On an existing record.
    pub(super) fn on(self, target: impl ToString) -> Self {
        Self { target: Some(target.to_string()), ..self }
    }

    /// Runs the action. Its entry is written first, so that no action lacks one.
    pub(super) async fn run<T>(
        self,
        db: &PgPool,
        work: impl AsyncFnOnce() -> Result<T, Failure>,
        target: impl FnOnce(&T) -> Target,
    ) -> Result<T, Failure> {
        let Some(company) = self.company else { return work().await };
        if company != INSTALLATION && companies::find(db, company).await?.is_none() {
            return work().await;
        }
        let target_id = self.target.as_deref();
        let entry =
            NewEntry { actor: ACTOR.into(), actor_name: ACTOR_NAME, address: None, action: self.action, target_id };
        let open_entry = audit_log::begin(db, company, entry).await?;
        let outcome = work().await;
        let (status, target) = match &outcome {
            Ok(value) => (SUCCEEDED, Some(target(value))),
            Err(_) => (FAILED, None),
        };
        let (id, name) = target.map(|Target(id, name)| (Some(id), name)).unwrap_or_default();
        let end = audit_log::end(db, open_entry, status, (id.as_deref(), name.as_deref())).await;
        if let Err(error) = end {
            // Not an error: the outcome may contain a secret that is printed only once.
            failure::print(&format!("warning: the outcome is missing from the audit log: {error}"));
        }
        outcome
    }
}
