//! Whose webhooks have changed: between who hears it from PostgreSQL and who delivers.

use std::collections::BTreeSet;
use std::mem::take;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use crate::CompanyId;

/// What was told and not taken yet: no more than there are companies.
#[derive(Debug, Default)]
pub struct WebhookNews {
    told: Mutex<Told>,
    news: Notify,
}

/// Whose webhooks have changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// These companies'.
    pub companies: BTreeSet<CompanyId>,
    /// Anybody's: news may have been missed.
    pub is_all: bool,
}

impl WebhookNews {
    /// The webhooks of a company have changed.
    pub fn tell(&self, company: CompanyId) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).companies.insert(company);
        self.news.notify_one();
    }

    /// Anybody's may have.
    pub fn tell_all(&self) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).is_all = true;
        self.news.notify_one();
    }

    /// Waits until something was told, and takes it. For one who listens.
    pub async fn told(&self) -> Told {
        loop {
            let told = take(&mut *self.told.lock().unwrap_or_else(PoisonError::into_inner));
            if told != Told::default() {
                return told;
            }
            self.news.notified().await;
        }
    }

    /// Drops what was told of a company.
    pub(crate) fn forget(&self, company: CompanyId) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).companies.remove(&company);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_told_while_nobody_listens_is_heard_once() {
        let news = WebhookNews::default();
        let company = CompanyId::new;
        news.tell(company(2));
        news.tell(company(1));
        news.tell(company(2));
        news.forget(company(1));
        assert_eq!(news.told().await, Told { companies: [company(2)].into(), is_all: false });
        news.tell_all();
        assert_eq!(news.told().await, Told { companies: BTreeSet::new(), is_all: true });
    }
}
