//! Records changes made on the command line in the audit log, like those made in the panel. The actor is unknown: it
//! can be anyone who may run the binary on this machine.

use hotline_persistence::tables::audit_log::{self, NewEntry};
use hotline_persistence::tables::companies;
use hotline_persistence::tables::people::{INSTALLATION, PersonId};
use hotline_persistence::{AdminId, CompanyId, PgPool};

use super::{Failure, failure};

/// The unknown actor; no administrator has this id.
const ACTOR: PersonId = PersonId::Admin(AdminId::new(0));

/// The actor's name in the log.
const ACTOR_NAME: &str = "command line";

/// The outcomes in the log: HTTP statuses, like those of requests.
const SUCCEEDED: u16 = 200;
const FAILED: u16 = 400;

/// The record that an action changes.
pub(super) struct Target {
    id: String,
    name: Option<String>,
}

impl Target {
    /// A record with a name.
    pub(super) fn named(id: impl ToString, name: &str) -> Self {
        Self { id: id.to_string(), name: Some(name.to_owned()) }
    }

    /// A record without a name.
    pub(super) fn of(id: impl ToString) -> Self {
        Self { id: id.to_string(), name: None }
    }
}

/// An action that is recorded in the audit log.
pub(super) struct AuditedAction {
    /// The company whose log has the entry; `None` if the requested company does not exist.
    company: Option<CompanyId>,
    /// The action's name in the log; if an HTTP operation does the same, its id.
    action: &'static str,
    /// The id of the record, if it exists before the action.
    target_id: Option<String>,
}

impl AuditedAction {
    /// An action in the installation's log.
    pub(super) fn of_installation(action: &'static str) -> Self {
        Self { company: Some(INSTALLATION), action, target_id: None }
    }

    /// An action in a company's log. Without a company nothing is recorded, because the action itself then fails.
    pub(super) fn of_company(company: Option<CompanyId>, action: &'static str) -> Self {
        Self { company, action, target_id: None }
    }

    /// Adds the existing record that the action changes.
    pub(super) fn on(self, target: impl ToString) -> Self {
        Self { target_id: Some(target.to_string()), ..self }
    }

    /// Runs the action `work`. Its entry is written first, so that no action lacks one. `target_of` finds the changed
    /// record in the result.
    pub(super) async fn run<T>(
        self,
        db: &PgPool,
        work: impl AsyncFnOnce() -> Result<T, Failure>,
        target_of: impl FnOnce(&T) -> Target,
    ) -> Result<T, Failure> {
        let Some(company) = self.company else { return work().await };
        if company != INSTALLATION && companies::find(db, company).await?.is_none() {
            return work().await;
        }
        let target_id = self.target_id.as_deref();
        let entry =
            NewEntry { actor: ACTOR.into(), actor_name: ACTOR_NAME, address: None, action: self.action, target_id };
        let open_entry = audit_log::begin(db, company, entry).await?;
        let outcome = work().await;
        let (status, target) = match &outcome {
            Ok(value) => (SUCCEEDED, Some(target_of(value))),
            Err(_) => (FAILED, None),
        };
        let (id, name) = target.map(|Target { id, name }| (Some(id), name)).unwrap_or_default();
        let end = audit_log::end(db, open_entry, status, (id.as_deref(), name.as_deref())).await;
        if let Err(error) = end {
            // Only a warning: the outcome is still returned, because it may contain a secret that is printed only once.
            failure::print(&format!("warning: the outcome is missing from the audit log: {error}"));
        }
        outcome
    }
}
