//! The JSON of tickets as last rendered, for reads and lists of tickets that have not changed since.
//!
//! An inbox requests the same tickets every few seconds, and few of them have changed.

use std::sync::{Arc, Weak};
use std::time::Duration;

use hotline_actors::{Organization, tickets};
use hotline_persistence::{CompanyId, TicketId};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

/// Maximum bytes of the rendered tickets of all companies: enough for 40,000 with texts of the usual length.
const RENDERED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Number of tickets that the cache expects.
const RENDERED_EXPECTED: usize = 40_000;

/// Bytes of an entry besides its JSON: the key, what the cache itself needs, and the ticket's state, whose memory is
/// freed only with the entry.
const ENTRY_BYTES: usize = size_of::<tickets::Ticket>() + 128;

/// How often entries are dropped whose tickets have changed, were deleted or are no longer hot: their texts must not
/// stay in memory.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// The rendered tickets of all companies, within a limit of bytes.
pub struct RenderedTickets(Cache<(CompanyId, TicketId), Arc<RenderedTicket>, JsonWeighter>);

/// A ticket as JSON.
#[derive(Debug)]
pub struct RenderedTicket {
    /// The state that the JSON was rendered from. While this reference exists, the state's address is not reused, so a
    /// later state is never mistaken for it.
    ticket: Weak<tickets::Ticket>,
    /// The version of the directory whose names are in the JSON.
    version: u64,
    json: Box<RawValue>,
}

#[derive(Clone)]
struct JsonWeighter;

impl Weighter<(CompanyId, TicketId), Arc<RenderedTicket>> for JsonWeighter {
    fn weight(&self, _: &(CompanyId, TicketId), rendered: &Arc<RenderedTicket>) -> u64 {
        (rendered.json.get().len() + ENTRY_BYTES) as u64
    }
}

impl Default for RenderedTickets {
    fn default() -> Self {
        Self(Cache::with_weighter(RENDERED_EXPECTED, RENDERED_BYTES_MAX, JsonWeighter))
    }
}

impl RenderedTickets {
    /// The JSON of a ticket, from the cache if neither the ticket nor the directory has changed since; `None` if it
    /// cannot be rendered.
    pub(super) fn render<T: Serialize>(
        &self,
        organization: &Organization,
        ticket: &Arc<tickets::Ticket>,
        view: impl FnOnce() -> T,
    ) -> Option<Arc<RenderedTicket>> {
        let key = (ticket.row.company_id, ticket.row.id);
        if let Some(rendered) = self.0.get(&key).filter(|rendered| rendered.is_current(organization, ticket)) {
            return Some(rendered);
        }
        let json = to_raw_value(&view()).ok()?;
        let (ticket, version) = (Arc::downgrade(ticket), organization.version);
        let rendered = Arc::new(RenderedTicket { ticket, version, json });
        self.0.insert(key, rendered.clone());
        Some(rendered)
    }

    /// Drops entries whose state is no longer in use, for as long as the process runs.
    pub async fn run_sweep(&self) {
        let mut ticks = tokio::time::interval(SWEEP_INTERVAL);
        loop {
            ticks.tick().await;
            self.sweep();
        }
    }

    fn sweep(&self) {
        self.0.retain(|_, rendered| rendered.ticket.strong_count() > 0);
    }
}

impl RenderedTicket {
    fn is_current(&self, organization: &Organization, ticket: &Arc<tickets::Ticket>) -> bool {
        self.version == organization.version && std::ptr::eq(self.ticket.as_ptr(), Arc::as_ptr(ticket))
    }
}

impl Serialize for RenderedTicket {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}
