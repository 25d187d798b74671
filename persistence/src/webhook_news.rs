//! Passes changes of webhooks from the PostgreSQL listener to the deliverer.

use std::collections::BTreeSet;
use std::mem::take;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::CompanyId;

/// Notifications not read yet: at most one per company.
#[derive(Debug, Default)]
pub struct WebhookNews {
    changed: Mutex<ChangedWebhooks>,
    notify: Notify,
}

/// The companies whose webhooks have changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ChangedWebhooks {
    /// Those whose webhooks have certainly changed.
    pub companies: BTreeSet<CompanyId>,
    /// Whether any company's may have changed: notifications may have been missed.
    pub is_all: bool,
}

impl WebhookNews {
    /// Reports that a company's webhooks have changed.
    pub fn publish(&self, company: CompanyId) {
        self.changed.lock().companies.insert(company);
        self.notify.notify_one();
    }

    /// Reports that any company's webhooks may have changed.
    pub fn publish_all(&self) {
        self.changed.lock().is_all = true;
        self.notify.notify_one();
    }

    /// Waits for notifications and takes them. For a single listener.
    pub async fn next(&self) -> ChangedWebhooks {
        loop {
            let changed = take(&mut *self.changed.lock());
            if changed != ChangedWebhooks::default() {
                return changed;
            }
            self.notify.notified().await;
        }
    }

    /// Drops the notification for a company.
    pub(crate) fn forget(&self, company: CompanyId) {
        self.changed.lock().companies.remove(&company);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn notifications_wait_until_they_are_read() {
        let news = WebhookNews::default();
        let company = CompanyId::new;
        news.publish(company(2));
        news.publish(company(1));
        news.publish(company(2));
        news.forget(company(1));
        assert_eq!(news.next().await, ChangedWebhooks { companies: [company(2)].into(), is_all: false });
        news.publish_all();
        assert_eq!(news.next().await, ChangedWebhooks { companies: BTreeSet::new(), is_all: true });
    }
}
