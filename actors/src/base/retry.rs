//! Three kinds of retry: at once, after a conflict with another caller; with a pause, while a dependency is
//! unavailable; and with a pause, after any refusal, until a change is finished.

use std::time::Duration;

use hotline_persistence::CompanyId;

use crate::Refusal;
use crate::contacts::ContactCache;

/// Maximum number of attempts after conflicts. Each conflict means that another caller succeeded, so this many in a row
/// are a defect, not a race.
const ATTEMPTS_MAX: usize = 64;

/// The first and the longest pause of [`until_finished`]. A request waits longer than the longest pause for the
/// deletion or merge of its contact to end, so after an outage it need not be refused.
const FINISH_PAUSE_MIN: Duration = Duration::from_millis(250);
const FINISH_PAUSE_MAX: Duration = Duration::from_secs(4);

/// Repeats an attempt while a conflict refuses it. [`Refusal::Retired`] and [`Refusal::ContactChanging`] are always
/// conflicts; after the latter, waits until the contact's deletion or merge has ended. `is_conflict` decides on all
/// other refusals.
///
/// # Errors
/// The final refusal; [`Refusal::Unavailable`] after too many conflicts.
pub(crate) async fn on_conflict<T, F: Future<Output = Result<T, Refusal>>>(
    contacts: &ContactCache,
    company: CompanyId,
    attempt: impl Fn() -> F,
    is_conflict: impl Fn(&Refusal) -> bool,
) -> Result<T, Refusal> {
    for _ in 0..ATTEMPTS_MAX {
        match attempt().await {
            Err(Refusal::Retired) => {}
            Err(Refusal::ContactChanging(contact)) => {
                Box::pin(contacts.marks.wait_until_unmarked((company, contact))).await?
            }
            Err(refusal) if is_conflict(&refusal) => {}
            outcome => return outcome,
        }
    }
    Err(Refusal::Unavailable("too many concurrent changes of the conversation".to_owned()))
}

/// Whether the contact's open ticket has changed: it was closed, or another one was opened.
pub(crate) fn is_slot_conflict(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::TicketClosed(_) | Refusal::AlreadyOpen(_))
}

/// The `is_conflict` of commands that are repeated only after the two refusals that are always conflicts.
pub(crate) fn no_other_conflict(_: &Refusal) -> bool {
    false
}

/// Repeats an attempt, after a pause each time, while it is refused as [`Refusal::Unavailable`] or
/// [`Refusal::Unknown`].
///
/// # Errors
/// Any other refusal.
pub(crate) async fn while_unavailable<T, F: Future<Output = Result<T, Refusal>>>(
    pause: Duration,
    attempt: impl Fn() -> F,
) -> Result<T, Refusal> {
    loop {
        match attempt().await {
            Err(Refusal::Unavailable(reason) | Refusal::Unknown(reason)) => {
                tracing::debug!(reason, "unavailable; will retry")
            }
            outcome => return outcome,
        }
        tokio::time::sleep(pause).await;
    }
}

/// Repeats an attempt after any refusal, until it succeeds: for work that other requests wait for, or whose result must
/// not be lost. Each pause is twice the one before. Outages of the database are logged already; any other cause is
/// logged once, until it changes.
pub(crate) async fn until_finished<T, E: Into<Refusal>, F: Future<Output = Result<T, E>>>(
    company: CompanyId,
    change: &'static str,
    attempt: impl Fn() -> F,
) -> T {
    let (mut pause, mut logged_reason) = (FINISH_PAUSE_MIN, None);
    loop {
        let refusal: Refusal = match attempt().await {
            Ok(finished) => return finished,
            Err(error) => error.into(),
        };
        let is_transient = refusal.is_transient();
        let reason = match refusal {
            Refusal::Defect(reason) => reason,
            refusal => refusal.to_string(),
        };
        if is_transient || logged_reason.as_ref() == Some(&reason) {
            tracing::debug!(reason, change, company.id = %company, "finishing a change will be retried");
        } else {
            tracing::warn!(
                reason, change, company.id = %company,
                "could not finish a change; it is retried, and requests that depend on it wait: correct what the reason names"
            );
            logged_reason = Some(reason);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(FINISH_PAUSE_MAX);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use hotline_persistence::{ContactId, TicketId};

    use super::*;

    const COMPANY: CompanyId = CompanyId::new(1);

    /// The outcome of attempts that fail with these refusals in turn and then succeed, and the number of attempts.
    async fn attempt_with(refusals: &[Refusal], is_conflict: fn(&Refusal) -> bool) -> (Result<(), Refusal>, usize) {
        let (contacts, attempts) = (ContactCache::default(), AtomicUsize::new(0));
        let attempt = || async {
            let number = attempts.fetch_add(1, Ordering::Relaxed);
            refusals.get(number).cloned().map_or(Ok(()), Err)
        };
        let outcome = on_conflict(&contacts, COMPANY, attempt, is_conflict).await;
        (outcome, attempts.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn only_a_conflict_is_retried() {
        let contact_changing = Refusal::ContactChanging(ContactId::new(7));
        assert_eq!(attempt_with(&[Refusal::Retired, contact_changing], no_other_conflict).await, (Ok(()), 3));
        let closed = Refusal::TicketClosed(TicketId::new(7));
        assert_eq!(attempt_with(std::slice::from_ref(&closed), is_slot_conflict).await, (Ok(()), 2));
        assert_eq!(
            attempt_with(std::slice::from_ref(&closed), no_other_conflict).await,
            (Err(closed), 1),
            "only `is_slot_conflict` repeats after a closed ticket"
        );
        let window_closed = Refusal::WindowClosed(None);
        let outcome = attempt_with(std::slice::from_ref(&window_closed), is_slot_conflict).await;
        assert_eq!(outcome, (Err(window_closed), 1));
    }

    #[tokio::test]
    async fn too_many_conflicts_are_refused_as_unavailable() {
        let (outcome, attempts) = attempt_with(&vec![Refusal::Retired; 1000], no_other_conflict).await;
        assert!(matches!(outcome, Err(Refusal::Unavailable(_))), "{outcome:?}");
        assert_eq!(attempts, ATTEMPTS_MAX);
    }

    #[tokio::test]
    async fn an_outage_is_retried_and_any_other_refusal_is_returned() {
        let attempts = AtomicUsize::new(0);
        let attempt = || async {
            match attempts.fetch_add(1, Ordering::Relaxed) {
                0 | 1 => Err::<(), _>(Refusal::Unavailable("the database is unavailable".to_owned())),
                _ => Err(Refusal::NotFound),
            }
        };
        assert_eq!(while_unavailable(Duration::ZERO, attempt).await, Err(Refusal::NotFound));
        assert_eq!(attempts.load(Ordering::Relaxed), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn what_must_be_finished_is_repeated_after_any_refusal_with_pauses_that_grow_to_a_limit() {
        let began_at = tokio::time::Instant::now();
        let attempts = parking_lot::Mutex::new(Vec::new());
        let attempt = || async {
            let mut attempts = attempts.lock();
            attempts.push(began_at.elapsed().as_millis());
            match attempts.len() {
                1 => Err(Refusal::Unavailable("the database is unavailable".to_owned())),
                2..8 => Err(Refusal::Defect("a column is missing".to_owned())),
                count => Ok(count),
            }
        };
        assert_eq!(until_finished(COMPANY, "a test", attempt).await, 8);
        let pauses: Vec<u128> = attempts.lock().windows(2).map(|two| two[1] - two[0]).collect();
        assert_eq!(pauses, [250, 500, 1000, 2000, 4000, 4000, 4000]);
    }
}
