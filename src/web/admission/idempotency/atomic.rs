//! Makes a handler's change and the record of its response atomic.

use std::future::{Ready, ready};
use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpMessage, HttpRequest};
use hotline_actors::tickets::AttachedChanges;
use hotline_actors::{Refusal, clock};
use hotline_persistence::tables::idempotency_keys::{self, AnswerRow, Digest};
use hotline_persistence::{Change, Db, PlainTransaction};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::PgConnection;

use super::keys::{KeyLock, expiry_cutoff};
use crate::web::response::error::{ApiError, ApiResult};
use crate::web::response::reply::Reply;

/// A request with a key, while it is served.
pub(super) struct KeyedRequest {
    pub(super) lock: KeyLock,
    pub(super) fingerprint: Digest,
    /// The response that was, or may have been, recorded with the effect.
    recorded: Mutex<Option<AnswerRow>>,
}

impl KeyedRequest {
    pub(super) fn new(lock: KeyLock, fingerprint: Digest) -> Self {
        Self { lock, fingerprint, recorded: Mutex::new(None) }
    }

    pub(super) fn new_record(&self, status: u16, body: String) -> AnswerRow {
        AnswerRow {
            company_id: self.lock.company(),
            key: self.lock.key(),
            fingerprint: self.fingerprint,
            status: i16::try_from(status).unwrap_or(i16::MAX),
            body,
            created_at: clock::now(),
        }
    }

    fn record_of<T: Reply>(&self, reply: &T) -> ApiResult<AnswerRow> {
        hotline_persistence::fail_point!("once_unencoded", |_| Err(ApiError::internal("fail point")));
        Ok(self.new_record(T::STATUS, String::from_utf8(reply.recorded_body()?).map_err(ApiError::internal)?))
    }

    /// The key of a step's record: a hash over the request's key and fingerprint, so it belongs to this request alone.
    fn step_key(&self, name: &str) -> Digest {
        let (key, fingerprint) = (self.lock.key(), self.fingerprint);
        Digest::of(&[key.as_bytes(), b" ", name.as_bytes(), fingerprint.as_bytes()])
    }

    /// Notes that the record may be durable from here on, whatever happens to this request: the key counts as used, and
    /// the next request with it looks the record up.
    fn note_recorded(&self, record: AnswerRow) {
        self.lock.mark_used(self.lock.key());
        *self.recorded.lock() = Some(record);
    }

    pub(super) fn take_recorded(&self) -> Option<AnswerRow> {
        self.recorded.lock().take()
    }
}

/// Inserts a record as the last statement of a transaction.
///
/// # Errors
/// `503` when another request was recorded under this key since the look-up; the next attempt finds its record.
pub(super) async fn insert_record(db: &mut PgConnection, record: &AnswerRow) -> ApiResult<()> {
    if idempotency_keys::insert(db, record, expiry_cutoff()).await? { Ok(()) } else { Err(ApiError::unavailable()) }
}

/// Makes a change and the record of its response atomic. Every handler of a `POST` or `PUT` takes it; without a key it
/// does nothing.
#[derive(Clone)]
pub struct Idempotency(Option<Arc<KeyedRequest>>);

impl FromRequest for Idempotency {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Ok(Self(request.extensions().get::<Arc<KeyedRequest>>().cloned())))
    }
}

impl Idempotency {
    /// Makes a live change: `ask` sends the command with the attached changes, and `to_response` makes the response
    /// from its reply. `to_response` also runs in the actor, so it must not block or look anything up.
    ///
    /// # Errors
    /// The reason why the command is refused.
    pub async fn command<R, T, F>(
        &self,
        to_response: impl Fn(&R) -> T + Clone + Send + Sync + 'static,
        ask: impl FnOnce(Option<AttachedChanges<R>>) -> F,
    ) -> ApiResult<T>
    where
        T: Reply,
        F: Future<Output = Result<R, Refusal>>,
    {
        let reply = ask(self.attached_changes(to_response.clone())).await?;
        Ok(to_response(&reply))
    }

    /// Makes the record of the response, which becomes durable with a live change; `None` without a key.
    fn attached_changes<R, T: Reply>(
        &self,
        to_response: impl Fn(&R) -> T + Send + Sync + 'static,
    ) -> Option<AttachedChanges<R>> {
        let keyed_request = self.0.clone()?;
        Some(Arc::new(move |reply: &R| {
            let record = keyed_request.record_of(&to_response(reply));
            // Without a record a retry would make the change again.
            let record = record.map_err(|defect| Refusal::Defect(defect.to_string()))?;
            keyed_request.note_recorded(record.clone());
            Ok(vec![Change::Answer(Box::new(record))])
        }))
    }

    /// Makes a plain change: everything that `change` writes is in one transaction with the record of its response.
    ///
    /// # Errors
    /// Any error of `change`; the transaction is rolled back.
    pub async fn transaction<T: Reply>(
        &self,
        db: Db<'_>,
        change: impl AsyncFnOnce(&mut PgConnection) -> ApiResult<T>,
    ) -> ApiResult<T> {
        let (mut transaction, reply) = self.run(db, change).await?;
        if let Some(keyed_request) = &self.0 {
            let record = keyed_request.record_of(&reply)?;
            keyed_request.note_recorded(record.clone());
            insert_record(transaction.connection()?, &record).await?;
        }
        hotline_persistence::fail_point!("once_written", |_| std::process::abort());
        transaction.commit().await?;
        hotline_persistence::fail_point!("once_committed", |_| std::process::abort());
        hotline_persistence::fail_point!("once_commit_lost", |_| Err(ApiError::unavailable()));
        Ok(reply)
    }

    /// Runs a plain change and rolls it back, so that a refusal comes before something outside of the database changes.
    ///
    /// # Errors
    /// Those of [`Self::transaction`].
    pub async fn dry_run<T>(
        &self,
        db: Db<'_>,
        change: impl AsyncFnOnce(&mut PgConnection) -> ApiResult<T>,
    ) -> ApiResult<()> {
        self.run(db, change).await.map(drop)
    }

    /// Runs a change in a new transaction, which is returned with the result.
    async fn run<T>(
        &self,
        db: Db<'_>,
        change: impl AsyncFnOnce(&mut PgConnection) -> ApiResult<T>,
    ) -> ApiResult<(PlainTransaction, T)> {
        let mut transaction = db.begin().await?;
        match change(transaction.connection()?).await {
            Ok(result) => Ok((transaction, result)),
            Err(refused) => {
                drop(transaction);
                Err(self.resolve_refusal(db, refused.with_holder_id(db).await).await)
            }
        }
    }

    /// Replaces the recorded response of a change whose result depends on something outside of the database. If a crash
    /// prevents that, retries receive the first record.
    pub async fn amend<T: Reply>(&self, db: Db<'_>, reply: &T) {
        let Some(keyed_request) = &self.0 else { return };
        let first = keyed_request.recorded.lock().clone();
        let Some(first) = first else { return };
        let amended = match keyed_request.record_of(reply) {
            Ok(record) => AnswerRow { created_at: first.created_at, ..record },
            Err(error) => {
                tracing::warn!(%error, "could not record a change's result");
                return;
            }
        };
        match idempotency_keys::amend(db, &amended).await {
            Ok(()) => *keyed_request.recorded.lock() = Some(amended),
            Err(error) => tracing::warn!(%error, "could not record a change's result"),
        }
    }

    /// Makes a plain step that precedes a live change. A retry finds the step's result, even if the change itself
    /// failed: the record of the step is separate from the request's own.
    ///
    /// # Errors
    /// Any error of `make`; the transaction is rolled back.
    pub async fn step<T: Serialize + DeserializeOwned>(
        &self,
        db: Db<'_>,
        name: &str,
        make: impl AsyncFnOnce(&mut PgConnection) -> ApiResult<T>,
    ) -> ApiResult<T> {
        let step = self.0.as_ref().map(|keyed_request| (keyed_request, keyed_request.step_key(name)));
        if let Some((keyed_request, key)) = &step
            && keyed_request.lock.may_have_been_used(*key)
            && let Some(result) =
                idempotency_keys::find(db, keyed_request.lock.company(), *key, expiry_cutoff()).await?
        {
            return serde_json::from_str(&result.body).map_err(ApiError::internal);
        }
        let mut transaction = db.begin().await?;
        let result = make(transaction.connection()?).await?;
        if let Some((keyed_request, key)) = step {
            let body = serde_json::to_string(&result).map_err(ApiError::internal)?;
            let record = AnswerRow { key, ..keyed_request.new_record(0, body) };
            // Marked after the record's time, so that the mark does not expire before the record.
            keyed_request.lock.mark_used(key);
            insert_record(transaction.connection()?, &record).await?;
        }
        hotline_persistence::fail_point!("once_part_written", |_| std::process::abort());
        transaction.commit().await?;
        hotline_persistence::fail_point!("once_part_committed", |_| std::process::abort());
        hotline_persistence::fail_point!("once_part_lost", |_| Err(ApiError::unavailable()));
        Ok(result)
    }

    /// The error of a refused plain change. The refusal may be caused by an earlier attempt of the same request that
    /// committed after the look-up: then that attempt's response is the right one, and the next attempt finds it.
    async fn resolve_refusal(&self, db: Db<'_>, refused: ApiError) -> ApiError {
        let Some(keyed_request) = self.0.as_ref().filter(|_| !refused.status.is_server_error()) else { return refused };
        let (company, key) = (keyed_request.lock.company(), keyed_request.lock.key());
        match idempotency_keys::find(db, company, key, expiry_cutoff()).await {
            Ok(None) => refused,
            Ok(Some(_)) => {
                keyed_request.lock.mark_used(key);
                ApiError::unavailable()
            }
            Err(error) => error.into(),
        }
    }
}
