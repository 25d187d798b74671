//! What the command line does is in the audit log, as what people do is. Who it was, the log does not know: whoever may run
//! it on this machine.

use hotline_persistence::tables::audit_log::{self, NewEntry};
use hotline_persistence::tables::companies;
use hotline_persistence::tables::people::{INSTALLATION, PersonId};
use hotline_persistence::{AdminId, CompanyId, PgPool};

use super::{Failure, tell};

/// Who acts: no administrator has this id.
const ACTOR: PersonId = PersonId::Admin(AdminId::new(0));

/// What they are called.
const ACTOR_NAME: &str = "command line";

/// What is noted of an act that was done, and of one that was refused: the statuses of the same over HTTP.
const DONE: u16 = 200;
const REFUSED: u16 = 400;

/// What an act is done to: its id, and what it is called as far as it has a name.
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

/// An act that is to be kept.
pub(super) struct Act {
    /// In whose log; none: there is no such company.
    company: Option<CompanyId>,
    /// What: the id of the operation that does the same over HTTP, where one does.
    action: &'static str,
    target: Option<String>,
}

impl Act {
    /// In the installation's log.
    pub(super) fn of_installation(action: &'static str) -> Self {
        Self { company: Some(INSTALLATION), action, target: None }
    }

    /// In a company's log, if it is known whose; what is of nobody is refused by what does it.
    pub(super) fn of_company(company: Option<CompanyId>, action: &'static str) -> Self {
        Self { company, action, target: None }
    }

    /// To a record that is there.
    pub(super) fn on(self, target: impl ToString) -> Self {
        Self { target: Some(target.to_string()), ..self }
    }

    /// Does it. Its entry is written before it is begun, so that nothing is done that has none.
    pub(super) async fn kept<T>(
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
        let begun = audit_log::begin(db, company, entry).await?;
        let outcome = work().await;
        let (status, made) = match &outcome {
            Ok(done) => (DONE, Some(target(done))),
            Err(_) => (REFUSED, None),
        };
        let (id, name) = made.map(|Target(id, name)| (Some(id), name)).unwrap_or_default();
        let ended = audit_log::end(db, begun, status, (id.as_deref(), name.as_deref())).await;
        if let Err(error) = ended {
            // What was done may have answered a secret that is seen once: that comes first.
            tell(&format!("warning: the outcome is missing from the audit log: {error}"));
        }
        outcome
    }
}
