//! How much a caller may ask of this door. A provider's calls are not limited in number: a call that is turned away
//! comes again, later than its contact would like. What is limited is what it costs to find out who calls.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hotline_persistence::{ChannelId, CompanyId};
use moka::sync::Cache;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::web::{Answer, ApiError};

/// Bytes of a call: the provider says up to 3 MB.
/// <https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/overview>
pub(super) const CALL_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Calls without a good signature, or for a channel that is not there, an address may make in a minute: somebody sets a
/// channel up, or tries keys. It counts for each channel on its own: a provider calls for many from one address, and
/// one with a wrong secret must not stop the others.
const REFUSED_PER_MINUTE_MAX: u32 = 60;
const MINUTE: Duration = Duration::from_secs(60);

/// Addresses with refused calls that are remembered, some 100 bytes each.
const ADDRESSES_MAX: u64 = 10_000;

/// Calls of one address for one channel at once: a provider's burst, and far more than a channel takes in a moment.
const AT_ONCE_MAX: usize = 256;

/// Bytes of calls that are read and worked on at once, in KiB: 64 MiB.
const KIB_AT_ONCE_MAX: usize = 64 * 1024;

/// How long a call waits for its bytes. A provider waits some 10 seconds for an answer.
const WAIT_MAX: Duration = Duration::from_secs(5);

type Channel = (CompanyId, ChannelId);

/// What callers have cost lately.
pub(super) struct Guard {
    refused: Cache<(Option<IpAddr>, Option<Channel>), Arc<AtomicU32>>,
    at_once: Cache<(Option<IpAddr>, Channel), Arc<Semaphore>>,
    kib: Arc<Semaphore>,
}

/// A call's place, until it is answered.
pub(super) struct Seat {
    _call: OwnedSemaphorePermit,
    _bytes: OwnedSemaphorePermit,
}

impl Default for Guard {
    fn default() -> Self {
        Self {
            refused: Cache::builder().max_capacity(ADDRESSES_MAX).time_to_live(MINUTE).build(),
            // Who is forgotten while calling begins anew.
            at_once: Cache::builder().max_capacity(ADDRESSES_MAX).time_to_idle(MINUTE).build(),
            kib: Arc::new(Semaphore::new(KIB_AT_ONCE_MAX)),
        }
    }
}

impl Guard {
    /// Lets a caller through who was not refused too often. No channel: there is none by the key that was named.
    ///
    /// # Errors
    /// `429`.
    pub(super) fn check(&self, address: Option<IpAddr>, channel: Option<Channel>) -> Answer<()> {
        let refused = self.refused.get(&(address, channel)).map_or(0, |count| count.load(Ordering::Relaxed));
        if refused < REFUSED_PER_MINUTE_MAX { Ok(()) } else { Err(ApiError::rate_limited(MINUTE.as_secs())) }
    }

    /// Counts a refusal.
    pub(super) fn refused(&self, address: Option<IpAddr>, channel: Option<Channel>) {
        self.refused.get_with((address, channel), Arc::default).fetch_add(1, Ordering::Relaxed);
    }

    /// A place for a call of so many bytes; of any that may be read when it does not say.
    ///
    /// # Errors
    /// `503` when there is none: the provider calls again.
    pub(super) async fn seat(&self, address: Option<IpAddr>, channel: Channel, length: Option<usize>) -> Answer<Seat> {
        let calls = self.at_once.get_with((address, channel), || Arc::new(Semaphore::new(AT_ONCE_MAX)));
        let call = calls.try_acquire_owned().map_err(|_| ApiError::unavailable())?;
        let bytes = length.unwrap_or(CALL_BYTES_MAX).min(CALL_BYTES_MAX);
        let kib = u32::try_from(bytes.div_ceil(1024).max(1)).unwrap_or(u32::MAX);
        let bytes = timeout(WAIT_MAX, self.kib.clone().acquire_many_owned(kib)).await;
        match bytes {
            Ok(Ok(bytes)) => Ok(Seat { _call: call, _bytes: bytes }),
            _ => Err(ApiError::unavailable()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use super::*;

    const CHANNEL: Channel = (CompanyId(1), ChannelId(2));

    #[actix_web::test]
    async fn who_is_refused_too_often_waits_and_nobody_else() {
        let guard = Guard::default();
        let address = Some(IpAddr::from([192, 0, 2, 7]));
        for _ in 0..REFUSED_PER_MINUTE_MAX {
            assert!(guard.check(address, Some(CHANNEL)).is_ok());
            guard.refused(address, Some(CHANNEL));
        }
        let refused = guard.check(address, Some(CHANNEL)).expect_err("one too many");
        assert_eq!((refused.status.as_u16(), refused.retry_after_s), (429, Some(60)));
        assert!(guard.check(address, Some((CompanyId(1), ChannelId(3)))).is_ok(), "another channel");
        assert!(guard.check(address, None).is_ok(), "no channel");
        assert!(guard.check(Some(IpAddr::from([192, 0, 2, 8])), Some(CHANNEL)).is_ok(), "another address");
    }

    #[actix_web::test]
    async fn a_call_too_many_at_once_is_to_come_again_and_a_place_is_given_back() {
        let guard = Guard::default();
        let mut seats = Vec::new();
        for _ in 0..AT_ONCE_MAX {
            seats.push(guard.seat(None, CHANNEL, Some(100)).await.expect("a seat"));
        }
        let refused = guard.seat(None, CHANNEL, Some(100)).await.err().expect("one too many");
        assert_eq!((refused.status.as_u16(), refused.retry_after_s.is_some()), (503, true));
        assert!(guard.seat(None, (CompanyId(1), ChannelId(3)), Some(100)).await.is_ok(), "another channel");
        seats.pop();
        assert!(guard.seat(None, CHANNEL, Some(100)).await.is_ok());
    }
}
