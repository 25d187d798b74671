//! Every company's tokens, channels, queues, users and wrap-up types, in memory: what a request needs to know
//! before it reaches an actor, and an actor to decide, while the database is away as well.

use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use hotline_persistence::key::KeyHash;
use hotline_persistence::news::News;
pub use hotline_persistence::tables::organization::Organization;
use hotline_persistence::tables::tokens::TokenRow;
use hotline_persistence::tables::{companies, organization};
use hotline_persistence::{CompanyId, PgPool, Result};

/// How often everything is loaded anew, should a notification have been lost without the connection breaking.
const RELOAD_EVERY: Duration = Duration::from_secs(60);

/// Pause before the news are listened to again after the database went away.
const RECONNECT_PAUSE: Duration = Duration::from_millis(250);

/// The directory of all companies. Cheap to clone.
#[derive(Clone, Default)]
pub struct Directory {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    companies: DashMap<CompanyId, Arc<Organization>>,
    tokens: DashMap<KeyHash, Arc<TokenRow>>,
}

impl Directory {
    /// Loads every company.
    ///
    /// # Errors
    /// When the database cannot answer.
    pub async fn load(db: &PgPool) -> Result<Self> {
        let directory = Self::default();
        directory.reload_all(db).await?;
        Ok(directory)
    }

    /// A directory of these companies only, for tests and benches of what stands above.
    pub fn of(organizations: impl IntoIterator<Item = Organization>) -> Self {
        let directory = Self::default();
        for organization in organizations {
            directory.put(organization);
        }
        directory
    }

    /// A company, or none.
    pub fn company(&self, id: CompanyId) -> Option<Arc<Organization>> {
        self.inner.companies.get(&id).map(|company| company.clone())
    }

    /// The token with this key's hash, or none. Whether it is still good is for the caller to see.
    pub fn token(&self, hash: &KeyHash) -> Option<Arc<TokenRow>> {
        self.inner.tokens.get(hash).map(|token| token.clone())
    }

    /// Follows the tables' news for as long as the process lives: a change from anywhere is seen within a second.
    pub async fn follow(self, db: PgPool) {
        loop {
            if let Err(error) = self.listen(&db).await {
                tracing::debug!(%error, "the directory's news are interrupted");
            }
            tokio::time::sleep(RECONNECT_PAUSE).await;
        }
    }

    async fn listen(&self, db: &PgPool) -> Result<()> {
        let mut news = News::listen(db).await?;
        // What happened while nobody listened is seen now.
        self.reload_all(db).await?;
        loop {
            match tokio::time::timeout(RELOAD_EVERY, news.next()).await {
                Ok(company) => match company? {
                    Some(company) => self.reload(db, company).await?,
                    None => return Ok(()),
                },
                Err(_) => self.reload_all(db).await?,
            }
        }
    }

    async fn reload_all(&self, db: &PgPool) -> Result<()> {
        let ids: Vec<CompanyId> = companies::all(db).await?.into_iter().map(|company| company.id).collect();
        for id in &ids {
            self.reload(db, *id).await?;
        }
        let gone: Vec<CompanyId> =
            self.inner.companies.iter().map(|company| *company.key()).filter(|id| !ids.contains(id)).collect();
        for id in gone {
            self.forget(id);
        }
        Ok(())
    }

    async fn reload(&self, db: &PgPool, id: CompanyId) -> Result<()> {
        match organization::load(db, id).await? {
            Some(organization) => self.put(organization),
            None => self.forget(id),
        }
        Ok(())
    }

    fn put(&self, organization: Organization) {
        let id = organization.company.id;
        let mut hashes = Vec::with_capacity(organization.tokens.len());
        for token in &organization.tokens {
            if let Ok(hash) = KeyHash::try_from(token.hash.as_slice()) {
                self.inner.tokens.insert(hash, Arc::new(token.clone()));
                hashes.push(hash);
            }
        }
        self.inner.tokens.retain(|hash, token| token.company_id != id || hashes.contains(hash));
        self.inner.companies.insert(id, Arc::new(organization));
    }

    fn forget(&self, id: CompanyId) {
        self.inner.companies.remove(&id);
        self.inner.tokens.retain(|_, token| token.company_id != id);
    }
}
