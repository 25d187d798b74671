//! Processes the events of a call.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{StreamExt, stream};
use hotline_actors::engine::InboundMessage;
use hotline_actors::{Engine, Organization, Refusal, clock};
use hotline_persistence::tables::channels::{ChannelRow, ChannelSettings, ChannelType};
use hotline_persistence::{ChannelId, CompanyId};

use super::call::{Call, Event, What};
use super::downloads::Downloads;
use crate::metrics::Tally;

/// Conversations of a call that are processed concurrently: enough to share the journal's syncs.
const AT_ONCE: usize = 16;

#[derive(Default)]
struct Counts {
    taken: AtomicUsize,
    repeated: AtomicUsize,
    unreadable: AtomicUsize,
}

/// Processes everything possible; events of one contact in the order of the call.
///
/// # Errors
/// Why something cannot be processed now. What was processed stays so: the provider repeats the call, and nothing is
/// processed twice.
pub(super) async fn take(
    engine: &Engine,
    downloads: &Downloads,
    channel: &ChannelRow,
    call: Call,
) -> Result<Tally, Refusal> {
    let company = channel.company_id;
    let organization = engine.directory().company(company).ok_or(Refusal::NotFound)?;
    let settings = channel.settings()?;
    let Call { events, mut ignored, unreadable } = call;
    let mut strands: HashMap<(ChannelId, String), Vec<What>> = HashMap::new();
    for Event { account, what } in events {
        match addressee(&organization, channel, &settings, account.as_deref()) {
            Some(channel) => strands.entry((channel, strand(&what))).or_default().push(what),
            None => ignored += 1,
        }
    }
    let counts = Counts::default();
    let to = Told { engine, downloads, company };
    let strands = stream::iter(strands).map(|((channel, _), strand)| follow(to, channel, strand, &counts));
    let outcomes: Vec<Result<(), Refusal>> = strands.buffer_unordered(AT_ONCE).collect().await;
    if let Some(refusal) = outcomes.into_iter().find_map(Result::err) {
        return Err(refusal);
    }
    let tally = Tally {
        taken: counts.taken.into_inner(),
        repeated: counts.repeated.into_inner(),
        ignored,
        unreadable: unreadable + counts.unreadable.into_inner(),
    };
    if tally.unreadable > 0 {
        tracing::warn!(company.id = %company, channel.id = %channel.id, parts = tally.unreadable, "provider call has unreadable parts");
    }
    Ok(tally)
}

/// The conversation of an event: events of one conversation are processed in order.
fn strand(what: &What) -> String {
    match what {
        What::Said(inbound) => {
            let from = &inbound.from;
            let number = from.number.as_ref().map(|number| number.digits.as_str());
            format!("contact {}", number.or(from.address.as_deref()).unwrap_or_default())
        }
        What::Until { address, .. } | What::Came { address, .. } => format!("contact {address}"),
        What::Status { message_id, .. } => format!("message {message_id}"),
    }
}

/// The channel of an event. A provider calls one URL for all numbers of an account: an event of another number belongs
/// to its own channel, if the company has one with the same secret, and otherwise to none. An exception is Instagram
/// (see below).
fn addressee(
    organization: &Organization,
    called: &ChannelRow,
    settings: &ChannelSettings,
    account: Option<&str>,
) -> Option<ChannelId> {
    let account_of = |settings: &ChannelSettings| match called.kind {
        ChannelType::Whatsapp => settings.phone_number_id.clone(),
        _ => settings.page_id.clone(),
    };
    let (Some(account), Some(own)) = (account, account_of(settings)) else { return Some(called.id) };
    if account == own {
        return Some(called.id);
    }
    let sibling = organization.channels.values().find(|other| {
        other.kind == called.kind
            && other.settings().is_ok_and(|other| {
                account_of(&other).as_deref() == Some(account) && other.app_secret == settings.app_secret
            })
    });
    // On Instagram, the account in an event is not the page that the settings may name.
    sibling.map(|sibling| sibling.id).or((called.kind == ChannelType::Instagram).then_some(called.id))
}

/// The company whose events are processed.
#[derive(Clone, Copy)]
struct Told<'a> {
    engine: &'a Engine,
    downloads: &'a Downloads,
    company: CompanyId,
}

async fn follow(to: Told<'_>, channel: ChannelId, strand: Vec<What>, counts: &Counts) -> Result<(), Refusal> {
    for what in strand {
        let counted = match carry_out(to, channel, what).await {
            Ok(true) => &counts.taken,
            Ok(false) => &counts.repeated,
            Err(refusal @ (Refusal::Unavailable(_) | Refusal::Unknown(_) | Refusal::Defect(_))) => return Err(refusal),
            // Repeating the call would not help: it would be refused again.
            Err(refusal) => {
                tracing::warn!(%refusal, company.id = %to.company, channel.id = %channel, "part of a provider call was refused");
                &counts.unreadable
            }
        };
        counted.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Processes one event; `false` when it was processed before.
async fn carry_out(to: Told<'_>, channel: ChannelId, what: What) -> Result<bool, Refusal> {
    let Told { engine, company, .. } = to;
    match what {
        What::Said(inbound) => said(to, channel, *inbound).await,
        What::Status { message_id, milestone, at } => {
            let at = at.unwrap_or_else(clock::now);
            engine.inbound.record_status(company, channel, &message_id, milestone, at).await.map(|()| true)
        }
        What::Until { address, milestone, until } => {
            engine.inbound.record_statuses_until(company, channel, &address, milestone, until).await.map(|()| true)
        }
        What::Came { address, referral } => {
            engine.inbound.record_referral(company, channel, &address, referral).await.map(|()| true)
        }
    }
}

async fn said(to: Told<'_>, channel: ChannelId, inbound: InboundMessage) -> Result<bool, Refusal> {
    let has_file = inbound.media.is_some();
    match to.engine.inbound.receive_inbound(to.company, channel, inbound).await? {
        Some(message) => {
            if has_file {
                to.downloads.begin(&message);
            }
            Ok(true)
        }
        None => Ok(false),
    }
}
