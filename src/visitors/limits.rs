//! Limits of visitors: their requests and sockets by address, the bytes that they send, and the sockets of a company
//! that read missed messages at the same time.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};
use hotline_persistence::limits::{Denied, KeyedPermit, KeyedPermits, PermitLimits};
use hotline_persistence::{CompanyId, SessionId, pool};

use super::limit_keys::{CLEANUP_INTERVAL, KEYS_MAX};
use super::uploads::{UploadAllowances, UploadMeter, UploadOptions};
use crate::web::ApiError;
use crate::web::admission::rate::{Allowance, LimitClock, RateExceeded, allowance, full_allowance};
use crate::web::connections::origin::Address;
use crate::web::request::meter::Meter;

/// Maximum number of sockets of one company, and of all, that read missed messages at the same time. When a company
/// moves between processes, all of its visitors reconnect at once, while requests need most of its database
/// connections.
const CATCH_UPS_OF_COMPANY_MAX: usize = 2;
const CATCH_UPS_MAX: usize = 8;

/// Maximum number of sockets of one company that wait to read missed messages. Each is open already, so waiting needs
/// almost no memory.
const CATCH_UPS_WAITING_MAX: usize = 100_000;

/// The limits of visitors, and the times of their sockets; each is an option of the command line.
#[derive(Clone, Copy, Debug)]
pub struct VisitorOptions {
    /// Sessions an address may open per minute. In this and the next three fields, 0 means no limit.
    pub sessions_per_minute: u32,
    /// Messages an address may send per minute.
    pub messages_per_minute: u32,
    /// All other requests of an address per minute, including socket handshakes.
    pub requests_per_minute: u32,
    /// Sockets an address may have open.
    pub sockets_per_address: u32,
    /// Bytes that visitors may send.
    pub uploads: UploadOptions,
    /// Interval of the pings on a socket.
    pub heartbeat: Duration,
    /// Maximum silence of a socket.
    pub silence_max: Duration,
}

impl VisitorOptions {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        // An office behind one address opens its chats over hours, not within a minute.
        sessions_per_minute: 30,
        // A fast typist sends twenty messages a minute.
        messages_per_minute: 240,
        requests_per_minute: 600,
        sockets_per_address: 500,
        uploads: UploadOptions::DEFAULT,
        // Below the 30 seconds after which the strictest common proxies close a silent connection.
        heartbeat: Duration::from_secs(25),
        silence_max: Duration::from_secs(60),
    };
}

impl Default for VisitorOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The kind of a request.
#[derive(Clone, Copy, Debug)]
pub enum RequestKind {
    /// Opening a session.
    Session,
    /// Sending a message.
    Message,
    /// Anything else.
    Other,
}

type Limiter = RateLimiter<Address, DefaultKeyedStateStore<Address>, LimitClock, StateInformationMiddleware>;

/// The limits of visitors: the remaining allowance of every address.
pub struct VisitorLimits {
    /// The settings.
    pub options: VisitorOptions,
    sessions: AddressLimit,
    messages: AddressLimit,
    other_requests: AddressLimit,
    /// `None`: no limit.
    sockets: Option<KeyedPermits<Address>>,
    uploads: Arc<UploadAllowances>,
    catch_ups: KeyedPermits<CompanyId>,
}

struct AddressLimit {
    per_minute: u32,
    limiter: Option<Limiter>,
}

impl AddressLimit {
    fn new(per_minute: u32) -> Self {
        let quota = NonZeroU32::new(per_minute).map(Quota::per_minute);
        let new_limiter = |quota| Limiter::new(quota, DefaultKeyedStateStore::default(), LimitClock);
        Self { per_minute, limiter: quota.map(new_limiter) }
    }
}

/// Counts an open socket against the limit of its address.
pub struct SocketPermit {
    _permit: Option<KeyedPermit<Address>>,
}

impl VisitorLimits {
    /// Starts with full allowances.
    pub fn new(options: VisitorOptions) -> Self {
        let sockets = usize::try_from(options.sockets_per_address).unwrap_or(usize::MAX);
        let catch_ups = PermitLimits::new(CATCH_UPS_MAX, CATCH_UPS_OF_COMPANY_MAX);
        Self {
            sessions: AddressLimit::new(options.sessions_per_minute),
            messages: AddressLimit::new(options.messages_per_minute),
            other_requests: AddressLimit::new(options.requests_per_minute),
            sockets: (sockets > 0).then(|| KeyedPermits::new(PermitLimits::of_key(sockets))),
            uploads: Arc::new(UploadAllowances::new(options.uploads)),
            catch_ups: KeyedPermits::new(catch_ups.wait(CATCH_UPS_WAITING_MAX, pool::ACQUIRE_TIME_MAX)),
            options,
        }
    }

    /// Takes one request from an address's allowance.
    ///
    /// # Errors
    /// When none is left.
    pub fn take(&self, kind: RequestKind, address: Option<Address>) -> Result<Allowance, RateExceeded> {
        let limit = match kind {
            RequestKind::Session => &self.sessions,
            RequestKind::Message => &self.messages,
            RequestKind::Other => &self.other_requests,
        };
        let (Some(limiter), Some(address)) = (&limit.limiter, address) else {
            return Ok(full_allowance(limit.per_minute));
        };
        if limiter.len() >= KEYS_MAX {
            let allowance = allowance(limit.per_minute, 0);
            return Err(RateExceeded { allowance, retry_after_s: CLEANUP_INTERVAL.as_secs() });
        }
        match limiter.check_key(&address) {
            Ok(state) => Ok(allowance(limit.per_minute, state.remaining_burst_capacity())),
            Err(error) => Err(RateExceeded::after(limit.per_minute, error.wait_time_from(LimitClock.now()))),
        }
    }

    /// A meter for the bytes of one body, which count against the limits of the company and, if they are known, of the
    /// session and the address.
    pub(super) fn meter(&self, company: CompanyId, session: Option<&SessionId>, address: Option<Address>) -> Meter {
        let mut upload_meter = UploadMeter::of(self.uploads.clone(), company, session, address);
        Meter::new(move |bytes| upload_meter.take(bytes).map_err(|error| ApiError::too_many_bytes(error.retry_after_s)))
    }

    /// Acquires a permit for a socket, if the address has one left.
    pub fn admit_socket(&self, address: Option<Address>) -> Option<SocketPermit> {
        let permit = match self.sockets.as_ref().zip(address) {
            Some((sockets, address)) => Some(sockets.try_acquire(address)?),
            None => None,
        };
        Some(SocketPermit { _permit: permit })
    }

    /// Waits until a socket of a company may read what it has missed.
    ///
    /// # Errors
    /// [`Denied`] when it has waited too long, or too many sockets of the company wait already.
    pub(super) async fn admit_catch_up(&self, company: CompanyId) -> Result<KeyedPermit<CompanyId>, Denied> {
        self.catch_ups.acquire(company).await
    }

    /// Drops a company's state; limits by address remain.
    pub fn forget(&self, company: CompanyId) {
        // Permits exist only while sockets are open.
        let Self { options: _, sessions: _, messages: _, other_requests: _, sockets: _, uploads, catch_ups: _ } = self;
        uploads.forget_company(company);
    }

    /// Periodically removes addresses with full allowances, for as long as the process lives.
    pub async fn run_cleanup(&self) {
        let mut clock = tokio::time::interval(CLEANUP_INTERVAL);
        clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            clock.tick().await;
            for limiter in [&self.sessions, &self.messages, &self.other_requests]
                .into_iter()
                .filter_map(|limit| limit.limiter.as_ref())
            {
                limiter.retain_recent();
                limiter.shrink_to_fit();
            }
            self.uploads.remove_refilled();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Option<Address> {
        Some(Address::of(text.parse().expect("address")))
    }

    #[test]
    fn each_address_and_each_kind_of_request_has_its_own_minute() {
        let options = VisitorOptions { sessions_per_minute: 1, messages_per_minute: 2, ..VisitorOptions::default() };
        let limits = VisitorLimits::new(options);
        let (first_address, second_address) = (address("192.0.2.1"), address("192.0.2.2"));
        assert!(limits.take(RequestKind::Session, first_address).is_ok());
        let error = limits.take(RequestKind::Session, first_address).expect_err("the second is too many");
        assert!((1..=60).contains(&error.retry_after_s), "{error:?}");
        assert!(limits.take(RequestKind::Session, second_address).is_ok());
        assert_eq!(limits.take(RequestKind::Message, first_address).map(|allowance| allowance.remaining), Ok(1));
    }

    #[tokio::test]
    async fn only_a_few_sockets_of_each_company_catch_up_at_a_time() {
        use futures_util::FutureExt;
        let limits = VisitorLimits::new(VisitorOptions::default());
        let (company, other_company) = (CompanyId::new(1), CompanyId::new(2));
        let mut permits = Vec::new();
        for _ in 0..CATCH_UPS_OF_COMPANY_MAX {
            permits.push(limits.admit_catch_up(company).await.expect("a turn"));
        }
        let mut next = Box::pin(limits.admit_catch_up(company));
        assert!((&mut next).now_or_never().is_none(), "one more of the company than may read at once");
        assert!(limits.admit_catch_up(other_company).now_or_never().is_some_and(|permit| permit.is_ok()));
        permits.pop();
        assert!(next.await.is_ok());
    }

    #[test]
    fn a_closed_socket_makes_room_for_another() {
        let options = VisitorOptions { sockets_per_address: 2, ..VisitorOptions::default() };
        let limits = VisitorLimits::new(options);
        let address_of_sockets = address("192.0.2.1");
        let first_permit = limits.admit_socket(address_of_sockets).expect("one");
        let _second_permit = limits.admit_socket(address_of_sockets).expect("two");
        assert!(limits.admit_socket(address_of_sockets).is_none());
        assert!(limits.admit_socket(address("192.0.2.2")).is_some());
        drop(first_permit);
        assert!(limits.admit_socket(address_of_sockets).is_some());
        assert_eq!(limits.sockets.map(|open| open.key_count()), Some(1), "addresses without sockets are forgotten");
    }
}
