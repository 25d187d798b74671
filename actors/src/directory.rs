//! Every company's tokens, channels, queues, users and wrap-up types, in memory: what a request needs to know
//! before it reaches an actor, and an actor to decide, while the database is away as well.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use dashmap::DashMap;
use hotline_persistence::key::KeyHash;
use hotline_persistence::news::News;
pub use hotline_persistence::tables::organization::Organization;
use hotline_persistence::tables::tokens::TokenRow;
use hotline_persistence::tables::{companies, organization, tokens};
use hotline_persistence::{CompanyId, PgPool, Result, TokenId};
use ipnet::{IpNet, Ipv4Net};

/// How often everything is loaded anew, should a notification have been lost without the connection breaking.
pub const RELOAD_EVERY: Duration = Duration::from_secs(60);

/// Pause before the news are listened to again after the database went away.
const RECONNECT_PAUSE: Duration = Duration::from_millis(250);

/// The directory of all companies. Cheap to clone.
#[derive(Clone, Default)]
pub struct Directory {
    inner: Arc<Inner>,
}

struct Inner {
    companies: DashMap<CompanyId, Arc<Organization>>,
    tokens: DashMap<KeyHash, Arc<Token>>,
    /// How often everything is loaded anew.
    reload_every: Duration,
}

impl Default for Inner {
    fn default() -> Self {
        Self { companies: DashMap::new(), tokens: DashMap::new(), reload_every: RELOAD_EVERY }
    }
}

/// A token in memory.
#[derive(Debug)]
pub struct Token {
    /// As stored.
    pub row: TokenRow,
    /// Where it may be used from; anywhere when there is none.
    allowed: Vec<IpNet>,
    use_: Arc<Use>,
}

/// When a token was used last, in milliseconds since 1970, and how much of that is in the table.
#[derive(Debug, Default)]
struct Use {
    last_ms: AtomicI64,
    written_ms: AtomicI64,
}

impl Token {
    fn new(row: TokenRow, use_: Arc<Use>) -> Self {
        let net = |entry: &String| {
            // What the table holds and nobody can read allows nothing.
            let parsed = entry.parse().or_else(|_| entry.parse::<IpAddr>().map(IpNet::from));
            parsed.unwrap_or(IpNet::V4(Ipv4Net::new_assert(std::net::Ipv4Addr::UNSPECIFIED, 32)))
        };
        let allowed = row.allowed_ips.iter().map(net).collect();
        Self { row, allowed, use_ }
    }

    /// Whether it may be used from an address.
    pub fn is_allowed_from(&self, address: Option<IpAddr>) -> bool {
        self.allowed.is_empty()
            || address.is_some_and(|address| self.allowed.iter().any(|range| range.contains(&address)))
    }

    /// Notes a use; it is written to the table behind the requests.
    pub fn note_use(&self, at: DateTime<Utc>) {
        self.use_.last_ms.store(at.timestamp_millis(), Ordering::Relaxed);
    }
}

impl Directory {
    /// Loads every company.
    ///
    /// # Errors
    /// When the database cannot answer.
    pub async fn load(db: &PgPool, reload_every: Duration) -> Result<Self> {
        let directory = Self { inner: Arc::new(Inner { reload_every, ..Inner::default() }) };
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
    pub fn token(&self, hash: &KeyHash) -> Option<Arc<Token>> {
        self.inner.tokens.get(hash).map(|token| token.clone())
    }

    /// Writes when tokens were used last, as far as the table does not know.
    ///
    /// # Errors
    /// When the database cannot answer; the next call tries again.
    pub async fn write_uses(&self, db: &PgPool) -> Result<()> {
        let mut uses: Vec<(TokenId, i64, Arc<Use>)> = Vec::new();
        for token in &self.inner.tokens {
            let last_ms = token.use_.last_ms.load(Ordering::Relaxed);
            if last_ms > token.use_.written_ms.load(Ordering::Relaxed) {
                uses.push((token.row.id, last_ms, token.use_.clone()));
            }
        }
        if uses.is_empty() {
            return Ok(());
        }
        let rows: Vec<_> =
            uses.iter().filter_map(|(id, ms, _)| Some((*id, DateTime::from_timestamp_millis(*ms)?))).collect();
        tokens::note_uses(db, &rows).await?;
        for (_, ms, use_) in uses {
            use_.written_ms.fetch_max(ms, Ordering::Relaxed);
        }
        Ok(())
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
            match tokio::time::timeout(self.inner.reload_every, news.next()).await {
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
                let use_ = self.inner.tokens.get(&hash).map(|known| known.use_.clone()).unwrap_or_default();
                self.inner.tokens.insert(hash, Arc::new(Token::new(token.clone(), use_)));
                hashes.push(hash);
            }
        }
        self.inner.tokens.retain(|hash, token| token.row.company_id != id || hashes.contains(hash));
        self.inner.companies.insert(id, Arc::new(organization));
    }

    fn forget(&self, id: CompanyId) {
        self.inner.companies.remove(&id);
        self.inner.tokens.retain(|_, token| token.row.company_id != id);
    }
}
