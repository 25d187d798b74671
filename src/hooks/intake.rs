//! Processes the events of a call.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{StreamExt, stream};
use hotline_actors::services::{EchoMessage, EchoOutcome, InboundMessage, MessageRevision, Revised, Sender};
use hotline_actors::{Engine, Organization, Refusal, clock};
use hotline_persistence::tables::campaigns::PausedReason;
use hotline_persistence::tables::channels::{ChangedTemplate, ChannelRow, ChannelSettings, ChannelType};
use hotline_persistence::tables::events::{By, act_as};
use hotline_persistence::tables::messages::Revision;
use hotline_persistence::{ChannelId, CompanyId};

use super::call::{AccountNewsKind, Call, CallEvent, EventKind};
use super::downloads::Downloads;
use crate::metrics::Tally;

/// Conversations of a call that are processed concurrently: enough to share the journal's syncs.
const CONCURRENT_CONVERSATIONS_MAX: usize = 16;

#[derive(Default)]
struct Counts {
    processed: AtomicUsize,
    ignored: AtomicUsize,
    repeated: AtomicUsize,
    unreadable: AtomicUsize,
}

impl Counts {
    fn add_ignored(&self) {
        self.ignored.fetch_add(1, Ordering::Relaxed);
    }

    fn into_tally(self) -> Tally {
        Tally {
            taken: self.processed.into_inner(),
            repeated: self.repeated.into_inner(),
            ignored: self.ignored.into_inner(),
            unreadable: self.unreadable.into_inner(),
        }
    }
}

/// Processes a call in four steps: changes of identities, other events, statuses up to a time, and news of the account.
/// A step that fails is the last one. The events of one conversation are processed in the order of the call.
///
/// # Errors
/// Why something cannot be processed now. The provider then repeats the call; events that were processed before have no
/// further effect.
pub(super) async fn process_call(
    engine: &Engine,
    downloads: &Downloads,
    channel: &ChannelRow,
    call: Call,
) -> Result<Tally, Refusal> {
    let company = channel.company_id;
    let organization = engine.directory().company(company).ok_or(Refusal::NotFound)?;
    let settings = channel.settings()?;
    let Call { events, news, ignored, unreadable } = call;
    let counts = Counts { ignored: ignored.into(), unreadable: unreadable.into(), ..Counts::default() };
    let context = IntakeContext { engine, downloads, company };
    let channel_of = |account: Option<&str>| channel_of_event(&organization, channel, &settings, account);
    // Processed first, so that the messages of the same call find the contact by its new number or id.
    let (changes, events): (Vec<_>, Vec<_>) =
        events.into_iter().partition(|event| matches!(event.kind, EventKind::IdentityChanged(_)));
    for CallEvent { account, kind } in changes {
        match channel_of(account.as_deref()) {
            Some(channel) => process_conversation(context, channel, vec![kind], &counts).await?,
            None => counts.add_ignored(),
        }
    }
    // Processed after the other events, so that the statuses of single messages are recorded first.
    let (statuses_until, events): (Vec<_>, Vec<_>) =
        events.into_iter().partition(|event| matches!(event.kind, EventKind::StatusesUntil { .. }));
    for events in [events, statuses_until] {
        process_conversations(context, group_by_conversation(events, channel_of, &counts), &counts).await?;
    }
    // News of the account comes last: if a later step failed, the repeated call would record it again.
    for news in news {
        let channels = channels_of_account(&organization, channel, &settings, news.account.as_deref());
        process_news(engine, &channels, news.kind).await?;
        counts.processed.fetch_add(1, Ordering::Relaxed);
    }
    let tally = counts.into_tally();
    if tally.unreadable > 0 {
        tracing::warn!(company.id = %company, channel.id = %channel.id, parts = tally.unreadable, "provider call has unreadable parts");
    }
    Ok(tally)
}

/// The events of conversations, by channel and [`conversation_key`], in the order of the call.
type Conversations = HashMap<(ChannelId, String), Vec<EventKind>>;

/// Groups events by their conversations. Those without a channel are ignored.
fn group_by_conversation(
    events: Vec<CallEvent>,
    channel_of: impl Fn(Option<&str>) -> Option<ChannelId>,
    counts: &Counts,
) -> Conversations {
    let mut conversations = Conversations::new();
    for CallEvent { account, kind } in events {
        match channel_of(account.as_deref()) {
            Some(channel) => conversations.entry((channel, conversation_key(&kind))).or_default().push(kind),
            None => counts.add_ignored(),
        }
    }
    conversations
}

/// The key by which events are grouped: those with the same key are processed in order.
fn conversation_key(kind: &EventKind) -> String {
    match kind {
        EventKind::Message(inbound) => sender_key(&inbound.from),
        EventKind::Echo(echo) => sender_key(&echo.message.from),
        EventKind::Notice(notice) => sender_key(&notice.from),
        EventKind::OptOut { from } => sender_key(from),
        EventKind::IdentityChanged(change) => format!("change {}", change.old.address.as_deref().unwrap_or_default()),
        // A revision may be processed before its message: it is then stored until the message is received.
        EventKind::Revision(revision) => format!("message {}", revision.message_id),
        EventKind::StatusesUntil { address, .. } | EventKind::Referral { address, .. } => format!("contact {address}"),
        EventKind::Status { message_id, .. } => format!("message {message_id}"),
        EventKind::ReactionRefused { target: message, .. } | EventKind::TextStatus { message, .. } => {
            format!("message {message}")
        }
    }
}

fn sender_key(from: &Sender) -> String {
    let number = from.number.as_ref().map(|number| number.digits.as_str());
    // Once the provider has assigned an id, every message has it. The number may be hidden.
    format!("contact {}", from.address.as_deref().or(number).unwrap_or_default())
}

/// The channels of a business account: those that name it in their settings and have the secret of the called channel.
/// If there are none, the called channel is meant, unless its settings name another account.
fn channels_of_account<'a>(
    organization: &'a Organization,
    called_channel: &'a ChannelRow,
    settings: &ChannelSettings,
    account: Option<&str>,
) -> Vec<&'a ChannelRow> {
    let is_of_account = |channel: &&ChannelRow| {
        channel.kind == called_channel.kind
            && channel.settings().is_ok_and(|of_channel| {
                account.is_some()
                    && of_channel.business_account_id.as_deref() == account
                    && of_channel.app_secret == settings.app_secret
            })
    };
    let channels: Vec<&ChannelRow> = organization.channels.values().filter(is_of_account).collect();
    let may_be_called_channel = account.is_none() || settings.business_account_id.is_none();
    if channels.is_empty() && may_be_called_channel { vec![called_channel] } else { channels }
}

/// Processes news of the account of these channels.
async fn process_news(engine: &Engine, channels: &[&ChannelRow], kind: AccountNewsKind) -> Result<(), Refusal> {
    match kind {
        AccountNewsKind::Template(template) => {
            if let Some(template) = template {
                change_template(engine, channels, &template).await?;
            }
        }
        AccountNewsKind::Disabled { reason } => {
            for channel in channels {
                engine.inbound.disconnect(channel, reason).await?;
            }
        }
        AccountNewsKind::Enabled { reason } => {
            for channel in channels {
                engine.inbound.reinstate(channel, reason).await?;
            }
        }
        AccountNewsKind::Alert { alert } => {
            for channel in channels {
                engine.inbound.record_alert(channel, &alert).await?;
            }
        }
        AccountNewsKind::Phone { number, news } => {
            let has_number = |channel: &&&ChannelRow| number.is_some() && channel.number == number;
            // If the number of the news or of the channel is unknown, the account's only channel is meant.
            let may_have_number = |channel: &ChannelRow| number.is_none() || channel.number.is_none();
            let only_channel = match channels {
                [channel] => Some(channel).filter(|channel| may_have_number(channel)),
                _ => None,
            };
            match channels.iter().find(has_number).or(only_channel) {
                Some(channel) => engine.inbound.record_phone_news(channel, &news).await?,
                None => tracing::info!("provider has reported the quality of a number without a channel"),
            }
        }
    }
    Ok(())
}

/// Pauses the campaigns with a template that may no longer be sent, and records the change.
async fn change_template(engine: &Engine, channels: &[&ChannelRow], template: &ChangedTemplate) -> Result<(), Refusal> {
    let Some(company) = channels.first().map(|channel| channel.company_id) else { return Ok(()) };
    let ids: Vec<ChannelId> = channels.iter().map(|channel| channel.id).collect();
    if let Some(reason) = template.status.as_deref().and_then(PausedReason::of_template) {
        let name_and_language = (template.name.as_str(), template.language.as_deref());
        engine.campaigns.pause_for_template(company, &ids, name_and_language, reason).await?;
    }
    engine.inbound.record_template_change(company, &ids, template).await
}

/// The channel of an event. A provider calls one URL for all numbers of an account: an event of another number belongs
/// to that number's channel if the company has one with the same secret; otherwise to none, or on Instagram to the
/// called channel.
fn channel_of_event(
    organization: &Organization,
    called_channel: &ChannelRow,
    settings: &ChannelSettings,
    account: Option<&str>,
) -> Option<ChannelId> {
    let account_of = |settings: &ChannelSettings| match called_channel.kind {
        ChannelType::Whatsapp => settings.phone_number_id.clone(),
        _ => settings.page_id.clone(),
    };
    let (Some(account), Some(own_account)) = (account, account_of(settings)) else { return Some(called_channel.id) };
    if account == own_account {
        return Some(called_channel.id);
    }
    let sibling = organization.channels.values().find(|other| {
        other.kind == called_channel.kind
            && other.settings().is_ok_and(|of_other| {
                account_of(&of_other).as_deref() == Some(account) && of_other.app_secret == settings.app_secret
            })
    });
    // On Instagram, the account in an event is not the page that the settings may name.
    sibling.map(|sibling| sibling.id).or((called_channel.kind == ChannelType::Instagram).then_some(called_channel.id))
}

/// The services and the company of a call.
#[derive(Clone, Copy)]
struct IntakeContext<'a> {
    engine: &'a Engine,
    downloads: &'a Downloads,
    company: CompanyId,
}

/// Processes conversations concurrently; all of them, even if one is refused.
async fn process_conversations(
    context: IntakeContext<'_>,
    conversations: Conversations,
    counts: &Counts,
) -> Result<(), Refusal> {
    let processing = stream::iter(conversations)
        .map(|((channel, _), events)| process_conversation(context, channel, events, counts));
    let outcomes: Vec<Result<(), Refusal>> = processing.buffer_unordered(CONCURRENT_CONVERSATIONS_MAX).collect().await;
    outcomes.into_iter().collect()
}

async fn process_conversation(
    context: IntakeContext<'_>,
    channel: ChannelId,
    events: Vec<EventKind>,
    counts: &Counts,
) -> Result<(), Refusal> {
    for kind in events {
        let counter = match process_event(context, channel, kind).await {
            Ok(EventOutcome::Processed) => &counts.processed,
            Ok(EventOutcome::Repeated) => &counts.repeated,
            Ok(EventOutcome::Ignored) => &counts.ignored,
            Err(refusal @ (Refusal::Unavailable(_) | Refusal::Unknown(_) | Refusal::Defect(_))) => return Err(refusal),
            // Repeating the call would not help: it would be refused again.
            Err(refusal) => {
                tracing::warn!(%refusal, company.id = %context.company, channel.id = %channel, "part of a provider call was refused");
                &counts.unreadable
            }
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

enum EventOutcome {
    Processed,
    /// The event was processed before.
    Repeated,
    /// The event has no effect here.
    Ignored,
}

async fn process_event(
    context: IntakeContext<'_>,
    channel: ChannelId,
    kind: EventKind,
) -> Result<EventOutcome, Refusal> {
    let IntakeContext { engine, company, .. } = context;
    match kind {
        EventKind::Message(inbound) => return receive_message(context, channel, *inbound).await,
        EventKind::Echo(echo) => return receive_echo(context, channel, *echo).await,
        EventKind::Revision(revision) => return revise_message(context, channel, *revision).await,
        EventKind::Notice(notice) => {
            let added = engine.inbound.add_notice(company, channel, *notice).await?;
            return Ok(if added.is_some() { EventOutcome::Processed } else { EventOutcome::Ignored });
        }
        EventKind::Status { message_id, names, status, at } => {
            let at = at.unwrap_or_else(clock::now);
            engine.inbound.record_status(company, channel, &message_id, names, status, at).await?;
        }
        EventKind::ReactionRefused { id, target, error, at } => {
            let at = at.unwrap_or_else(clock::now);
            engine.inbound.refuse_reaction(company, channel, target, id, error, at).await?;
        }
        EventKind::TextStatus { message, status } => {
            engine.inbound.record_text_status(company, channel, message, status).await?;
        }
        EventKind::StatusesUntil { address, status, until } => {
            engine.inbound.record_statuses_until(company, channel, &address, status, until).await?;
        }
        EventKind::OptOut { from } => engine.inbound.record_opt_out(company, channel, &from).await?,
        EventKind::IdentityChanged(change) => engine.inbound.change_identity(company, channel, &change).await?,
        EventKind::Referral { address, referral } => {
            engine.inbound.record_referral(company, channel, &address, referral).await?;
        }
    }
    Ok(EventOutcome::Processed)
}

async fn receive_message(
    context: IntakeContext<'_>,
    channel: ChannelId,
    inbound: InboundMessage,
) -> Result<EventOutcome, Refusal> {
    match context.engine.inbound.receive_inbound(context.company, channel, inbound).await? {
        Some(message) => {
            context.downloads.begin(&message);
            Ok(EventOutcome::Processed)
        }
        None => Ok(EventOutcome::Repeated),
    }
}

/// Receives a message that the company has written in another app. Its events name a user as their author, not the
/// contact.
async fn receive_echo(
    context: IntakeContext<'_>,
    channel: ChannelId,
    echo: EchoMessage,
) -> Result<EventOutcome, Refusal> {
    let received = context.engine.inbound.receive_echo(context.company, channel, echo);
    match act_as(By::user(None, None), received).await? {
        EchoOutcome::Message(message) => {
            context.downloads.begin(&message);
            Ok(EventOutcome::Processed)
        }
        EchoOutcome::Repeated => Ok(EventOutcome::Repeated),
        EchoOutcome::Own => Ok(EventOutcome::Ignored),
    }
}

/// Maximum number of messages that a provider's message becomes: one for each file, and one for its story's picture.
const PARTS_MAX: usize = 33;

/// Revises a message. The files of a deleted one are removed, or no longer downloaded.
async fn revise_message(
    context: IntakeContext<'_>,
    channel: ChannelId,
    revision: MessageRevision,
) -> Result<EventOutcome, Refusal> {
    let IntakeContext { engine, downloads, company } = context;
    let is_deletion = matches!(revision.revision, Revision::Deleted { .. });
    // A message of a social channel with several files is stored in parts, one for each file.
    let organization = engine.directory().company(company);
    let kind = organization.and_then(|organization| organization.channels.get(&channel).map(|channel| channel.kind));
    let has_parts = is_deletion && kind != Some(ChannelType::Whatsapp);
    let mut outcome = EventOutcome::Repeated;
    for number in 1..=PARTS_MAX {
        let message_id = part_id(&revision.message_id, number);
        match engine.inbound.revise(company, channel, MessageRevision { message_id, ..revision.clone() }).await? {
            Revised::Message(before) => {
                if is_deletion {
                    downloads.withdraw(&before);
                }
                // A message without a file has no further parts. A file that was not downloaded has left an error.
                if !has_parts || (before.media.is_none() && before.error.is_none()) {
                    return Ok(EventOutcome::Processed);
                }
                outcome = EventOutcome::Processed;
            }
            Revised::Early if number == 1 => {
                outcome = EventOutcome::Processed;
                // The deletion is also stored for the parts after the first, which may be received later.
                if !has_parts {
                    break;
                }
            }
            // An earlier call may have failed after this part.
            Revised::Unchanged if has_parts => {}
            Revised::Early | Revised::Unchanged => break,
        }
    }
    Ok(outcome)
}

/// The id under which a part of a provider's message is stored; the first part has number 1.
fn part_id(message_id: &str, number: usize) -> String {
    match number {
        1 => message_id.to_owned(),
        number => format!("{message_id}#{number}"),
    }
}
