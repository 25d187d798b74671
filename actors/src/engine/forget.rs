//! Dropping all that memory holds of a company: what a company's move to another process begins with, and what a process
//! that serves it again begins after.
//!
//! Nobody loses anything by it: what was answered is in the log, and read from the tables afterwards, as after a start.
//! Each part drops its own by a pattern that names every field, so that what is added to a part is dropped or named as
//! what stays.

use std::hash::Hash;
use std::time::Duration;

use actix::Handler;
use actix::dev::ToEnvelope;
use hotline_persistence::{Closed, CompanyId};
use tokio::sync::oneshot;

use super::Engine;
use crate::Refusal;
use crate::registry::{Registered, Registry};
use crate::tickets::Dismiss;

/// How long actors may take to go. They have nothing to do any more; a socket's task may have to be woken first.
const DISMISS_TIME_MAX: Duration = Duration::from_secs(5);

impl Engine {
    /// Drops everything of a company that is `closed`, and has its messages handed over again from the tables. To be
    /// called before the company is open again.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when a provider or the database keeps it from ending. The company is then as it was, but
    /// for actors that start again when they are needed.
    pub async fn forget(&self, company: CompanyId, closed: &Closed) -> Result<(), Refusal> {
        let _resting = Resting { engine: self, company };
        self.drop_all(company, closed).await
    }

    async fn drop_all(&self, company: CompanyId, closed: &Closed) -> Result<(), Refusal> {
        let Self {
            tickets,
            contacts,
            inbound,
            sending,
            schedules,
            campaigns,
            assignment,
            sessions,
            retention,
            base,
            sweeper: _,
            swept: _,
        } = self;
        // These may still have something to record: how a call of a provider ended, that a visitor was there.
        sending.rest(company).await?;
        sessions.forget_company(company).await?;
        schedules.forget_company(company).await?;
        campaigns.forget_company(company).await?;
        closed.shut();
        // What was decided before is in the log by then, and nothing is decided any more.
        base.arbiters.pass().await;
        tickets.forget_company(company).await?;
        base.store.log.reached(base.store.log.last_of(company)).await?;
        sending.forget_company(company);
        inbound.forget_company(company);
        assignment.forget_company(company);
        contacts.forget_company(company);
        retention.forget_company(company);
        base.forget_company(company);
        Ok(())
    }
}

/// A company's messages are not handed over for as long as this lives, however it ends.
struct Resting<'a> {
    engine: &'a Engine,
    company: CompanyId,
}

impl Drop for Resting<'_> {
    fn drop(&mut self) {
        self.engine.sending.go_on(self.company);
        self.engine.schedules.go_on(self.company);
        self.engine.campaigns.go_on(self.company);
    }
}

/// Takes the actors out of their registry, tells them to go, and waits until they have gone.
pub(super) async fn dismissed<K, A>(registry: &Registry<K, A>, which: impl Fn(&K) -> bool) -> Result<(), Refusal>
where
    K: Hash + Eq + Clone,
    A: Registered + Handler<Dismiss>,
    A::Context: ToEnvelope<A, Dismiss>,
{
    let taken = registry.take_out(which).await;
    let going: Vec<oneshot::Receiver<()>> = taken
        .into_iter()
        .map(|actor| {
            let (gone, goes) = oneshot::channel();
            actor.addr.do_send(Dismiss { gone });
            goes
        })
        .collect();
    let all_gone = futures_util::future::join_all(going);
    let in_time = tokio::time::timeout(DISMISS_TIME_MAX, all_gone).await;
    in_time.map(drop).map_err(|_| Refusal::Unavailable("an actor does not end".to_owned()))
}
