//! Sends a campaign's message to a recipient.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};

use actix::{Addr, Message};
use futures_util::{FutureExt, StreamExt, stream};
use hotline_persistence::tables::campaigns::{CampaignRun, RecipientRow, RecipientStatus};
use hotline_persistence::tables::contacts;
use hotline_persistence::tables::messages::{MessageRow, MessageStatus};
use hotline_persistence::tables::source::Source;
use hotline_persistence::{CampaignId, Change, CompanyId, ContactId, MessageId};

use super::super::recipient_queue::NextRecipient;
use super::{CampaignRunner, CampaignScope};
use crate::Refusal;
use crate::channels::{CHECKS_MAX, WithdrawalVersion};
use crate::services::{Recipient, Target};
use crate::tickets::{AttachedChanges, Author, Content, Execute, Precondition, Send};

/// Concurrent prefetches for recipients: a small part of the company's share of the database.
const PREFETCH_CONCURRENCY: usize = 8;

/// The outcome of a send to a recipient.
pub(super) struct SendReport {
    pub(super) recipient: NextRecipient,
    pub(super) outcome: Result<Disposition, Refusal>,
    /// The message that may be in the log, even if the outcome is a refusal.
    pub(super) message: Option<MessageId>,
}

/// The result of a send that was not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disposition {
    Sent,
    /// The recipient has opted out of campaigns, so there is no message.
    OptedOut,
}

/// A recipient's message is decided and will be durable: the next recipient may follow.
#[derive(Clone, Copy, Message)]
#[rtype(result = "()")]
pub(super) struct RecipientDecided {
    pub(super) contact: ContactId,
    /// The message, if it is yet to be handed to the provider.
    pub(super) in_transit: Option<MessageId>,
}

/// Sends to a recipient. The recipient's new status is in the message's own entry of the log.
pub(super) async fn send_to_recipient(
    scope: Arc<CampaignScope>,
    (company, campaign): (CompanyId, CampaignId),
    run: Arc<CampaignRun>,
    recipient: NextRecipient,
    runner: Addr<CampaignRunner>,
) -> SendReport {
    let contact = recipient.contact_id;
    let message_id = Arc::<Mutex<Option<MessageId>>>::default();
    let attached = |withdrawal_version: WithdrawalVersion| -> AttachedChanges<MessageRow> {
        let (scope, message_id, runner) = (scope.clone(), message_id.clone(), runner.clone());
        Arc::new(move |message: &MessageRow| {
            *message_id.lock().unwrap_or_else(PoisonError::into_inner) = Some(message.id);
            let is_queued = message.status == MessageStatus::Queued;
            if is_queued {
                // Registered before anyone can report that the message has arrived.
                scope.in_transit.begin(company, message.id, Some(withdrawal_version), runner.clone().recipient());
            }
            runner.do_send(RecipientDecided { contact, in_transit: is_queued.then_some(message.id) });
            vec![Change::Recipient(Box::new(RecipientRow {
                company_id: company,
                campaign_id: campaign,
                contact_id: contact,
                status: if is_queued { RecipientStatus::Pending } else { RecipientStatus::Sent },
                message_id: Some(message.id),
                error: None,
                updated_at: message.created_at,
            }))]
        })
    };
    let send = async {
        let (target, command) = (target(&scope, company, &run, contact).await?, command(&scope, company, &run)?);
        let mut withdrawal_version = recipient.withdrawal_version;
        for _ in 0..CHECKS_MAX {
            // A change since the recipient was read may be their opt-out.
            if !scope.in_transit.withdrawals.is_current(company, withdrawal_version) {
                withdrawal_version = scope.in_transit.withdrawals.version(company);
                let db = scope.base.reads().tables_as_of_now(company).await?;
                if contacts::has_opted_out(db, company, contact).await? {
                    return Ok(Disposition::OptedOut);
                }
            }
            let only_if: Precondition = {
                let in_transit = scope.in_transit.clone();
                Arc::new(move || in_transit.withdrawals.is_current(company, withdrawal_version))
            };
            let execute = Execute {
                command: command.clone(),
                attached: Some(attached(withdrawal_version)),
                only_if: Some(only_if),
            };
            let message = match scope.sending.send(&target, execute).await {
                Err(Refusal::Outdated) => continue,
                outcome => outcome?,
            };
            scope.sending.release_actor(company, message.ticket_id);
            if recipient.is_fetched {
                scope.contacts.evict(company, contact);
            }
            return Ok(Disposition::Sent);
        }
        Err(Refusal::Outdated)
    };
    let outcome = AssertUnwindSafe(send).catch_unwind().await;
    let outcome = outcome.unwrap_or_else(|_| Err(Refusal::Defect("sending a campaign panicked".to_owned())));
    let message = *message_id.lock().unwrap_or_else(PoisonError::into_inner);
    SendReport { recipient, outcome, message }
}

/// Loads the data that messages to these contacts will need. Refusals are ignored here and handled at the send.
pub(super) async fn prefetch(scope: &CampaignScope, company: CompanyId, run: &CampaignRun, contacts: &[ContactId]) {
    let Ok(command) = command(scope, company, run) else { return };
    let command = &command;
    // If this fails, each contact is looked up separately.
    drop(scope.sending.prefetch_conversations(company, run.channel_id, contacts, command).await);
    let prefetch_one = |contact: ContactId| async move {
        let Ok(target) = target(scope, company, run, contact).await else { return };
        drop(scope.sending.prefetch(&target, command).await);
    };
    stream::iter(contacts.iter().copied())
        .map(prefetch_one)
        .buffer_unordered(PREFETCH_CONCURRENCY)
        .collect::<()>()
        .await;
}

async fn target(
    scope: &CampaignScope,
    company: CompanyId,
    run: &CampaignRun,
    contact: ContactId,
) -> Result<Target, Refusal> {
    scope.sending.resolve(company, Recipient::Contact(run.channel_id, contact)).await
}

fn command(scope: &CampaignScope, company: CompanyId, run: &CampaignRun) -> Result<Send, Refusal> {
    let organization = scope.base.organization(company)?;
    let user = run.user_id.and_then(|id| Some((id, organization.users.get(&id)?.name.clone())));
    let author = Author { user, integration: run.integration_id, source: Source::Campaign };
    Ok(Send { keep_closed: run.keep_closed, ..Send::new(content(run)?, author) })
}

fn content(run: &CampaignRun) -> Result<Content, Refusal> {
    if let Some(body) = &run.message {
        return Ok(Content::Text { body: body.clone() });
    }
    let built = run.built_template.as_ref().filter(|built| built["template"].is_object());
    // The stored template cannot be read.
    let built = built.ok_or_else(|| Refusal::invalid("template", "is required"))?;
    Ok(Content::Template { template: built["template"].clone(), text: built["text"].as_str().map(str::to_owned) })
}
