//! The engine without a service, for commands that run while no process serves the database: the journal's content is
//! written to the tables, but no message is sent and no request is served.

use std::sync::Arc;

use hotline_actors::{Directory, Engine, clock};
use hotline_persistence::cluster::Role;
use hotline_persistence::{Store, StoreOptions};
use hotline_postgres::Cluster;
use sqlx::postgres::PgConnectOptions;
use tokio::runtime::Handle;

use super::stop::stop_postgres;
use super::{ServiceError, Settings, fail};
use crate::media::Media;

/// The engine without a service.
pub struct OfflineService {
    engine: Engine,
    media: Media,
    postgres: Option<Cluster>,
}

impl OfflineService {
    /// Opens the database, excluding every other process. Needs a running actix system.
    ///
    /// # Errors
    /// When a part cannot start, or a process serves the database.
    pub async fn open(settings: &Settings) -> Result<Self, ServiceError> {
        let (postgres, database) = match settings.database.clone() {
            Some(database) => (None, database),
            None => {
                let postgres = Cluster::start(settings.postgres_options()).await?;
                let database = postgres.connect_options();
                (Some(postgres), database)
            }
        };
        match Self::open_on(settings, database).await {
            Ok((engine, media)) => Ok(Self { engine, media, postgres }),
            Err(error) => stop_postgres(postgres, Err(error)).await,
        }
    }

    async fn open_on(settings: &Settings, database: PgConnectOptions) -> Result<(Engine, Media), ServiceError> {
        let options = StoreOptions { role: Role::Standalone, ..settings.store_options(database) };
        let store: Arc<Store> = Store::open(options, fail).await?;
        let directory = Directory::load(&store.housekeeping, &store.keys, settings.engine.reload_every).await?;
        let media = Media::open(settings.media.clone(), store.housekeeper(), &store.keys, Handle::current()).await?;
        Ok((Engine::new(store, directory, settings.engine.clone()), media))
    }

    /// Carries out the requested erasures of people.
    ///
    /// # Errors
    /// When the database or the store of files is unavailable.
    pub async fn erase(&self) -> Result<(), String> {
        for _ in 0..ROUNDS_MAX {
            let has_more = self.engine.erasures.advance_unserved(|| {}).await.map_err(|refusal| refusal.to_string())?;
            self.media.sweep(&self.engine, clock::now()).await?;
            if !has_more {
                break;
            }
        }
        Ok(())
    }

    /// Writes all changes to the tables, and stops PostgreSQL.
    ///
    /// # Errors
    /// When the database does not accept the last changes, which the journal keeps for the next start, or PostgreSQL
    /// does not stop; the former error if both happen.
    pub async fn close(self) -> Result<(), ServiceError> {
        self.engine.begin_stopping();
        let result = self.engine.store().close().await;
        self.engine.stop();
        stop_postgres(self.postgres, result.map(drop).map_err(ServiceError::from)).await
    }
}

/// Maximum rounds over the requested erasures: each round takes the next step of every erasure. An erasure that is not
/// complete after the last round has failed, and the reason is recorded.
const ROUNDS_MAX: usize = 100;
