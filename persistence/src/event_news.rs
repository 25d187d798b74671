//! Notifies listeners of new events per company. Nothing is stored for a company without listeners.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;
use tokio::sync::watch;

use crate::{CompanyId, LoggedEventId};

/// News about the log of events.
#[derive(Debug, Default)]
pub struct EventNews {
    companies: DashMap<CompanyId, watch::Sender<Known>>,
    listening: AtomicUsize,
}

/// The known state of a company's events.
#[derive(Clone, Copy, Debug)]
struct Known {
    last: LoggedEventId,
    /// Incremented with each notification.
    version: u64,
}

impl EventNews {
    /// Starts listening to a company: later notifications are received.
    pub fn listen(self: &Arc<Self>, company: CompanyId) -> Listening {
        let known = self.companies.entry(company).or_insert_with(|| {
            let nothing = Known { last: LoggedEventId::new(0), version: 1 };
            watch::Sender::new(nothing)
        });
        let heard = known.subscribe();
        drop(known);
        self.listening.fetch_add(1, Ordering::AcqRel);
        Listening { news: self.clone(), company, heard: Some(heard) }
    }

    /// Number of listeners.
    pub fn listening(&self) -> usize {
        self.listening.load(Ordering::Acquire)
    }

    /// Whether a company has listeners.
    pub fn is_heard(&self, company: CompanyId) -> bool {
        self.listening() > 0 && self.companies.contains_key(&company)
    }

    /// Notifies that events of a company up to this one can be read.
    pub fn tell(&self, company: CompanyId, last: LoggedEventId) {
        if self.listening() > 0
            && let Some(known) = self.companies.get(&company)
        {
            known.send_modify(|known| {
                known.last = last.max(known.last);
                known.version += 1;
            });
        }
    }

    /// News may have been missed: all listeners must check again.
    pub fn tell_all(&self) {
        self.companies.iter().for_each(|known| known.send_modify(|known| known.version += 1));
    }
}

/// A listener to a company.
#[derive(Debug)]
pub struct Listening {
    news: Arc<EventNews>,
    company: CompanyId,
    /// `Some` until this is dropped.
    heard: Option<watch::Receiver<Known>>,
}

impl Listening {
    /// Waits for a notification since the last call, or since listening began.
    pub async fn changed(&mut self) {
        match &mut self.heard {
            // The sender exists as long as there are listeners.
            Some(heard) => drop(heard.changed().await),
            None => std::future::pending().await,
        }
    }

    /// The last notified event; 0 if there was none.
    pub fn last(&self) -> LoggedEventId {
        self.heard.as_ref().map_or(LoggedEventId::new(0), |heard| heard.borrow().last)
    }
}

impl Listening {
    /// The version of the last notification: it changes once there is more to read.
    pub fn version(&self) -> u64 {
        self.heard.as_ref().map_or(0, |heard| heard.borrow().version)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        drop(self.heard.take());
        self.news.listening.fetch_sub(1, Ordering::AcqRel);
        self.news.companies.remove_if(&self.company, |_, known| known.receiver_count() == 0);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const ONE: CompanyId = CompanyId::new(1);
    const OTHER: CompanyId = CompanyId::new(2);

    #[tokio::test]
    async fn who_listens_hears_of_the_company_alone_and_nothing_is_left_of_who_went() {
        let news = Arc::<EventNews>::default();
        let (mut first, second) = (news.listen(ONE), news.listen(ONE));
        assert!(news.is_heard(ONE) && !news.is_heard(OTHER));
        news.tell(OTHER, LoggedEventId::new(3));
        assert!(first.changed().now_or_never().is_none(), "news of another company wake nobody here");
        news.tell(ONE, LoggedEventId::new(7));
        news.tell(ONE, LoggedEventId::new(5));
        first.changed().await;
        assert_eq!(first.last(), LoggedEventId::new(7), "an id never goes back");
        news.tell_all();
        first.changed().await;
        drop(first);
        assert!(news.is_heard(ONE));
        drop(second);
        assert_eq!((news.is_heard(ONE), news.listening(), news.companies.len()), (false, 0, 0));
    }
}
