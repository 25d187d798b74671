//! Notifies listeners of new events per company. Nothing is stored for a company without listeners.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;
use tokio::sync::watch;

use crate::{CompanyId, LoggedEventId};

/// Notifies listeners of new events.
#[derive(Debug, Default)]
pub struct EventNews {
    companies: DashMap<CompanyId, watch::Sender<EventState>>,
    listener_count: AtomicUsize,
}

/// What the listeners of a company watch.
#[derive(Clone, Copy, Debug)]
struct EventState {
    /// The last event that listeners were notified of.
    last: LoggedEventId,
    /// Incremented with each notification. It starts at 1, so that readers can use 0 for "nothing read yet".
    version: u64,
    /// Incremented when something that appears in earlier events was deleted or erased.
    removals: u64,
}

impl EventNews {
    /// Starts listening to a company: later notifications are received.
    pub fn listen(self: &Arc<Self>, company: CompanyId) -> EventListener {
        let sender = self.companies.entry(company).or_insert_with(|| {
            let initial = EventState { last: LoggedEventId::new(0), version: 1, removals: 0 };
            watch::Sender::new(initial)
        });
        let receiver = sender.subscribe();
        drop(sender);
        self.listener_count.fetch_add(1, Ordering::AcqRel);
        EventListener { news: self.clone(), company, receiver: Some(receiver) }
    }

    /// Number of listeners.
    pub fn listener_count(&self) -> usize {
        self.listener_count.load(Ordering::Acquire)
    }

    /// Whether a company has listeners.
    pub fn has_listener(&self, company: CompanyId) -> bool {
        self.listener_count() > 0 && self.companies.contains_key(&company)
    }

    /// Notifies listeners that a company's events up to this one can be read.
    pub fn publish(&self, company: CompanyId, last: LoggedEventId) {
        if self.listener_count() > 0
            && let Some(sender) = self.companies.get(&company)
        {
            sender.send_modify(|state| {
                state.last = last.max(state.last);
                state.version += 1;
            });
        }
    }

    /// Reports that something that appears in earlier events of a company was deleted or erased: events that were read
    /// before must no longer be shown. Wakes no listener, because there is nothing new to read.
    pub fn publish_removal(&self, company: CompanyId) {
        if self.listener_count() > 0
            && let Some(sender) = self.companies.get(&company)
        {
            sender.send_if_modified(|state| {
                state.removals += 1;
                false
            });
        }
    }

    /// Makes all listeners check again: notifications may have been missed, including those of removals.
    pub fn publish_all(&self) {
        self.companies.iter().for_each(|sender| {
            sender.send_modify(|state| {
                state.version += 1;
                state.removals += 1;
            });
        });
    }
}

/// A listener to a company.
#[derive(Debug)]
pub struct EventListener {
    news: Arc<EventNews>,
    company: CompanyId,
    /// `Some` until this is dropped.
    receiver: Option<watch::Receiver<EventState>>,
}

impl EventListener {
    /// Waits until there has been a notification since the last call, or since listening began.
    pub async fn changed(&mut self) {
        match &mut self.receiver {
            // The sender exists as long as there are listeners.
            Some(receiver) => drop(receiver.changed().await),
            None => std::future::pending().await,
        }
    }

    /// The last event that listeners were notified of; 0 if there was none.
    pub fn last(&self) -> LoggedEventId {
        self.receiver.as_ref().map_or(LoggedEventId::new(0), |receiver| receiver.borrow().last)
    }

    /// The version of the last notification: it changes once there is more to read.
    pub fn version(&self) -> u64 {
        self.receiver.as_ref().map_or(0, |receiver| receiver.borrow().version)
    }

    /// The number of removals so far: once it changes, events that were read before must no longer be shown.
    pub fn removals(&self) -> u64 {
        self.receiver.as_ref().map_or(0, |receiver| receiver.borrow().removals)
    }
}

impl Drop for EventListener {
    fn drop(&mut self) {
        drop(self.receiver.take());
        self.news.listener_count.fetch_sub(1, Ordering::AcqRel);
        self.news.companies.remove_if(&self.company, |_, sender| sender.receiver_count() == 0);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const ONE: CompanyId = CompanyId::new(1);
    const OTHER: CompanyId = CompanyId::new(2);

    #[tokio::test]
    async fn listeners_are_notified_of_their_company_and_leave_no_state() {
        let news = Arc::<EventNews>::default();
        let (mut first, second) = (news.listen(ONE), news.listen(ONE));
        assert!(news.has_listener(ONE) && !news.has_listener(OTHER));
        news.publish(OTHER, LoggedEventId::new(3));
        assert!(first.changed().now_or_never().is_none(), "events of another company wake no listener");
        news.publish(ONE, LoggedEventId::new(7));
        news.publish(ONE, LoggedEventId::new(5));
        first.changed().await;
        assert_eq!(first.last(), LoggedEventId::new(7), "the last id never decreases");
        news.publish_all();
        first.changed().await;
        let removals = second.removals();
        news.publish_removal(OTHER);
        assert_eq!(second.removals(), removals, "removals of another company are not counted");
        news.publish_removal(ONE);
        assert_eq!(second.removals(), removals + 1, "the removal is counted");
        assert!(first.changed().now_or_never().is_none(), "a removal wakes no listener");
        drop(first);
        assert!(news.has_listener(ONE));
        drop(second);
        assert_eq!((news.has_listener(ONE), news.listener_count(), news.companies.len()), (false, 0, 0));
    }
}
