//! Limits the memory of calls: each channel has a share, and a call uses as much as it has sent.
//!
//! Anyone who knows a channel's public key may start a call; the signature is checked once the body is complete. So a
//! call that sends nothing uses nothing, and one that sends slowly is refused ([`MIN_RATE`]). When memory is short, the
//! oldest incomplete call is cancelled, first of all in the channel that uses most. Calls of providers arrive
//! completely within a moment: they find room, and never become the oldest.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix_web::dev::Payload;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use hotline_persistence::{ChannelId, CompanyId};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::web::connections::{MinRate, MinRateStream, body_error};
use crate::web::{ApiError, ApiResult};

/// Maximum size of a call; the provider documents up to 3 MB.
/// <https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/overview>
pub(super) const CALL_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The minimum pace of a call. Providers call from data centres, and wait some 10 seconds for the response.
const MIN_RATE: MinRate = MinRate { grace: Duration::from_secs(5), bytes_per_s: 64 * 1024 };

/// How long a call waits for memory.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Minimum age at which an incomplete call may be cancelled for others.
const CANCEL_AFTER: Duration = Duration::from_secs(1);

/// Limits of the memory that calls use.
#[derive(Clone, Copy, Debug)]
pub(super) struct BudgetLimits {
    /// Bytes in total.
    pub bytes: usize,
    /// Bytes per channel: four calls of maximum size.
    pub of_channel_bytes: usize,
    /// Additional bytes for channels that use at most `small_bytes`: when others have used up the total, a normal call
    /// of some KiB need not wait.
    pub reserved_bytes: usize,
    /// The size up to which a channel's use is small.
    pub small_bytes: usize,
    /// Calls per channel: enough for a provider's burst, and more than a channel processes in a moment.
    pub of_channel_calls: usize,
}

impl Default for BudgetLimits {
    fn default() -> Self {
        Self {
            bytes: 64 << 20,
            of_channel_bytes: 16 << 20,
            reserved_bytes: 16 << 20,
            small_bytes: 256 << 10,
            of_channel_calls: 256,
        }
    }
}

pub(super) type ChannelKey = (CompanyId, ChannelId);

/// All calls that are read or processed. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct CallBudget(Arc<Inner>);

#[derive(Default)]
struct Inner {
    limits: BudgetLimits,
    usage: Mutex<CallUsage>,
    released: Notify,
}

/// The memory in use. Calls are ordered by their start.
#[derive(Default)]
struct CallUsage {
    calls: BTreeMap<u64, ReservedCall>,
    channels: HashMap<ChannelKey, ChannelUsage>,
    bytes: usize,
    started: u64,
}

struct ReservedCall {
    channel: ChannelKey,
    bytes: usize,
    since: Instant,
    /// Whether the signature is not verified yet.
    is_incomplete: bool,
    cancel: Arc<Notify>,
}

#[derive(Clone, Copy, Default)]
struct ChannelUsage {
    calls: usize,
    bytes: usize,
}

/// A call's permit, until it is answered.
pub(super) struct CallPermit {
    budget: CallBudget,
    id: u64,
    cancel: Arc<Notify>,
}

/// The result of requesting memory.
#[derive(Debug, PartialEq, Eq)]
enum Allocation {
    Granted,
    /// Full; an incomplete call may be cancelled at this time.
    Full(Option<Instant>),
    /// This call was cancelled.
    Cancelled,
}

impl CallBudget {
    #[cfg(test)]
    fn with(limits: BudgetLimits) -> Self {
        Self(Arc::new(Inner { limits, ..Inner::default() }))
    }

    fn usage(&self) -> MutexGuard<'_, CallUsage> {
        self.0.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A permit for a call that has sent nothing yet. If the channel has too many calls, its oldest incomplete one is
    /// cancelled.
    ///
    /// # Errors
    /// `503` when all of them are being processed: the provider repeats the call.
    pub(super) fn admit(&self, channel: ChannelKey) -> ApiResult<CallPermit> {
        let mut usage = self.usage();
        let calls = usage.channels.get(&channel).map_or(0, |channel| channel.calls);
        if calls >= self.0.limits.of_channel_calls {
            let oldest = usage.incomplete(channel).next().map(|(id, _)| id);
            usage.cancel(oldest.ok_or_else(ApiError::unavailable)?);
        }
        let id = usage.started;
        usage.started += 1;
        let cancel = Arc::new(Notify::new());
        let call =
            ReservedCall { channel, bytes: 0, since: Instant::now(), is_incomplete: true, cancel: cancel.clone() };
        usage.calls.insert(id, call);
        usage.channels.entry(channel).or_default().calls += 1;
        Ok(CallPermit { budget: self.clone(), id, cancel })
    }

    /// Requests memory for this many more bytes of a call.
    fn allocate(&self, id: u64, bytes: usize, now: Instant) -> Allocation {
        let limits = self.0.limits;
        let mut usage = self.usage();
        loop {
            let Some(channel) = usage.calls.get(&id).map(|call| call.channel) else { return Allocation::Cancelled };
            let of_channel = usage.channels.get(&channel).map_or(0, |channel| channel.bytes) + bytes;
            let is_small = of_channel <= limits.small_bytes;
            let bytes_max = limits.bytes + if is_small { limits.reserved_bytes } else { 0 };
            let fullest = if of_channel > limits.of_channel_bytes {
                Some(channel)
            } else if usage.bytes + bytes > bytes_max {
                usage.fullest()
            } else {
                usage.add(id, bytes);
                return Allocation::Granted;
            };
            let oldest = fullest.and_then(|fullest| usage.incomplete(fullest).find(|(_, call)| call.bytes > 0));
            match oldest.map(|(oldest, call)| (oldest, call.since + CANCEL_AFTER)) {
                Some((oldest, until)) if until <= now => usage.cancel(oldest),
                Some((_, until)) => return Allocation::Full(Some(until)),
                None => return Allocation::Full(None),
            }
        }
    }
}

impl CallUsage {
    /// The incomplete calls of a channel, oldest first.
    fn incomplete(&self, channel: ChannelKey) -> impl Iterator<Item = (u64, &ReservedCall)> {
        let matches = move |call: &ReservedCall| call.channel == channel && call.is_incomplete;
        self.calls.iter().filter(move |(_, call)| matches(call)).map(|(id, call)| (*id, call))
    }

    /// The channel whose incomplete calls use most memory.
    fn fullest(&self) -> Option<ChannelKey> {
        let mut by_channel: HashMap<ChannelKey, usize> = HashMap::new();
        for call in self.calls.values().filter(|call| call.is_incomplete && call.bytes > 0) {
            *by_channel.entry(call.channel).or_default() += call.bytes;
        }
        by_channel.into_iter().max_by_key(|(_, bytes)| *bytes).map(|(channel, _)| channel)
    }

    fn add(&mut self, id: u64, bytes: usize) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        call.bytes += bytes;
        self.bytes += bytes;
        self.channels.entry(call.channel).or_default().bytes += bytes;
    }

    fn cancel(&mut self, id: u64) {
        if let Some(cancel) = self.remove(id) {
            cancel.notify_one();
        }
    }

    fn remove(&mut self, id: u64) -> Option<Arc<Notify>> {
        let call = self.calls.remove(&id)?;
        self.bytes -= call.bytes;
        if let Some(of_channel) = self.channels.get_mut(&call.channel) {
            of_channel.bytes -= call.bytes;
            of_channel.calls -= 1;
            if of_channel.calls == 0 {
                self.channels.remove(&call.channel);
            }
        }
        Some(call.cancel)
    }
}

impl CallPermit {
    /// Reads a call's body.
    ///
    /// # Errors
    /// `413` when it exceeds the maximum size, `408` when it arrives too slowly, `400` when it breaks off, `503` when
    /// there is no memory for it.
    pub(super) async fn read(&self, payload: Payload) -> ApiResult<Bytes> {
        let mut chunks = MinRateStream::at(MIN_RATE, payload);
        let mut body = BytesMut::new();
        loop {
            let chunk = tokio::select! {
                biased;
                () = self.cancel.notified() => return Err(ApiError::unavailable()),
                chunk = chunks.next() => chunk,
            };
            let Some(chunk) = chunk else { return Ok(body.freeze()) };
            let chunk = chunk.map_err(body_error)?;
            if body.len() + chunk.len() > CALL_BYTES_MAX {
                drop(body);
                self.release();
                drain(chunks).await;
                return Err(ApiError::payload_too_large(CALL_BYTES_MAX));
            }
            self.grow(chunk.len()).await?;
            body.extend_from_slice(&chunk);
        }
    }

    /// The signature is verified: the call can no longer be cancelled.
    pub(super) fn mark_verified(&self) {
        if let Some(call) = self.budget.usage().calls.get_mut(&self.id) {
            call.is_incomplete = false;
        }
    }

    async fn grow(&self, bytes: usize) -> ApiResult<()> {
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            let released = self.budget.0.released.notified();
            let until = match self.budget.allocate(self.id, bytes, Instant::now()) {
                Allocation::Granted => return Ok(()),
                Allocation::Cancelled => return Err(ApiError::unavailable()),
                Allocation::Full(until) => until.map_or(deadline, |until| until.min(deadline)),
            };
            tokio::select! {
                () = released => {}
                () = sleep_until(until) => {}
            }
            if Instant::now() >= deadline {
                return Err(ApiError::unavailable());
            }
        }
    }

    fn release(&self) {
        drop(self.budget.usage().remove(self.id));
        self.budget.0.released.notify_waiters();
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        self.release();
    }
}

/// Reads and discards the rest, for a while: a client that is still writing must be able to read the response.
async fn drain(mut chunks: MinRateStream<Payload>) {
    let mut remaining = 7 * CALL_BYTES_MAX;
    while let Some(Ok(chunk)) = chunks.next().await {
        remaining = remaining.saturating_sub(chunk.len());
        if remaining == 0 {
            return;
        }
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use super::*;

    const A: ChannelKey = (CompanyId::new(1), ChannelId::new(1));
    const B: ChannelKey = (CompanyId::new(2), ChannelId::new(2));

    /// Ten bytes in total, four per channel, and two more for channels that use at most one.
    fn budget() -> CallBudget {
        CallBudget::with(BudgetLimits {
            bytes: 10,
            of_channel_bytes: 4,
            reserved_bytes: 2,
            small_bytes: 1,
            of_channel_calls: 3,
        })
    }

    fn channel(number: i64) -> ChannelKey {
        (CompanyId::new(number), ChannelId::new(number))
    }

    fn later(by: Duration) -> Instant {
        Instant::now() + by
    }

    #[actix_web::test]
    async fn a_silent_call_uses_no_memory_and_is_cancelled_first() {
        let (budget, now) = (budget(), Instant::now());
        let silent: Vec<CallPermit> = (0..3).map(|_| budget.admit(A).expect("a permit")).collect();
        assert_eq!(budget.usage().bytes, 0);
        let fourth = budget.admit(A).expect("the oldest is cancelled");
        assert_eq!(budget.allocate(silent[0].id, 1, now), Allocation::Cancelled);
        assert!(silent[0].grow(1).await.is_err());
        assert!(fourth.grow(4).await.is_ok());
        // Calls that are being processed are not cancelled.
        fourth.mark_verified();
        silent[1].mark_verified();
        silent[2].mark_verified();
        let refused = budget.admit(A).err().expect("one too many");
        assert_eq!((refused.status.as_u16(), refused.retry_after_s.is_some()), (503, true));
        drop(fourth);
        assert!(budget.admit(A).is_ok());
        assert_eq!(budget.usage().bytes, 0);
    }

    #[actix_web::test]
    async fn a_channel_is_limited_to_its_share() {
        let (budget, now) = (budget(), Instant::now());
        let slow = budget.admit(A).expect("a permit");
        assert_eq!(budget.allocate(slow.id, 4, now), Allocation::Granted);
        let more = budget.admit(A).expect("a permit");
        assert!(matches!(budget.allocate(more.id, 1, now), Allocation::Full(Some(_))));
        let other = budget.admit(B).expect("a permit");
        assert_eq!(budget.allocate(other.id, 4, now), Allocation::Granted);
        // The slow call has had its second.
        assert_eq!(budget.allocate(more.id, 1, later(CANCEL_AFTER)), Allocation::Granted);
        assert_eq!(budget.allocate(slow.id, 1, now), Allocation::Cancelled);
        assert_eq!(budget.usage().bytes, 5);
    }

    #[actix_web::test]
    async fn small_calls_find_room_when_others_use_everything() {
        let (budget, now) = (budget(), Instant::now());
        let permits: Vec<CallPermit> = [4, 4, 2]
            .into_iter()
            .zip(1..)
            .map(|(bytes, number)| {
                let permit = budget.admit(channel(number)).expect("a permit");
                assert_eq!(budget.allocate(permit.id, bytes, now), Allocation::Granted);
                permit
            })
            .collect();
        let small = budget.admit(B).expect("a permit");
        let other = budget.admit(channel(9)).expect("a permit");
        permits.iter().for_each(CallPermit::mark_verified);
        assert_eq!(budget.allocate(other.id, 1, now), Allocation::Granted);
        assert_eq!(
            budget.allocate(other.id, 1, now),
            Allocation::Full(Some(budget.usage().calls[&other.id].since + CANCEL_AFTER))
        );
        drop(small);
        drop(other);
        assert_eq!(budget.usage().bytes, 10);
    }

    #[actix_web::test]
    async fn the_oldest_call_of_the_fullest_channel_is_cancelled() {
        let (budget, now) = (budget(), Instant::now());
        let full = [channel(1), channel(2), channel(1)].map(|channel| budget.admit(channel).expect("a permit"));
        for (permit, bytes) in full.iter().zip([2, 3, 2]) {
            assert_eq!(budget.allocate(permit.id, bytes, now), Allocation::Granted);
        }
        let new = budget.admit(channel(3)).expect("a permit");
        assert_eq!(budget.allocate(new.id, 4, later(CANCEL_AFTER)), Allocation::Granted);
        assert_eq!(budget.allocate(full[0].id, 1, now), Allocation::Cancelled);
        assert_eq!(budget.usage().bytes, 9);
        full[0].cancel.notified().await;
    }

    #[actix_web::test]
    async fn a_waiting_call_continues_when_memory_is_released() {
        let budget = budget();
        let first = budget.admit(A).expect("a permit");
        first.grow(4).await.expect("memory");
        first.mark_verified();
        let second = budget.admit(A).expect("a permit");
        let (grown, ()) = futures_util::future::join(second.grow(3), async { drop(first) }).await;
        assert!(grown.is_ok());
        assert_eq!(budget.usage().bytes, 3);
    }
}
