//! Limits the memory of calls: each channel has a share, and a call uses as much as it has sent.
//!
//! Anyone who knows a channel's public key may start a call; the signature is checked once the body is complete. So a
//! call that sends nothing uses nothing, and one that sends slowly is refused ([`PACE`]). When memory is short, the
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

use crate::web::wire::{Pace, Paced, body_error};
use crate::web::{ApiError, ApiResult};

/// Maximum size of a call; the provider documents up to 3 MB.
/// <https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/overview>
pub(super) const CALL_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The minimum pace of a call. Providers call from data centres, and wait some 10 seconds for the response.
const PACE: Pace = Pace { grace: Duration::from_secs(5), bytes_per_s: 64 * 1024 };

/// How long a call waits for memory.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Minimum age at which an incomplete call may be cancelled for others.
const ON_ITS_WAY_MAX: Duration = Duration::from_secs(1);

/// Limits of the memory that calls use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shares {
    /// Bytes in total.
    pub bytes: usize,
    /// Bytes per channel: four calls of maximum size.
    pub of_channel_bytes: usize,
    /// Additional bytes for channels that use at most `small_bytes`: when others have used up the total, a normal call
    /// of some KiB need not wait.
    pub kept_back_bytes: usize,
    /// The size up to which a channel's use is small.
    pub small_bytes: usize,
    /// Calls per channel: enough for a provider's burst, and more than a channel processes in a moment.
    pub of_channel_calls: usize,
}

impl Default for Shares {
    fn default() -> Self {
        Self {
            bytes: 64 << 20,
            of_channel_bytes: 16 << 20,
            kept_back_bytes: 16 << 20,
            small_bytes: 256 << 10,
            of_channel_calls: 256,
        }
    }
}

pub(super) type Channel = (CompanyId, ChannelId);

/// All calls that are read or processed. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Seats(Arc<Inner>);

#[derive(Default)]
struct Inner {
    shares: Shares,
    held: Mutex<Held>,
    freed: Notify,
}

/// The memory in use. Calls are ordered by their start.
#[derive(Default)]
struct Held {
    calls: BTreeMap<u64, Call>,
    channels: HashMap<Channel, OfChannel>,
    bytes: usize,
    begun: u64,
}

struct Call {
    channel: Channel,
    bytes: usize,
    since: Instant,
    /// Whether the signature is not verified yet.
    is_on_its_way: bool,
    cut: Arc<Notify>,
}

#[derive(Clone, Copy, Default)]
struct OfChannel {
    calls: usize,
    bytes: usize,
}

/// A call's permit, until it is answered.
pub(super) struct Permit {
    seats: Seats,
    id: u64,
    cut: Arc<Notify>,
}

/// The result of requesting memory.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Granted,
    /// Full; an incomplete call may be cancelled at this time.
    Full(Option<Instant>),
    /// This call was cancelled.
    Gone,
}

impl Seats {
    #[cfg(test)]
    fn with(shares: Shares) -> Self {
        Self(Arc::new(Inner { shares, ..Inner::default() }))
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A permit for a call that has sent nothing yet. If the channel has too many calls, its oldest incomplete one is
    /// cancelled.
    ///
    /// # Errors
    /// `503` when all of them are being processed: the provider repeats the call.
    pub(super) fn enter(&self, channel: Channel) -> ApiResult<Permit> {
        let mut held = self.held();
        let calls = held.channels.get(&channel).map_or(0, |channel| channel.calls);
        if calls >= self.0.shares.of_channel_calls {
            let oldest = held.on_their_way(channel).next().map(|(id, _)| id);
            held.cut(oldest.ok_or_else(ApiError::unavailable)?);
        }
        let id = held.begun;
        held.begun += 1;
        let cut = Arc::new(Notify::new());
        let call = Call { channel, bytes: 0, since: Instant::now(), is_on_its_way: true, cut: cut.clone() };
        held.calls.insert(id, call);
        held.channels.entry(channel).or_default().calls += 1;
        Ok(Permit { seats: self.clone(), id, cut })
    }

    /// Requests memory for this many more bytes of a call.
    fn ask(&self, id: u64, bytes: usize, now: Instant) -> Asked {
        let shares = self.0.shares;
        let mut held = self.held();
        loop {
            let Some(channel) = held.calls.get(&id).map(|call| call.channel) else { return Asked::Gone };
            let of_channel = held.channels.get(&channel).map_or(0, |channel| channel.bytes) + bytes;
            let is_small = of_channel <= shares.small_bytes;
            let bytes_max = shares.bytes + if is_small { shares.kept_back_bytes } else { 0 };
            let crowded = if of_channel > shares.of_channel_bytes {
                Some(channel)
            } else if held.bytes + bytes > bytes_max {
                held.fullest()
            } else {
                held.add(id, bytes);
                return Asked::Granted;
            };
            let oldest = crowded.and_then(|crowded| held.on_their_way(crowded).find(|(_, call)| call.bytes > 0));
            match oldest.map(|(oldest, call)| (oldest, call.since + ON_ITS_WAY_MAX)) {
                Some((oldest, until)) if until <= now => held.cut(oldest),
                Some((_, until)) => return Asked::Full(Some(until)),
                None => return Asked::Full(None),
            }
        }
    }
}

impl Held {
    /// The incomplete calls of a channel, oldest first.
    fn on_their_way(&self, channel: Channel) -> impl Iterator<Item = (u64, &Call)> {
        let is_one = move |call: &Call| call.channel == channel && call.is_on_its_way;
        self.calls.iter().filter(move |(_, call)| is_one(call)).map(|(id, call)| (*id, call))
    }

    /// The channel whose incomplete calls use most memory.
    fn fullest(&self) -> Option<Channel> {
        let mut coming: HashMap<Channel, usize> = HashMap::new();
        for call in self.calls.values().filter(|call| call.is_on_its_way && call.bytes > 0) {
            *coming.entry(call.channel).or_default() += call.bytes;
        }
        coming.into_iter().max_by_key(|(_, bytes)| *bytes).map(|(channel, _)| channel)
    }

    fn add(&mut self, id: u64, bytes: usize) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        call.bytes += bytes;
        self.bytes += bytes;
        self.channels.entry(call.channel).or_default().bytes += bytes;
    }

    fn cut(&mut self, id: u64) {
        if let Some(cut) = self.remove(id) {
            cut.notify_one();
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
        Some(call.cut)
    }
}

impl Permit {
    /// Reads a call's body.
    ///
    /// # Errors
    /// `413` when it exceeds the maximum size, `408` when it arrives too slowly, `400` when it breaks off, `503` when
    /// there is no memory for it.
    pub(super) async fn read(&self, payload: Payload) -> ApiResult<Bytes> {
        let mut chunks = Paced::at(PACE, payload);
        let mut body = BytesMut::new();
        loop {
            let chunk = tokio::select! {
                biased;
                () = self.cut.notified() => return Err(ApiError::unavailable()),
                chunk = chunks.next() => chunk,
            };
            let Some(chunk) = chunk else { return Ok(body.freeze()) };
            let chunk = chunk.map_err(body_error)?;
            if body.len() + chunk.len() > CALL_BYTES_MAX {
                drop(body);
                self.give_back();
                drain(chunks).await;
                return Err(ApiError::payload_too_large(CALL_BYTES_MAX));
            }
            self.grow(chunk.len()).await?;
            body.extend_from_slice(&chunk);
        }
    }

    /// The signature is verified: the call can no longer be cancelled.
    pub(super) fn settle(&self) {
        if let Some(call) = self.seats.held().calls.get_mut(&self.id) {
            call.is_on_its_way = false;
        }
    }

    async fn grow(&self, bytes: usize) -> ApiResult<()> {
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            let freed = self.seats.0.freed.notified();
            let until = match self.seats.ask(self.id, bytes, Instant::now()) {
                Asked::Granted => return Ok(()),
                Asked::Gone => return Err(ApiError::unavailable()),
                Asked::Full(until) => until.map_or(deadline, |until| until.min(deadline)),
            };
            tokio::select! {
                () = freed => {}
                () = sleep_until(until) => {}
            }
            if Instant::now() >= deadline {
                return Err(ApiError::unavailable());
            }
        }
    }

    fn give_back(&self) {
        drop(self.seats.held().remove(self.id));
        self.seats.0.freed.notify_waiters();
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Reads and discards the rest, for a while: a client that is still writing must be able to read the response.
async fn drain(mut chunks: Paced<Payload>) {
    let mut left = 7 * CALL_BYTES_MAX;
    while let Some(Ok(chunk)) = chunks.next().await {
        left = left.saturating_sub(chunk.len());
        if left == 0 {
            return;
        }
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use super::*;

    const A: Channel = (CompanyId::new(1), ChannelId::new(1));
    const B: Channel = (CompanyId::new(2), ChannelId::new(2));

    /// Ten bytes in total, four per channel, and two more for channels that use at most one.
    fn seats() -> Seats {
        Seats::with(Shares { bytes: 10, of_channel_bytes: 4, kept_back_bytes: 2, small_bytes: 1, of_channel_calls: 3 })
    }

    fn channel(number: i64) -> Channel {
        (CompanyId::new(number), ChannelId::new(number))
    }

    fn later(by: Duration) -> Instant {
        Instant::now() + by
    }

    #[actix_web::test]
    async fn who_sends_nothing_holds_nothing_and_gives_way_to_who_comes() {
        let (seats, now) = (seats(), Instant::now());
        let silent: Vec<Permit> = (0..3).map(|_| seats.enter(A).expect("a seat")).collect();
        assert_eq!(seats.held().bytes, 0);
        let fourth = seats.enter(A).expect("the oldest is cut off");
        assert_eq!(seats.ask(silent[0].id, 1, now), Asked::Gone);
        assert!(silent[0].grow(1).await.is_err());
        assert!(fourth.grow(4).await.is_ok());
        // Calls that are being processed are not cancelled.
        fourth.settle();
        silent[1].settle();
        silent[2].settle();
        let refused = seats.enter(A).err().expect("one too many");
        assert_eq!((refused.status.as_u16(), refused.retry_after_s.is_some()), (503, true));
        drop(fourth);
        assert!(seats.enter(A).is_ok());
        assert_eq!(seats.held().bytes, 0);
    }

    #[actix_web::test]
    async fn a_channel_has_its_share_and_takes_none_of_another_s() {
        let (seats, now) = (seats(), Instant::now());
        let slow = seats.enter(A).expect("a seat");
        assert_eq!(seats.ask(slow.id, 4, now), Asked::Granted);
        let more = seats.enter(A).expect("a seat");
        assert!(matches!(seats.ask(more.id, 1, now), Asked::Full(Some(_))));
        let other = seats.enter(B).expect("a seat");
        assert_eq!(seats.ask(other.id, 4, now), Asked::Granted);
        // The slow call has had its second.
        assert_eq!(seats.ask(more.id, 1, later(ON_ITS_WAY_MAX)), Asked::Granted);
        assert_eq!(seats.ask(slow.id, 1, now), Asked::Gone);
        assert_eq!(seats.held().bytes, 5);
    }

    #[actix_web::test]
    async fn what_is_small_finds_room_when_others_have_everything() {
        let (seats, now) = (seats(), Instant::now());
        let held: Vec<Permit> = [4, 4, 2]
            .into_iter()
            .zip(1..)
            .map(|(bytes, number)| {
                let seat = seats.enter(channel(number)).expect("a seat");
                assert_eq!(seats.ask(seat.id, bytes, now), Asked::Granted);
                seat
            })
            .collect();
        let small = seats.enter(B).expect("a seat");
        let other = seats.enter(channel(9)).expect("a seat");
        held.iter().for_each(Permit::settle);
        assert_eq!(seats.ask(other.id, 1, now), Asked::Granted);
        assert_eq!(
            seats.ask(other.id, 1, now),
            Asked::Full(Some(seats.held().calls[&other.id].since + ON_ITS_WAY_MAX))
        );
        drop(small);
        drop(other);
        assert_eq!(seats.held().bytes, 10);
    }

    #[actix_web::test]
    async fn where_all_is_taken_the_oldest_of_the_fullest_gives_way() {
        let (seats, now) = (seats(), Instant::now());
        let full = [channel(1), channel(2), channel(1)].map(|channel| seats.enter(channel).expect("a seat"));
        for (seat, bytes) in full.iter().zip([2, 3, 2]) {
            assert_eq!(seats.ask(seat.id, bytes, now), Asked::Granted);
        }
        let new = seats.enter(channel(3)).expect("a seat");
        assert_eq!(seats.ask(new.id, 4, later(ON_ITS_WAY_MAX)), Asked::Granted);
        assert_eq!(seats.ask(full[0].id, 1, now), Asked::Gone);
        assert_eq!(seats.held().bytes, 9);
        full[0].cut.notified().await;
    }

    #[actix_web::test]
    async fn who_waits_goes_on_when_memory_is_given_back() {
        let seats = seats();
        let first = seats.enter(A).expect("a seat");
        first.grow(4).await.expect("memory");
        first.settle();
        let second = seats.enter(A).expect("a seat");
        let (grown, ()) = futures_util::future::join(second.grow(3), async { drop(first) }).await;
        assert!(grown.is_ok());
        assert_eq!(seats.held().bytes, 3);
    }
}
