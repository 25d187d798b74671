//! Limits for large bodies, so that one company's large bodies do not delay other companies: only a few are in memory
//! at a time, and none is parsed on a thread that serves requests.
//!
//! A serving thread handles hundreds of requests; parsing 16 MiB of JSON blocks it for a tenth of a second or more.
//! Small bodies are parsed in place, because passing them to another thread takes longer than parsing.

use std::thread::available_parallelism;
use std::time::Duration;

use actix_web::web::Data;
use actix_web::{HttpMessage, HttpRequest};
use hotline_persistence::CompanyId;
use hotline_persistence::limits::{Denied, KeyedPermit, KeyedPermits, PermitLimits};
use tokio::task::spawn_blocking;

use crate::web::response::error::{ApiError, ApiResult};
use crate::web::tenant::Tenant;

/// Bodies of more than this many bytes are parsed on another thread. Parsing this many takes about half a millisecond.
const OFFLOADED_PARSE_BYTES: usize = 64 * 1024;

/// Bodies of more than this many bytes need a permit; without one, the rest of the body is not kept in memory.
pub const LARGE_BYTES: usize = 1024 * 1024;

/// Maximum number of large bodies in memory, in total (half a GiB at 16 MiB each) and per company.
const LARGE_MAX: usize = 32;
const COMPANY_LARGE_MAX: usize = 2;

/// Maximum number of a company's large bodies that wait for a permit; reading is paused meanwhile.
const COMPANY_LARGE_WAITING_MAX: usize = 64;

/// Maximum number of bodies that are parsed at a time, in total (and not more than there are cores) and per company.
const PARSED_AT_ONCE_MAX: usize = 4;
const COMPANY_PARSED_AT_ONCE_MAX: usize = 1;

/// Maximum number of a company's bodies that wait to be parsed: 256 MiB at 1 MiB each.
const COMPANY_PARSE_WAITING_MAX: usize = 256;

/// Maximum time that a body waits for a permit. On a slow machine an import takes seconds, and a company's imports are
/// parsed one after the other.
const WAIT_MAX: Duration = Duration::from_secs(15);

/// Schedules large bodies: one limit for memory, one for parsing.
pub struct BodyScheduler {
    large: KeyedPermits<CompanyId>,
    parsing: KeyedPermits<CompanyId>,
}

/// The permit of a request to hold a large body.
struct LargeBodyPermit(#[allow(dead_code, reason = "dropping it releases it")] KeyedPermit<CompanyId>);

impl Default for BodyScheduler {
    fn default() -> Self {
        let threads = available_parallelism().map_or(1, usize::from).min(PARSED_AT_ONCE_MAX);
        let large = PermitLimits::new(LARGE_MAX, COMPANY_LARGE_MAX).wait(COMPANY_LARGE_WAITING_MAX, WAIT_MAX);
        let parsing = PermitLimits::new(threads, COMPANY_PARSED_AT_ONCE_MAX).wait(COMPANY_PARSE_WAITING_MAX, WAIT_MAX);
        Self { large: KeyedPermits::new(large), parsing: KeyedPermits::new(parsing) }
    }
}

impl BodyScheduler {
    /// Acquires a permit to hold a large body in memory.
    ///
    /// # Errors
    /// `503` when too many of the company's bodies already wait, or no permit became free in time.
    pub async fn permit(&self, company: CompanyId) -> ApiResult<KeyedPermit<CompanyId>> {
        self.large.acquire(company).await.map_err(unavailable)
    }

    /// Runs a company's work on a thread that does not serve requests.
    ///
    /// # Errors
    /// `503` as for [`Self::permit`]; `500` when the work panics.
    pub async fn run<T: Send + 'static>(
        &self,
        company: CompanyId,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> ApiResult<T> {
        let permit = self.parsing.acquire(company).await.map_err(unavailable)?;
        let task = spawn_blocking(move || {
            let result = work();
            // The permit is moved into the task, so that the work holds it even if the request is dropped.
            drop(permit);
            result
        });
        task.await.map_err(ApiError::internal)
    }
}

fn unavailable(denied: Denied) -> ApiError {
    tracing::debug!(%denied, "refused a large body: no capacity");
    ApiError::unavailable()
}

/// The company whose limits apply to the request; all requests without a company share the limits of company 0.
pub(super) fn tenant(request: &HttpRequest) -> CompanyId {
    request.extensions().get::<Tenant>().map_or(CompanyId::new(0), |tenant| tenant.0)
}

/// Parses the body: on this thread if it is small, else on a parsing thread.
pub(in crate::web) async fn parse<T: Send + 'static>(
    request: &HttpRequest,
    body_len: usize,
    parse_body: impl FnOnce() -> ApiResult<T> + Send + 'static,
) -> ApiResult<T> {
    match request.app_data::<Data<BodyScheduler>>() {
        Some(scheduler) if body_len > OFFLOADED_PARSE_BYTES => {
            Box::pin(scheduler.run(tenant(request), parse_body)).await?
        }
        _ => parse_body(),
    }
}

/// Acquires a permit for a large body; the request holds it until it ends.
pub(super) async fn acquire_permit(request: &HttpRequest) -> ApiResult<()> {
    let Some(scheduler) = request.app_data::<Data<BodyScheduler>>() else { return Ok(()) };
    if request.extensions().contains::<LargeBodyPermit>() {
        // The body was already read once, to compute its fingerprint.
        return Ok(());
    }
    let permit = scheduler.permit(tenant(request)).await?;
    request.extensions_mut().insert(LargeBodyPermit(permit));
    Ok(())
}
