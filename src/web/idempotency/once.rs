//! What a handler does exactly once.

use std::future::{Ready, ready};
use std::sync::{Arc, Mutex, PoisonError};

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpMessage, HttpRequest};
use hotline_actors::tickets::Rider;
use hotline_actors::{Refusal, clock};
use hotline_persistence::tables::idempotency_keys::{self, AnswerRow};
use hotline_persistence::{Change, CompanyId, PgPool};
use sqlx::PgConnection;

use super::keys::kept_since;
use crate::web::reply::Reply;
use crate::web::{Answer, ApiError};

/// A request with a key, while it is served.
pub(super) struct Running {
    pub(super) company: CompanyId,
    pub(super) key: String,
    pub(super) fingerprint: Vec<u8>,
    /// What was recorded with the effect.
    recorded: Mutex<Option<AnswerRow>>,
}

impl Running {
    pub(super) fn new(company: CompanyId, key: String, fingerprint: Vec<u8>) -> Self {
        Self { company, key, fingerprint, recorded: Mutex::new(None) }
    }

    pub(super) fn answer(&self, status: u16, body: String) -> AnswerRow {
        AnswerRow {
            company_id: self.company,
            key: self.key.clone(),
            fingerprint: self.fingerprint.clone(),
            status: i16::try_from(status).unwrap_or(i16::MAX),
            body,
            created_at: clock::now(),
        }
    }

    fn answer_of<T: Reply>(&self, reply: &T) -> Answer<AnswerRow> {
        Ok(self.answer(T::STATUS, String::from_utf8(reply.body()?).map_err(ApiError::internal)?))
    }

    fn recorded(&self, answer: AnswerRow) {
        *self.recorded.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
    }

    pub(super) fn taken(&self) -> Option<AnswerRow> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Makes a change and the record of its answer one thing. Every handler of a `POST` or `PUT` takes it; without a key
/// it adds nothing.
#[derive(Clone)]
pub struct Once(Option<Arc<Running>>);

impl FromRequest for Once {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Ok(Self(request.extensions().get::<Arc<Running>>().cloned())))
    }
}

impl Once {
    /// A live change: `ask` sends the command with what rides along, `show` makes the answer of its reply. `show` runs
    /// in the actor as well, so it only looks at what it has.
    ///
    /// # Errors
    /// Why the command is refused.
    pub async fn live<R, T, F>(
        &self,
        show: impl Fn(&R) -> T + Clone + Send + Sync + 'static,
        ask: impl FnOnce(Option<Rider<R>>) -> F,
    ) -> Answer<T>
    where
        T: Reply,
        F: Future<Output = Result<R, Refusal>>,
    {
        let reply = ask(self.rider(show.clone())).await?;
        Ok(show(&reply))
    }

    /// What rides along with a live change.
    fn rider<R, T: Reply>(&self, show: impl Fn(&R) -> T + Send + Sync + 'static) -> Option<Rider<R>> {
        let running = self.0.clone()?;
        Some(Arc::new(move |reply: &R| match running.answer_of(&show(reply)) {
            Ok(answer) => {
                running.recorded(answer.clone());
                vec![Change::Answer(Box::new(answer))]
            }
            Err(_) => Vec::new(),
        }))
    }

    /// A plain change: everything `change` writes is one transaction with the record of its answer.
    ///
    /// # Errors
    /// Whatever `change` says; nothing of it stands then.
    pub async fn plain<T: Reply>(
        &self,
        db: &PgPool,
        change: impl AsyncFnOnce(&mut PgConnection) -> Answer<T>,
    ) -> Answer<T> {
        let mut transaction = hotline_persistence::error::within(db.begin()).await?;
        let reply = change(&mut transaction).await?;
        let answer = match &self.0 {
            Some(running) => Some((running, running.answer_of(&reply)?)),
            None => None,
        };
        if let Some((_, answer)) = &answer
            && !idempotency_keys::insert(&mut transaction, answer, kept_since()).await?
        {
            // Another process has answered this key since we looked; the next try finds its record.
            return Err(ApiError::unavailable());
        }
        fail::fail_point!("once_written", |_| std::process::abort());
        hotline_persistence::error::within(transaction.commit()).await?;
        fail::fail_point!("once_committed", |_| std::process::abort());
        if let Some((running, answer)) = answer {
            running.recorded(answer);
        }
        Ok(reply)
    }
}
