//! Hashing and comparing passwords: a few at a time, each on its own low-priority thread.

use std::num::NonZeroUsize;
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use hotline_actors::FieldError;
use hotline_persistence::CompanyId;
use hotline_persistence::limits::{KeyedPermits, PermitLimits};
use hotline_persistence::password::{self, Password};
use tokio::sync::oneshot;

use crate::web::response::error::{ApiError, ApiResult};

/// Limits how many passwords are hashed at a time: each takes 19 MiB and a core for tens of milliseconds. At most half
/// of the cores are used, but at least one, so that the others stay free for conversations. Companies and sign-ins take
/// turns: the new passwords of a company do not delay others for long.
static HASHING: LazyLock<KeyedPermits<HashedFor>> = LazyLock::new(|| {
    let at_once = concurrent_hashes(thread::available_parallelism().ok());
    KeyedPermits::new(PermitLimits::new(at_once, at_once).wait(WAITING_MAX, PERMIT_WAIT_MAX))
});

/// What a password is hashed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum HashedFor {
    /// To compare the password, whose owner may not be known yet.
    SignIn,
    /// To store the password of a person of the company, or of the installation.
    Company(CompanyId),
}

/// Maximum waiting passwords of one company, or of all sign-ins: as many as one core hashes in [`PERMIT_WAIT_MAX`].
const WAITING_MAX: usize = 200;

fn concurrent_hashes(cores: Option<NonZeroUsize>) -> usize {
    (cores.map_or(1, usize::from) / 2).max(1)
}

/// The `nice` value of the hashing threads: if they compete with others for a core, they get about a tenth of it.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// How long a password waits for a permit before its request is refused, so that a flood builds no queue.
const PERMIT_WAIT_MAX: Duration = Duration::from_secs(10);

/// Runs work at low priority once there is a permit. Each call starts a thread, because a thread cannot raise its
/// priority again; this takes a thousandth of the time of the work.
async fn run_low_priority<T: Send + 'static>(
    hashed_for: HashedFor,
    work: impl FnOnce() -> T + Send + 'static,
) -> ApiResult<T> {
    let permit = HASHING.acquire(hashed_for).await.map_err(|_| ApiError::unavailable())?;
    let (sender, result) = oneshot::channel();
    let work = move || {
        // The caller may have disconnected: the permit stays taken until the work is done.
        let _permit = permit;
        lower_priority();
        let _ = sender.send(work());
    };
    thread::Builder::new().name("password".to_owned()).spawn(work).map_err(|_| ApiError::unavailable())?;
    result.await.map_err(ApiError::internal)
}

/// Lowers the priority of this thread, only on Linux: elsewhere it would be the priority of the whole process.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!(%error, "could not lower the priority of password hashing");
    }
}

/// Checks that a password is not made of its owner's e-mail address and name.
///
/// # Errors
/// `422` that names this field.
pub fn check_owner(password: &Password, field: &str, email: &str, name: &str) -> ApiResult<()> {
    password
        .check_owner(email, name)
        .map_err(|reason| ApiError::validation(&[FieldError { field: field.to_owned(), reason }]))
}

/// The hash of a password of a person of this company, as it is stored.
///
/// # Errors
/// `503` when too many others wait.
pub async fn hash(company: CompanyId, password: Password) -> ApiResult<String> {
    run_low_priority(HashedFor::Company(company), move || password.hash()).await?.map_err(ApiError::internal)
}

/// The indexes of the hashes that the text matches; `None` matches nothing. An empty list and `None` take as long as a
/// hash, so timing reveals neither.
///
/// # Errors
/// `503` when too many others wait.
pub async fn find_matching(text: String, hashes: Vec<Option<String>>) -> ApiResult<Vec<usize>> {
    run_low_priority(HashedFor::SignIn, move || {
        let is_right = |hash: &Option<String>| match hash {
            Some(hash) => password::matches_hash(&text, hash),
            None => password::verify_unknown(&text),
        };
        if hashes.is_empty() {
            password::verify_unknown(&text);
        }
        hashes.iter().enumerate().filter(|(_, hash)| is_right(hash)).map(|(index, _)| index).collect()
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn passwords_use_half_the_cores() {
        let of = |cores| concurrent_hashes(NonZeroUsize::new(cores));
        assert_eq!([of(0), of(1), of(2), of(3), of(4), of(16)], [1, 1, 1, 1, 2, 8]);
    }

    /// Attempts to hash a password, each of which waits for a permit: on a busy machine a hash takes seconds.
    const ATTEMPTS_MAX: usize = 12;

    #[actix_web::test]
    async fn concurrent_hashes_are_limited() {
        let limit = concurrent_hashes(thread::available_parallelism().ok());
        let (running, running_max) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let hashes = (0..4 * limit).map(|_| {
            let (running, running_max) = (running.clone(), running_max.clone());
            async move {
                let hash = || {
                    let (running, running_max) = (running.clone(), running_max.clone());
                    run_low_priority(HashedFor::SignIn, move || {
                        running_max.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        password::verify_unknown("any password");
                        running.fetch_sub(1, Ordering::SeqCst);
                        thread::current().name().map(str::to_owned)
                    })
                };
                for _ in 1..ATTEMPTS_MAX {
                    if let Ok(thread_name) = hash().await {
                        return Ok(thread_name);
                    }
                }
                hash().await
            }
        });
        for thread_name in futures_util::future::join_all(hashes).await {
            assert_eq!(thread_name.expect("a permit").as_deref(), Some("password"));
        }
        assert!(running_max.load(Ordering::SeqCst) <= limit);
    }

    #[cfg(target_os = "linux")]
    #[actix_web::test]
    async fn only_the_hashing_thread_has_a_lower_priority() {
        let priority = || rustix::process::getpriority_process(None).expect("a priority");
        let before = priority();
        let lowered = run_low_priority(HashedFor::SignIn, priority).await.expect("a permit");
        assert!(lowered >= NICE, "{lowered}");
        assert_eq!(priority(), before);
    }
}
