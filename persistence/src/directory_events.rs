//! News of the directory's tables: which company changed, as PostgreSQL notifies it.

use sqlx::PgPool;
use sqlx::postgres::PgListener;

use crate::{CompanyId, Result};

/// The channel the tables' triggers notify on (`0006_directory_news.sql`).
const CHANNEL: &str = "hotline_directory";

/// A connection that hears of changes.
pub struct DirectoryEvents {
    listener: PgListener,
}

impl DirectoryEvents {
    /// Begins to listen.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn listen(db: &PgPool) -> Result<Self> {
        let mut listener = PgListener::connect_with(db).await?;
        listener.ignore_pool_close_event(true);
        // Who lost news begins anew, so a connection in the lost one's place would be thrown away.
        listener.eager_reconnect(false);
        listener.listen(CHANNEL).await?;
        Ok(Self { listener })
    }

    /// The next company that changed. None: the connection broke, and news may have been missed.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn next(&mut self) -> Result<Option<CompanyId>> {
        loop {
            match self.listener.try_recv().await? {
                None => return Ok(None),
                Some(news) => {
                    if let Ok(id) = news.payload().parse() {
                        return Ok(Some(CompanyId::new(id)));
                    }
                }
            }
        }
    }
}
