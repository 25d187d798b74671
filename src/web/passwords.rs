//! Passwords while they are hashed and compared: away from the threads that serve, and few at once.

use std::time::Duration;

use hotline_persistence::password::{self, Password};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::{ApiError, ApiResult};

/// Passwords that are hashed at once: each takes 19 MiB and a core for tens of milliseconds, and conversations need
/// the cores more.
static HASHING: Semaphore = Semaphore::const_new(2);

/// How long one waits for its turn. Who comes later is told to come back, so that a flood of them is no queue.
const TURN_TIME_MAX: Duration = Duration::from_secs(10);

async fn turn() -> ApiResult<SemaphorePermit<'static>> {
    let turn = timeout(TURN_TIME_MAX, HASHING.acquire()).await.map_err(|_| ApiError::unavailable())?;
    turn.map_err(ApiError::internal)
}

/// What is stored of a password.
///
/// # Errors
/// `503` when it was not its turn in time.
pub async fn hash(password: Password) -> ApiResult<String> {
    let _turn = turn().await?;
    let hash = tokio::task::spawn_blocking(move || password.hash()).await.map_err(ApiError::internal)?;
    hash.map_err(ApiError::internal)
}

/// Which of these hashes the text is the password of, by their places. Of none there is as much to do as of one.
///
/// # Errors
/// `503` when it was not its turn in time.
pub async fn fitting(text: String, hashes: Vec<Option<String>>) -> ApiResult<Vec<usize>> {
    let _turn = turn().await?;
    let fitting = tokio::task::spawn_blocking(move || {
        let is_right = |hash: &Option<String>| match hash {
            Some(hash) => password::is_right(&text, hash),
            None => password::is_nobodys(&text),
        };
        if hashes.is_empty() {
            password::is_nobodys(&text);
        }
        hashes.iter().enumerate().filter(|(_, hash)| is_right(hash)).map(|(place, _)| place).collect()
    });
    fitting.await.map_err(ApiError::internal)
}
