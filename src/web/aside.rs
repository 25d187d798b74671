//! Large bodies, so that one company's are nobody else's wait: few of them are in memory at a time, and none is parsed
//! on a thread that serves.
//!
//! A thread that serves has hundreds of requests; 16 MiB of JSON keep it for a tenth of a second and more. What is
//! small is parsed where it is, which is quicker than to hand it over.

use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use actix_web::web::Data;
use actix_web::{HttpMessage, HttpRequest};
use hotline_persistence::CompanyId;
use hotline_persistence::scheduler::{Denied, Permit, Scheduler, Shares, Weight};
use tokio::task::spawn_blocking;

use super::{ApiError, ApiResult};

/// Bytes from which JSON is parsed aside: half a millisecond's work.
const PARSED_ASIDE_BYTES: usize = 64 * 1024;

/// Bytes from which a body needs a place in memory.
pub const LARGE_BYTES: usize = 1024 * 1024;

/// Large bodies in memory at a time, at 16 MiB half a GiB; and of one company.
const LARGE_MAX: usize = 32;
const COMPANY_LARGE_MAX: usize = 2;

/// Large bodies of a company that are not read on, until it is their turn.
const COMPANY_LARGE_WAITING_MAX: usize = 64;

/// Threads that parse aside, if there are as many cores; one company's bodies are parsed one after the other.
const PARSED_AT_ONCE_MAX: usize = 4;
const COMPANY_PARSED_AT_ONCE: usize = 1;

/// Bodies of a company that wait to be parsed, at 1 MiB 256 MiB.
const COMPANY_PARSED_WAITING_MAX: usize = 256;

/// How long a body waits for its turn. Imports of one company take seconds each on a slow machine.
const TURN_TIME_MAX: Duration = Duration::from_secs(15);

/// The company whose share a request uses; the guard that admits the request sets it.
#[derive(Clone, Copy, Debug)]
pub struct Tenant(pub CompanyId);

/// The turns of large bodies.
pub struct Aside {
    large: Arc<Scheduler>,
    parsing: Arc<Scheduler>,
}

impl Default for Aside {
    fn default() -> Self {
        let threads = available_parallelism().map_or(1, usize::from).min(PARSED_AT_ONCE_MAX);
        let turns = |all, company, waiting| Scheduler::new(Shares::of_one_kind(all, company, waiting, TURN_TIME_MAX));
        Self {
            large: turns(LARGE_MAX, COMPANY_LARGE_MAX, COMPANY_LARGE_WAITING_MAX),
            parsing: turns(threads, COMPANY_PARSED_AT_ONCE, COMPANY_PARSED_WAITING_MAX),
        }
    }
}

impl Aside {
    /// A place in memory for a large body.
    ///
    /// # Errors
    /// `503` when none was free in time.
    pub async fn place(&self, company: CompanyId) -> ApiResult<Permit> {
        self.large.permit(company, Weight::Light).await.map_err(unavailable)
    }

    /// Does a company's work on a thread that does not serve.
    ///
    /// # Errors
    /// `503` when it was not its turn in time; `500` when the work panics.
    pub async fn run<T: Send + 'static>(
        &self,
        company: CompanyId,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> ApiResult<T> {
        let permit = self.parsing.permit(company, Weight::Light).await.map_err(unavailable)?;
        let working = spawn_blocking(move || {
            let done = work();
            drop(permit);
            done
        });
        working.await.map_err(ApiError::internal)
    }
}

fn unavailable(denied: Denied) -> ApiError {
    tracing::debug!(%denied, "a large body is refused for now");
    ApiError::unavailable()
}

/// Whose share this request takes from: of those without a company there is one for all.
pub(super) fn tenant(request: &HttpRequest) -> CompanyId {
    request.extensions().get::<Tenant>().map_or(CompanyId::new(0), |tenant| tenant.0)
}

/// Reads what was sent: here if it is small, else aside.
pub(super) async fn parse<T: Send + 'static>(
    request: &HttpRequest,
    bytes: usize,
    read: impl FnOnce() -> ApiResult<T> + Send + 'static,
) -> ApiResult<T> {
    match request.app_data::<Data<Aside>>() {
        Some(aside) if bytes > PARSED_ASIDE_BYTES => aside.run(tenant(request), read).await?,
        _ => read(),
    }
}

/// Takes a place for a large body, which lasts as long as its request.
pub(super) async fn take_place(request: &HttpRequest) -> ApiResult<()> {
    let Some(aside) = request.app_data::<Data<Aside>>() else { return Ok(()) };
    if request.extensions().contains::<Permit>() {
        // It was read before, for its fingerprint.
        return Ok(());
    }
    let place = aside.place(tenant(request)).await?;
    request.extensions_mut().insert(place);
    Ok(())
}
