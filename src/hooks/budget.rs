//! Limits the memory of providers' calls: each channel has a share, and a call uses as much as it has sent.
//!
//! Anyone who knows a channel's public key may start a call; the signature is checked once the body is complete. So a
//! call that sends nothing uses nothing, and one that sends slowly is refused ([`MIN_RATE`]). When memory is short, the
//! oldest incomplete call is canceled, first of all in the channel that uses most. Calls of providers arrive
//! completely within a moment, before they are old enough to be canceled ([`CANCEL_AFTER`]). A call with a valid
//! signature that waits for more memory is canceled only if no incomplete call of its channel without a valid
//! signature uses memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::Payload;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use hotline_persistence::limits::{BudgetLimits, KeyedBudget, KeyedPermit, KeyedPermits, PermitLimits, ReservedBytes};
use hotline_persistence::{ChannelId, CompanyId};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::web::connections::{MinRate, MinRateStream, body_error};
use crate::web::{ApiError, ApiResult};

/// Maximum size of a call; the provider documents up to 3 MB.
/// <https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/overview>
pub(super) const CALL_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The minimum pace of a call. Providers call from data centres, and wait about 10 seconds for the response.
const MIN_RATE: MinRate = MinRate { grace: Duration::from_secs(5), bytes_per_s: 64 * 1024 };

/// Memory of a value in a list or object once it is parsed. Calls of providers have about 20 values, of 20 bytes
/// each, for a message.
const VALUE_BYTES: usize = 100;

/// How long a call waits for memory.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Minimum age at which an incomplete call may be canceled for others.
const CANCEL_AFTER: Duration = Duration::from_secs(1);

/// Limits of the memory that calls use.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallLimits {
    /// Bytes in total.
    pub bytes: usize,
    /// Bytes per channel: a call of maximum size while it is parsed, with a value in each 20 bytes ([`VALUE_BYTES`]).
    pub bytes_per_channel: usize,
    /// Bytes per company, however many channels it has: room for another call of maximum size, and less than half of
    /// the total.
    pub bytes_per_company: usize,
    /// Additional bytes for channels that use at most `small_bytes`: when others have used up the total, a normal call
    /// of a few KiB need not wait.
    pub reserved_bytes: usize,
    /// The maximum that a channel may use to get some of `reserved_bytes`.
    pub small_bytes: usize,
    /// Calls per channel: enough for a provider's burst, and more than a channel processes in a moment.
    pub calls_per_channel: usize,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            bytes: 64 << 20,
            bytes_per_channel: 24 << 20,
            bytes_per_company: 28 << 20,
            reserved_bytes: 16 << 20,
            small_bytes: 256 << 10,
            calls_per_channel: 256,
        }
    }
}

pub(super) type ChannelKey = (CompanyId, ChannelId);

/// Whose memory a call uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum MemoryOwner {
    Company(CompanyId),
    Channel(ChannelKey),
}

/// All calls that are being read or processed. Cheap to clone.
#[derive(Clone)]
pub(super) struct CallBudget(Arc<Inner>);

struct Inner {
    limits: CallLimits,
    permits: KeyedPermits<ChannelKey>,
    memory: KeyedBudget<MemoryOwner>,
    calls: Mutex<Calls>,
}

/// The calls, ordered by their start.
#[derive(Default)]
struct Calls {
    by_id: BTreeMap<u64, ReservedCall>,
    next_id: u64,
}

struct ReservedCall {
    memory: ReservedBytes<MemoryOwner>,
    permit: KeyedPermit<ChannelKey>,
    since: Instant,
    /// Whether it is not being processed yet.
    is_incomplete: bool,
    /// Whether its signature is valid.
    is_signed: bool,
    cancel: Arc<Notify>,
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
    /// Full; an incomplete call may be canceled at this time.
    Full(Option<Instant>),
    /// This call was canceled.
    Canceled,
}

impl Default for CallBudget {
    fn default() -> Self {
        Self::with(CallLimits::default())
    }
}

impl CallBudget {
    fn with(limits: CallLimits) -> Self {
        let CallLimits { bytes: all, reserved_bytes: reserved, small_bytes: small, .. } = limits;
        let permits = KeyedPermits::new(PermitLimits::of_key(limits.calls_per_channel));
        let memory = KeyedBudget::new(BudgetLimits { all, reserved, small }, move |key| match key {
            MemoryOwner::Company(_) => limits.bytes_per_company,
            MemoryOwner::Channel(_) => limits.bytes_per_channel,
        });
        Self(Arc::new(Inner { limits, permits, memory, calls: Mutex::default() }))
    }

    /// A permit for a call whose body is not read yet. If the channel has too many calls, its oldest incomplete one
    /// without a valid signature is canceled.
    ///
    /// # Errors
    /// `503` when all calls of the channel have a valid signature: the provider repeats the call.
    pub(super) fn admit(&self, channel: ChannelKey) -> ApiResult<CallPermit> {
        let mut calls = self.0.calls.lock();
        let permit = self.0.permits.try_acquire(channel).or_else(|| {
            let oldest = calls.incomplete_calls(channel).find(|(_, call)| !call.is_signed).map(|(id, _)| id)?;
            calls.cancel(oldest);
            self.0.permits.try_acquire(channel)
        });
        let permit = permit.ok_or_else(ApiError::unavailable)?;
        let id = calls.next_id;
        calls.next_id += 1;
        let memory =
            self.0.memory.empty_reservation(vec![MemoryOwner::Channel(channel), MemoryOwner::Company(channel.0)]);
        let cancel = Arc::new(Notify::new());
        let call = ReservedCall {
            memory,
            permit,
            since: Instant::now(),
            is_incomplete: true,
            is_signed: false,
            cancel: cancel.clone(),
        };
        calls.by_id.insert(id, call);
        Ok(CallPermit { budget: self.clone(), id, cancel })
    }

    /// Requests memory for this many more bytes of a call.
    fn allocate(&self, id: u64, bytes: usize, now: Instant) -> Allocation {
        let Inner { limits, memory, calls, .. } = &*self.0;
        let mut calls = calls.lock();
        loop {
            let Some(call) = calls.by_id.get_mut(&id) else { return Allocation::Canceled };
            if call.memory.try_grow(bytes) {
                return Allocation::Granted;
            }
            let channel = *call.permit.key();
            let is_channel_full = memory.used_by(&MemoryOwner::Channel(channel)) + bytes > limits.bytes_per_channel;
            let is_company_full = memory.used_by(&MemoryOwner::Company(channel.0)) + bytes > limits.bytes_per_company;
            let fullest = match () {
                () if is_channel_full => Some(channel),
                () if is_company_full => calls.fullest_channel(Some(channel.0)),
                () => calls.fullest_channel(None),
            };
            let oldest =
                fullest.and_then(|fullest| calls.incomplete_calls(fullest).find(|(_, call)| call.memory.bytes() > 0));
            match oldest.map(|(oldest, call)| (oldest, call.since + CANCEL_AFTER)) {
                Some((oldest, cancel_at)) if cancel_at <= now => calls.cancel(oldest),
                Some((_, cancel_at)) => return Allocation::Full(Some(cancel_at)),
                None => return Allocation::Full(None),
            }
        }
    }
}

impl Calls {
    /// The incomplete calls of a channel, oldest first, and those with a valid signature after the others.
    fn incomplete_calls(&self, channel: ChannelKey) -> impl Iterator<Item = (u64, &ReservedCall)> {
        let matches = move |call: &ReservedCall| *call.permit.key() == channel && call.is_incomplete;
        let calls_signed = move |is_signed: bool| {
            self.by_id.iter().filter(move |(_, call)| matches(call) && call.is_signed == is_signed)
        };
        calls_signed(false).chain(calls_signed(true)).map(|(id, call)| (*id, call))
    }

    /// The channel whose incomplete calls use most memory: of this company's channels, or of all.
    fn fullest_channel(&self, company: Option<CompanyId>) -> Option<ChannelKey> {
        let mut by_channel: HashMap<ChannelKey, usize> = HashMap::new();
        let is_of_company = |call: &ReservedCall| company.is_none_or(|company| call.permit.key().0 == company);
        let calls = self.by_id.values().filter(|call| call.is_incomplete && call.memory.bytes() > 0);
        for call in calls.filter(|call| is_of_company(call)) {
            *by_channel.entry(*call.permit.key()).or_default() += call.memory.bytes();
        }
        by_channel.into_iter().max_by_key(|(_, bytes)| *bytes).map(|(channel, _)| channel)
    }

    fn cancel(&mut self, id: u64) {
        if let Some(call) = self.by_id.remove(&id) {
            call.cancel.notify_one();
        }
    }
}

impl CallPermit {
    /// Reads a call's body.
    ///
    /// # Errors
    /// `413` when it exceeds the maximum size, `408` when it arrives too slowly, `400` when it breaks off, `503` when
    /// there is no memory for it.
    pub(super) async fn read(&self, payload: Payload) -> ApiResult<Bytes> {
        let mut chunks = MinRateStream::with_rate(MIN_RATE, payload);
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

    /// Marks a call as signed, and reserves the memory that parsing its content takes for each value, however short it
    /// is. With that memory, the call can no longer be canceled. Returns false, and reserves nothing, if the call needs
    /// more than the channel's share: its repetitions could not be parsed either.
    ///
    /// # Errors
    /// `503` when there is no memory for parsing now.
    pub(super) async fn reserve_for_parsing(&self, body: &[u8]) -> ApiResult<bool> {
        self.mark_signed();
        let bytes = count_values(body) * VALUE_BYTES;
        // The body counts as well: the call keeps it until it is parsed.
        let is_parsable = body.len() + bytes <= self.budget.0.limits.bytes_per_channel;
        if is_parsable {
            self.grow(bytes).await?;
        }
        self.mark_processing();
        Ok(is_parsable)
    }

    fn mark_signed(&self) {
        if let Some(call) = self.budget.0.calls.lock().by_id.get_mut(&self.id) {
            call.is_signed = true;
        }
    }

    fn mark_processing(&self) {
        if let Some(call) = self.budget.0.calls.lock().by_id.get_mut(&self.id) {
            call.is_incomplete = false;
        }
    }

    async fn grow(&self, bytes: usize) -> ApiResult<()> {
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            let released = self.budget.0.memory.released();
            let until = match self.budget.allocate(self.id, bytes, Instant::now()) {
                Allocation::Granted => return Ok(()),
                Allocation::Canceled => return Err(ApiError::unavailable()),
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
        self.budget.0.calls.lock().by_id.remove(&self.id);
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        self.release();
    }
}

/// The number of values in a body: of the separators outside strings, since texts may have thousands of commas.
fn count_values(body: &[u8]) -> usize {
    let (mut count, mut is_string, mut is_escaped) = (0, false, false);
    for byte in body {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_string,
            b'"' => is_string = !is_string,
            b',' | b'[' | b'{' if !is_string => count += 1,
            _ => {}
        }
    }
    count
}

/// Reads and discards the rest, up to seven times the maximum size: a client that is still writing must be able to read
/// the response.
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
        CallBudget::with(CallLimits {
            bytes: 10,
            bytes_per_channel: 4,
            bytes_per_company: 6,
            reserved_bytes: 2,
            small_bytes: 1,
            calls_per_channel: 3,
        })
    }

    fn channel(number: i64) -> ChannelKey {
        (CompanyId::new(number), ChannelId::new(number))
    }

    fn later(by: Duration) -> Instant {
        Instant::now() + by
    }

    #[actix_web::test]
    async fn a_silent_call_uses_no_memory_and_is_canceled_first() {
        let (budget, now) = (budget(), Instant::now());
        let silent: Vec<CallPermit> = (0..3).map(|_| budget.admit(A).expect("a permit")).collect();
        assert_eq!(budget.0.memory.used(), 0);
        let fourth = budget.admit(A).expect("the oldest is canceled");
        assert_eq!(budget.allocate(silent[0].id, 1, now), Allocation::Canceled);
        assert!(silent[0].grow(1).await.is_err());
        assert!(fourth.grow(4).await.is_ok());
        // Calls that are being processed are not canceled.
        fourth.mark_processing();
        silent[1].mark_processing();
        silent[2].mark_processing();
        let refused = budget.admit(A).err().expect("one too many");
        assert_eq!((refused.status.as_u16(), refused.retry_after_s.is_some()), (503, true));
        drop(fourth);
        assert!(budget.admit(A).is_ok());
        assert_eq!(budget.0.memory.used(), 0);
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
        // The slow call is old enough to be canceled.
        assert_eq!(budget.allocate(more.id, 1, later(CANCEL_AFTER)), Allocation::Granted);
        assert_eq!(budget.allocate(slow.id, 1, now), Allocation::Canceled);
        assert_eq!(budget.0.memory.used(), 5);
    }

    #[actix_web::test]
    async fn a_company_is_limited_to_its_share_with_all_of_its_channels() {
        let (budget, now) = (budget(), Instant::now());
        let [first, second] = [A, (A.0, ChannelId::new(3))].map(|channel| budget.admit(channel).expect("a permit"));
        assert_eq!(budget.allocate(first.id, 4, now), Allocation::Granted);
        assert_eq!(budget.allocate(second.id, 2, now), Allocation::Granted);
        assert!(matches!(budget.allocate(second.id, 1, now), Allocation::Full(Some(_))));
        let other = budget.admit(B).expect("a permit");
        assert_eq!(budget.allocate(other.id, 4, now), Allocation::Granted);
        // The company's own oldest call is canceled.
        assert_eq!(budget.allocate(second.id, 1, later(CANCEL_AFTER)), Allocation::Granted);
        assert_eq!(budget.allocate(first.id, 1, now), Allocation::Canceled);
    }

    #[test]
    fn only_separators_outside_strings_count_as_values() {
        for (body, values) in [
            (r#"{"a": 1, "b": [2, 3]}"#, 4),
            (r#"{"a": ",,[{", "b": ","}"#, 2),
            (r#"["\",", "\\", ",\\\",["]"#, 3),
            ("", 0),
            // Not JSON: the parser ends at the same place.
            (r#"[1, "2, 3"#, 2),
            (r#"\"[,""#, 0),
        ] {
            assert_eq!(count_values(body.as_bytes()), values, "{body}");
        }
    }

    #[actix_web::test]
    async fn the_densest_call_of_a_provider_is_parsed_and_one_of_far_more_values_never() {
        let budget = CallBudget::default();
        let value = br#""12345678901234567","#;
        assert_eq!(value.len(), 20, "as dense as calls of providers are");
        let body = value.repeat(CALL_BYTES_MAX / value.len());
        let call = budget.admit(A).expect("a permit");
        call.grow(body.len()).await.expect("memory for the body");
        assert!(matches!(call.reserve_for_parsing(&body).await, Ok(true)));
        assert!(budget.0.memory.used() > 5 * body.len(), "no memory is reserved for the values");
        drop(call);
        // Small, and still too much to parse.
        let body = b",".repeat(300_000);
        let call = budget.admit(A).expect("a permit");
        call.grow(body.len()).await.expect("memory for the body");
        assert!(matches!(call.reserve_for_parsing(&body).await, Ok(false)));
        assert_eq!(budget.0.memory.used(), body.len());
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
        let small = budget.admit(channel(9)).expect("a permit");
        permits.iter().for_each(CallPermit::mark_processing);
        assert_eq!(budget.allocate(small.id, 1, now), Allocation::Granted);
        assert_eq!(
            budget.allocate(small.id, 1, now),
            Allocation::Full(Some(budget.0.calls.lock().by_id[&small.id].since + CANCEL_AFTER))
        );
        drop(small);
        assert_eq!(budget.0.memory.used(), 10);
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
        assert_eq!(budget.allocate(full[0].id, 1, now), Allocation::Canceled);
        assert_eq!(budget.0.memory.used(), 9);
        full[0].cancel.notified().await;
    }

    #[actix_web::test]
    async fn a_call_with_a_valid_signature_is_canceled_after_those_without_one() {
        let (budget, now) = (budget(), Instant::now());
        let [signed, forged] = [(); 2].map(|()| budget.admit(A).expect("a permit"));
        signed.mark_signed();
        for call in [&signed, &forged] {
            assert_eq!(budget.allocate(call.id, 2, now), Allocation::Granted);
        }
        let new = budget.admit(A).expect("a permit");
        assert_eq!(budget.allocate(new.id, 2, later(CANCEL_AFTER)), Allocation::Granted);
        assert_eq!(budget.allocate(forged.id, 1, now), Allocation::Canceled);
        // If all waiting calls are signed, the oldest is canceled: otherwise none would continue.
        new.mark_signed();
        assert_eq!(budget.allocate(new.id, 1, later(CANCEL_AFTER)), Allocation::Granted);
        assert_eq!(budget.allocate(signed.id, 1, now), Allocation::Canceled);
        // A new call cancels no signed one.
        let others: Vec<CallPermit> = (0..2).map(|_| budget.admit(A).expect("a permit")).collect();
        others.iter().for_each(CallPermit::mark_signed);
        assert!(budget.admit(A).is_err());
    }

    #[actix_web::test]
    async fn a_waiting_call_continues_when_memory_is_released() {
        let budget = budget();
        let first = budget.admit(A).expect("a permit");
        first.grow(4).await.expect("memory");
        first.mark_processing();
        let second = budget.admit(A).expect("a permit");
        let (grown, ()) = futures_util::future::join(second.grow(3), async { drop(first) }).await;
        assert!(grown.is_ok());
        assert_eq!(budget.0.memory.used(), 3);
    }
}
