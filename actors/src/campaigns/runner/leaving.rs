//! Sends to a recipient: the command, and what is known of the send before it is durable.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};

use actix::{Addr, Message};
use futures_util::{FutureExt, StreamExt, stream};
use hotline_persistence::tables::campaigns::{CampaignRun, RecipientRow, RecipientStatus};
use hotline_persistence::tables::contacts;
use hotline_persistence::tables::messages::{MessageRow, MessageStatus};
use hotline_persistence::tables::source::Source;
use hotline_persistence::{CampaignId, Change, CompanyId, ContactId, MessageId};

use super::super::line::NextRecipient;
use super::{CampaignRunner, CampaignScope};
use crate::Refusal;
use crate::channels::{LOOKS_MAX, Stamp};
use crate::engine::{Recipient, Target};
use crate::tickets::{AttachedChanges, Author, Content, Execute, Precondition, Send};

/// Concurrent look-ups ahead for recipients: a small part of the company's share of the database.
const LOOK_AHEAD_AT_ONCE: usize = 8;

/// The outcome of a send to a recipient.
pub(super) struct Left {
    pub(super) recipient: NextRecipient,
    pub(super) outcome: Result<Departure, Refusal>,
    /// The message that may be in the log, whatever the outcome says.
    pub(super) message: Option<MessageId>,
}

/// What became of a recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Departure {
    Written,
    /// Nothing was written: they have opted out of campaigns.
    OptedOut,
}

/// A recipient is decided and will be durable: the next one may follow.
#[derive(Clone, Copy, Message)]
#[rtype(result = "()")]
pub(super) struct Decided {
    pub(super) contact: ContactId,
    /// The message, if it is yet to be handed to the provider.
    pub(super) in_transit: Option<MessageId>,
}

/// Sends to a recipient. The recipient's new status is in the message's own entry of the log.
pub(super) async fn leave(
    scope: Arc<CampaignScope>,
    (company, campaign): (CompanyId, CampaignId),
    run: Arc<CampaignRun>,
    recipient: NextRecipient,
    home: Addr<CampaignRunner>,
) -> Left {
    let contact = recipient.contact_id;
    let decided = Arc::<Mutex<Option<MessageId>>>::default();
    let attached = |looked: Stamp| -> AttachedChanges<MessageRow> {
        let (scope, decided, home) = (scope.clone(), decided.clone(), home.clone());
        Arc::new(move |message: &MessageRow| {
            *decided.lock().unwrap_or_else(PoisonError::into_inner) = Some(message.id);
            let is_queued = message.status == MessageStatus::Queued;
            if is_queued {
                // Registered before anyone can report that the message has arrived.
                scope.in_transit.begin(company, message.id, Some(looked), home.clone().recipient());
            }
            home.do_send(Decided { contact, in_transit: is_queued.then_some(message.id) });
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
    let sent = async {
        let (target, command) = (target(&scope, company, &run, contact).await?, command(&scope, company, &run)?);
        let mut looked = recipient.looked;
        for _ in 0..LOOKS_MAX {
            // What has changed since the recipient was read may be that they want no campaigns.
            if !scope.in_transit.withdrawals.is_current(company, looked) {
                looked = scope.in_transit.withdrawals.stamp(company);
                let db = scope.base.reads().tables_as_of_now(company).await?;
                if contacts::has_opted_out(db, company, contact).await? {
                    return Ok(Departure::OptedOut);
                }
            }
            let only_if: Precondition = {
                let in_transit = scope.in_transit.clone();
                Arc::new(move || in_transit.withdrawals.is_current(company, looked))
            };
            let what = Execute { command: command.clone(), attached: Some(attached(looked)), only_if: Some(only_if) };
            let message = match scope.sending.send(&target, what).await {
                Err(Refusal::Outdated) => continue,
                outcome => outcome?,
            };
            scope.sending.let_go(company, message.ticket_id);
            if recipient.is_fetched {
                scope.contacts.let_go(company, contact);
            }
            return Ok(Departure::Written);
        }
        Err(Refusal::Outdated)
    };
    let outcome = AssertUnwindSafe(sent).catch_unwind().await;
    let outcome = outcome.unwrap_or_else(|_| Err(Refusal::Defect("sending a campaign panicked".to_owned())));
    let message = *decided.lock().unwrap_or_else(PoisonError::into_inner);
    Left { recipient, outcome, message }
}

/// Loads ahead what messages to these contacts will need to know. Refusals are ignored here and handled at the send.
pub(super) async fn look_ahead(scope: &CampaignScope, company: CompanyId, run: &CampaignRun, contacts: &[ContactId]) {
    let Ok(command) = command(scope, company, run) else { return };
    let command = &command;
    // If this fails, each contact is looked up alone.
    drop(scope.sending.bring_together(company, run.channel_id, contacts, command).await);
    let each = |contact: ContactId| async move {
        let Ok(target) = target(scope, company, run, contact).await else { return };
        drop(scope.sending.look_ahead(&target, command).await);
    };
    stream::iter(contacts.iter().copied()).map(each).buffer_unordered(LOOK_AHEAD_AT_ONCE).collect::<()>().await;
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
