//! Sends a campaign's message to a recipient.

use std::sync::Arc;

use actix::{Addr, Message};
use futures_util::{StreamExt, stream};
use hotline_persistence::tables::campaigns::{self, CampaignRun, RecipientRow, RecipientStatus};
use hotline_persistence::tables::contacts;
use hotline_persistence::tables::messages::{MessageRow, MessageStatus};
use hotline_persistence::tables::source::Source;
use hotline_persistence::{CampaignId, Change, CompanyId, ContactId, MessageId};

use super::super::recipient_queue::NextRecipient;
use super::{CampaignRunner, CampaignScope};
use crate::Refusal;
use crate::base::due_work::catch_panic;
use crate::channels::{CHECKS_MAX, WithdrawalVersion};
use crate::services::{Recipient, Target};
use crate::tickets::{AttachedChanges, Author, Content, Execute, Precondition, Send};

/// Concurrent prefetches for recipients: a small part of the company's share of the database.
const PREFETCH_CONCURRENCY: usize = 8;

/// The result of a send that was not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disposition {
    Sent,
    /// The recipient has opted out of campaigns, so there is no message.
    OptedOut,
    /// The recipient was merged into another contact, or a contact who was already written to was merged into the
    /// recipient.
    Merged,
}

/// The progress of a send to a recipient: messages to the campaign's actor, in this order.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) enum SendProgress {
    /// The message is decided, and will be durable unless the send is refused after all. The next recipient may follow.
    Decided {
        contact: ContactId,
        message: MessageId,
        /// Whether the provider does not have it yet.
        is_queued: bool,
    },
    /// The send has ended.
    Ended { recipient: NextRecipient, outcome: Result<Disposition, Refusal> },
    /// The tables were checked after the refusal of a decided message. `is_waiting`: they have no message to the
    /// recipient.
    Checked { recipient: NextRecipient, refusal: Refusal, is_waiting: Result<bool, Refusal> },
}

/// Sends to a recipient. The recipient's new status is in the message's own entry of the log.
pub(super) async fn send_to_recipient(
    scope: &Arc<CampaignScope>,
    key: (CompanyId, CampaignId),
    run: &CampaignRun,
    recipient: &NextRecipient,
    runner: &Addr<CampaignRunner>,
) -> Result<Disposition, Refusal> {
    catch_panic("sending a campaign", send_unless_opted_out(scope, key, run, recipient, runner)).await
}

/// Sends to a recipient who has not opted out.
async fn send_unless_opted_out(
    scope: &Arc<CampaignScope>,
    (company, campaign): (CompanyId, CampaignId),
    run: &CampaignRun,
    recipient: &NextRecipient,
    runner: &Addr<CampaignRunner>,
) -> Result<Disposition, Refusal> {
    let contact = recipient.contact_id;
    let target = find_target(scope, company, run, contact).await?;
    let command = build_command(scope, company, run)?;
    let mut withdrawal_version = recipient.withdrawal_version;
    for _ in 0..CHECKS_MAX {
        // A change since the recipient was read may be their opt-out.
        if !scope.in_transit.withdrawals.is_current(company, withdrawal_version) {
            withdrawal_version = scope.in_transit.withdrawals.version(company);
            if let Some(disposition) = find_exclusion(scope, (company, campaign), contact).await? {
                return Ok(disposition);
            }
        }
        let only_if: Precondition = {
            let in_transit = scope.in_transit.clone();
            Arc::new(move || in_transit.withdrawals.is_current(company, withdrawal_version))
        };
        let execute = Execute {
            command: command.clone(),
            attached: Some(on_decision(scope, campaign, withdrawal_version, runner)),
            only_if: Some(only_if),
        };
        let message = match scope.sending.send(&target, execute).await {
            Err(Refusal::Outdated) => continue,
            outcome => outcome?,
        };
        scope.sending.release_actor(company, message.ticket_id);
        if recipient.is_cached_for_campaign {
            scope.contacts.evict(company, contact);
        }
        return Ok(Disposition::Sent);
    }
    Err(Refusal::Outdated)
}

/// Why the contact gets no message after all, by the tables; `None` if it still is a recipient.
async fn find_exclusion(
    scope: &CampaignScope,
    (company, campaign): (CompanyId, CampaignId),
    contact: ContactId,
) -> Result<Option<Disposition>, Refusal> {
    let db = scope.base.reads().tables_as_of_now(company).await?;
    if contacts::has_opted_out(db, company, contact).await? {
        return Ok(Some(Disposition::OptedOut));
    }
    let is_waiting = campaigns::is_waiting(db, company, campaign, contact).await?;
    Ok((!is_waiting).then_some(Disposition::Merged))
}

/// The callback for a decided message: notifies the campaign's actor, and adds the recipient's new status to the
/// message's entry of the log.
fn on_decision(
    scope: &Arc<CampaignScope>,
    campaign: CampaignId,
    withdrawal_version: WithdrawalVersion,
    runner: &Addr<CampaignRunner>,
) -> AttachedChanges<MessageRow> {
    let (scope, runner) = (scope.clone(), runner.clone());
    Arc::new(move |message: &MessageRow| {
        let (company, contact) = (message.company_id, message.contact_id);
        let is_queued = message.status == MessageStatus::Queued;
        if is_queued {
            // Registered before anyone can report that the message has arrived.
            scope.in_transit.begin(company, message.id, Some(withdrawal_version), runner.clone().recipient());
        }
        runner.do_send(SendProgress::Decided { contact, message: message.id, is_queued });
        Ok(vec![Change::Recipient(Box::new(RecipientRow {
            company_id: company,
            campaign_id: campaign,
            contact_id: contact,
            status: if is_queued { RecipientStatus::Pending } else { RecipientStatus::Sent },
            message_id: Some(message.id),
            error: None,
            updated_at: message.created_at,
        }))])
    })
}

/// Loads the data that messages to these contacts will need. Refusals are ignored here and handled at the send.
pub(super) async fn prefetch(scope: &CampaignScope, company: CompanyId, run: &CampaignRun, contacts: &[ContactId]) {
    let Ok(command) = build_command(scope, company, run) else { return };
    let command = &command;
    // If this fails, each contact is looked up separately.
    drop(scope.sending.prefetch_conversations(company, run.channel_id, contacts, command).await);
    let prefetch_one = |contact: ContactId| async move {
        let Ok(target) = find_target(scope, company, run, contact).await else { return };
        drop(scope.sending.prefetch(&target, command).await);
    };
    stream::iter(contacts.iter().copied())
        .map(prefetch_one)
        .buffer_unordered(PREFETCH_CONCURRENCY)
        .collect::<()>()
        .await;
}

async fn find_target(
    scope: &CampaignScope,
    company: CompanyId,
    run: &CampaignRun,
    contact: ContactId,
) -> Result<Target, Refusal> {
    // A merged contact is no longer a recipient, and the contact it was merged into has a turn of its own.
    Ok(scope.sending.resolve(company, Recipient::Contact(run.channel_id, contact)).await?.never_following_merges())
}

fn build_command(scope: &CampaignScope, company: CompanyId, run: &CampaignRun) -> Result<Send, Refusal> {
    let organization = scope.base.organization(company)?;
    let user = run.user_id.and_then(|id| Some((id, organization.users.get(&id)?.name.clone())));
    let author = Author { user, integration: run.integration_id, source: Source::Campaign };
    Ok(Send { keep_closed: run.keep_closed, ..Send::new(build_content(run)?, author) })
}

fn build_content(run: &CampaignRun) -> Result<Content, Refusal> {
    if let Some(body) = &run.message {
        return Ok(Content::Text { body: body.clone() });
    }
    let built = run.built_template.as_ref().filter(|built| built["template"].is_object());
    // Refused if the stored template is malformed.
    let built = built.ok_or_else(|| Refusal::invalid("template", "is required"))?;
    Ok(Content::Template { template: built["template"].clone(), text: built["text"].as_str().map(str::to_owned) })
}
