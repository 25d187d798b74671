//! Passes on changes to webhooks, from the PostgreSQL listener to the dispatcher of deliveries.

use std::collections::BTreeSet;
use std::mem::take;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::CompanyId;

/// Change notifications that the dispatcher has not read yet: at most one per company.
#[derive(Debug, Default)]
pub struct WebhookNews {
    changed: Mutex<ChangedWebhooks>,
    notify: Notify,
}

/// The companies whose webhooks have changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ChangedWebhooks {
    /// Companies that were named by a notification.
    pub companies: BTreeSet<CompanyId>,
    /// Whether webhooks of any other company may also have changed, because notifications may have been missed.
    pub may_include_others: bool,
}

impl WebhookNews {
    /// Notifies that a company's webhooks have changed.
    pub fn publish(&self, company: CompanyId) {
        self.changed.lock().companies.insert(company);
        self.notify.notify_one();
    }

    /// Notifies that any company's webhooks may have changed.
    pub fn publish_all(&self) {
        self.changed.lock().may_include_others = true;
        self.notify.notify_one();
    }

    /// Waits for notifications and takes them. Only one task may call this at a time.
    pub async fn next(&self) -> ChangedWebhooks {
        loop {
            let changed = take(&mut *self.changed.lock());
            if changed != ChangedWebhooks::default() {
                return changed;
            }
            self.notify.notified().await;
        }
    }

    /// Drops the notification for a company that this process no longer serves.
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
        assert_eq!(news.next().await, ChangedWebhooks { companies: [company(2)].into(), may_include_others: false });
        news.publish_all();
        assert_eq!(news.next().await, ChangedWebhooks { companies: BTreeSet::new(), may_include_others: true });
    }
}
