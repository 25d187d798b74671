//! Two kinds of retry: immediately, after a conflict with another caller; and after a pause, while a dependency is
//! unavailable.

use std::time::Duration;

use hotline_persistence::CompanyId;

use crate::Refusal;
use crate::contacts::ContactCache;

/// Maximum number of attempts after conflicts. Each conflict means that another caller succeeded, so this many in a row
/// are a defect, not a race.
const ATTEMPTS_MAX: usize = 64;

/// Repeats an attempt while a conflict refuses it. [`Refusal::Retired`] and [`Refusal::ContactLeaving`] are always
/// conflicts; after the latter, waits until the contact's deletion or merge has ended. `is_conflict` decides on all
/// others.
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
            Err(Refusal::ContactLeaving(contact)) => {
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
        let contact_leaving = Refusal::ContactLeaving(ContactId::new(7));
        assert_eq!(attempt_with(&[Refusal::Retired, contact_leaving], no_other_conflict).await, (Ok(()), 3));
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
}
