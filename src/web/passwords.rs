//! Passwords while they are hashed and compared: few at once, each on a thread of its own that comes after all others.

use std::num::NonZeroUsize;
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use hotline_persistence::password::{self, Password};
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
use tokio::time::timeout;

use super::{ApiError, ApiResult};

/// Passwords that are hashed at once: each takes 19 MiB and a core for tens of milliseconds. On half the cores, and on one
/// of two: whoever signs in leaves the others to conversations.
static HASHING: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(at_once(thread::available_parallelism().ok())));

fn at_once(cores: Option<NonZeroUsize>) -> usize {
    (cores.map_or(1, usize::from) / 2).max(1)
}

/// How much these threads come after the others (`nice`): where both want a core, they get about a tenth of it.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// How long one waits for its turn. Who comes later is told to come back, so that a flood of them is no queue.
const TURN_TIME_MAX: Duration = Duration::from_secs(10);

async fn turn() -> ApiResult<SemaphorePermit<'static>> {
    let turn = timeout(TURN_TIME_MAX, HASHING.acquire()).await.map_err(|_| ApiError::unavailable())?;
    turn.map_err(ApiError::internal)
}

/// Works something out once it is its turn, behind everything else. A thread is made for each: that takes a thousandth of
/// the time of what it does, and a thread that has stepped back once cannot step forward again.
async fn behind<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> ApiResult<T> {
    let turn = turn().await?;
    let (done, worked_out) = oneshot::channel();
    let work = move || {
        // Whoever waited may be gone: the turn is over when the work is.
        let _turn = turn;
        step_back();
        let _ = done.send(work());
    };
    thread::Builder::new().name("password".to_owned()).spawn(work).map_err(|_| ApiError::unavailable())?;
    worked_out.await.map_err(ApiError::internal)
}

/// This thread alone: elsewhere than on Linux it would be the whole process.
fn step_back() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!(%error, "passwords are hashed at the priority of everything else");
    }
}

/// What is stored of a password.
///
/// # Errors
/// `503` when it was not its turn in time.
pub async fn hash(password: Password) -> ApiResult<String> {
    behind(move || password.hash()).await?.map_err(ApiError::internal)
}

/// Which of these hashes the text is the password of, by their places. Of none there is as much to do as of one.
///
/// # Errors
/// `503` when it was not its turn in time.
pub async fn fitting(text: String, hashes: Vec<Option<String>>) -> ApiResult<Vec<usize>> {
    behind(move || {
        let is_right = |hash: &Option<String>| match hash {
            Some(hash) => password::is_right(&text, hash),
            None => password::is_nobodys(&text),
        };
        if hashes.is_empty() {
            password::is_nobodys(&text);
        }
        hashes.iter().enumerate().filter(|(_, hash)| is_right(hash)).map(|(place, _)| place).collect()
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn half_the_cores_are_left_to_the_others() {
        let of = |cores| at_once(NonZeroUsize::new(cores));
        assert_eq!([of(0), of(1), of(2), of(3), of(4), of(16)], [1, 1, 1, 1, 2, 8]);
    }

    #[actix_web::test]
    async fn no_more_are_worked_out_at_once_than_that() {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let works = (0..4 * at_once(thread::available_parallelism().ok())).map(|_| {
            let (now, most) = (now.clone(), most.clone());
            behind(move || {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                password::is_nobodys("whatever it is");
                now.fetch_sub(1, Ordering::SeqCst);
                thread::current().name().map(str::to_owned)
            })
        });
        for worked in futures_util::future::join_all(works).await {
            assert_eq!(worked.expect("worked out").as_deref(), Some("password"));
        }
        assert!(most.load(Ordering::SeqCst) <= at_once(thread::available_parallelism().ok()));
    }

    #[cfg(target_os = "linux")]
    #[actix_web::test]
    async fn the_thread_steps_back_and_no_other() {
        let priority = || rustix::process::getpriority_process(None).expect("a priority");
        let before = priority();
        let behind = behind(priority).await.expect("worked out");
        assert!(behind >= NICE, "{behind}");
        assert_eq!(priority(), before);
    }
}
