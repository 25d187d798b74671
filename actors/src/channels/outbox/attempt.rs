//! One attempt to send a message to its provider, and the record of its outcome in the log.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use hotline_persistence::journal::Seq;
use hotline_persistence::tables::channels::ChannelType;
use hotline_persistence::tables::contacts::{self, identities::IdentityKind};
use hotline_persistence::tables::early_statuses;
use hotline_persistence::tables::messages::{
    self, AttemptRow, DeliveryStatus, DeliveryStatusRow, MessageError, Revision,
};
use hotline_persistence::{CompanyId, ContactId};

use super::ChannelKey;
use super::outgoing::Outgoing;
use super::sender_scope::SenderScope;
use crate::Refusal;
use crate::channels::{Accepted, Account, CHECKS_MAX, Delivery, NamedSend, SendFailure, WithdrawalVersion, text_key};
use crate::clock::now;
use crate::tickets::{Author, Revise, UpdateDeliveryStatus};

/// Minimum and maximum pause before a ticket is asked again to record an outcome.
const RECORD_PAUSE_MIN: Duration = Duration::from_millis(50);
const RECORD_PAUSE_MAX: Duration = Duration::from_secs(5);

/// Number of defects after which the recording of an outcome is given up in this run.
const DEFECTS_MAX: u32 = 5;

/// The outcome of an attempt.
#[derive(Debug)]
pub(super) enum AttemptOutcome {
    /// The provider has the message, or has rejected it for good.
    Decided(Decision),
    /// The attempt failed; the message is to be retried.
    Retry(SendFailure),
    /// The message was deleted with its contact before the call.
    Removed,
    /// There was no call, because the channel is not connected: the message waits. It is not withdrawn as of this
    /// version; `None`: that could not be checked.
    Waits(Option<WithdrawalVersion>),
}

/// The new status of a message, its time, and the provider's id of the message.
#[derive(Clone, Debug)]
pub(super) struct Decision {
    delivery_status: DeliveryStatus,
    at: DateTime<Utc>,
    provider_message_id: Option<String>,
    /// Whether the attempt that has sent the message is counted already, because it was in doubt.
    is_counted: bool,
}

impl Decision {
    /// The outcome of an attempt whose message has this status now.
    fn decided_now(delivery_status: DeliveryStatus, provider_message_id: Option<String>) -> AttemptOutcome {
        AttemptOutcome::Decided(Self { delivery_status, at: now(), provider_message_id, is_counted: false })
    }

    /// The decision for a message whose last attempt seemed to fail, or whose answer was lost: a status names
    /// [`Outgoing::current_send`] with this id, so the provider has it.
    pub(super) fn sent_as_named(outgoing: &Outgoing, id: String) -> Self {
        // A message whose text follows its file has the id of the file.
        let provider_message_id =
            outgoing.file_accepted.get().map_or(Some(id), |file| file.provider_message_id.clone());
        let is_counted = outgoing.attempts().count > 0;
        Self { delivery_status: DeliveryStatus::Sent, at: now(), provider_message_id, is_counted }
    }

    /// The status of a message that is given up after this failure.
    pub(super) fn give_up(failure: SendFailure) -> Self {
        let message = match failure {
            SendFailure::Retry { reason, .. }
            | SendFailure::Unknown { reason, .. }
            | SendFailure::TokenRefused { reason } => reason,
            SendFailure::ChannelRateLimited { .. } => "the channel exceeds its provider's rate limit".to_owned(),
            SendFailure::RecipientRateLimited { .. } => "the recipient exceeds the provider's rate limit".to_owned(),
            SendFailure::Failed(error) => error.message,
        };
        let error = MessageError { code: "ERR_GIVEN_UP".to_owned(), message };
        Self { delivery_status: DeliveryStatus::Failed(error), at: now(), provider_message_id: None, is_counted: false }
    }
}

/// Sends a message to its provider. A campaign's message is never sent twice: its attempt is durable before the call.
pub(super) async fn send(scope: &SenderScope, account: Arc<Account>, outgoing: Outgoing) -> AttemptOutcome {
    // A message must be durable before it is sent.
    if let Err(error) = scope.base.store.log.wait_until_durable(outgoing.seq).await {
        return AttemptOutcome::Retry(SendFailure::Retry { reason: error.to_string(), after: None });
    }
    if outgoing.is_removed() {
        return AttemptOutcome::Removed;
    }
    if let Some(outcome) = outcome_of_earlier_attempt(scope, Some(account.kind), &outgoing).await {
        return outcome;
    }
    let (to, to_kind) = match find_address(scope, &outgoing).await {
        Ok(Some(address)) => address,
        Ok(None) => {
            let message = "the contact cannot receive on this channel".to_owned();
            let error = MessageError { code: "ERR_CONTACT_UNREACHABLE".to_owned(), message };
            return Decision::decided_now(DeliveryStatus::Failed(error), None);
        }
        Err(reason) => return AttemptOutcome::Retry(SendFailure::Retry { reason, after: None }),
    };
    if let Some(row) = outgoing.begin_attempt(now())
        && record_attempt(scope, &outgoing, row).await.is_none()
    {
        outgoing.take_back_attempt();
        let reason = "the attempt could not be recorded".to_owned();
        return AttemptOutcome::Retry(SendFailure::Retry { reason, after: None });
    }
    hotline_persistence::fail_point!("attempt_begun", |_| std::process::abort());
    let outcome = deliver(scope, account, &outgoing, to, to_kind).await;
    let is_unsent =
        matches!(&outcome, AttemptOutcome::Retry(failure) if !matches!(failure, SendFailure::Unknown { .. }));
    if is_unsent && let Some(row) = outgoing.take_back_attempt() {
        // If this cannot be recorded, the message is in doubt after a restart, or its file is sent again.
        let _ = record_attempt(scope, &outgoing, row).await;
    }
    outcome
}

/// Settles a campaign's message while its channel is not connected, if no call is needed: the message may have been
/// sent in an earlier run, or is withdrawn. `version` is the current version of the company's withdrawals.
pub(super) async fn settle_without_call(
    scope: &SenderScope,
    outgoing: &Outgoing,
    version: WithdrawalVersion,
) -> AttemptOutcome {
    if scope.base.store.log.wait_until_durable(outgoing.seq).await.is_err() {
        return AttemptOutcome::Waits(None);
    }
    if outgoing.is_removed() {
        return AttemptOutcome::Removed;
    }
    let (company, channel) = (outgoing.message.company_id, outgoing.message.channel_id);
    let organization = scope.base.directory.company(company);
    let kind = organization.and_then(|organization| organization.channels.get(&channel).map(|channel| channel.kind));
    if let Some(outcome) = outcome_of_earlier_attempt(scope, kind, outgoing).await {
        return outcome;
    }
    match find_withdrawal(scope, outgoing).await {
        Ok(None) => AttemptOutcome::Waits(Some(version)),
        Ok(Some(error)) => Decision::decided_now(DeliveryStatus::Failed(error), None),
        Err(reason) => {
            tracing::debug!(reason, message.id = %outgoing.id(), "checking a campaign's message will be retried");
            AttemptOutcome::Waits(None)
        }
    }
}

/// The outcome of an earlier attempt that has been in doubt since an earlier run, or after which a status has named the
/// message. `None`: the message is to be sent.
async fn outcome_of_earlier_attempt(
    scope: &SenderScope,
    kind: Option<ChannelType>,
    outgoing: &Outgoing,
) -> Option<AttemptOutcome> {
    let attempts = outgoing.attempts();
    // Only WhatsApp's statuses name messages.
    let may_be_named = kind == Some(ChannelType::Whatsapp);
    if attempts.is_in_doubt() {
        let reason = attempts.reason.unwrap_or_else(|| "the service was stopped before the answer".to_owned());
        let failure = SendFailure::Unknown { reason, is_file_only: attempts.is_file_only, may_be_named };
        return Some(AttemptOutcome::Retry(failure));
    }
    let kind = kind.filter(|_| may_be_named)?;
    let (channel, send) = ((outgoing.message.company_id, outgoing.message.channel_id), outgoing.current_send());
    let id = match scope.inboxes.named_messages.provider_id(channel, send) {
        Some(id) => id,
        // A message that was never in doubt is not looked up in the tables: most messages must not cost a query.
        None if attempts.count == 0 => return None,
        None => match find_stored_id(scope, channel, send).await {
            Ok(id) => id?,
            Err(reason) => return Some(AttemptOutcome::Retry(SendFailure::Retry { reason, after: None })),
        },
    };
    if outgoing.file_accepted.get().is_none() && scope.provider.sends_text_separately(kind, &outgoing.message) {
        // The status names the message's file. Its text is still to be sent.
        outgoing.end_file_doubt();
        // Nothing else sets `file_accepted` between two attempts.
        let _ = outgoing.file_accepted.set(Accepted { provider_message_id: Some(id), text_message_id: None });
        return None;
    }
    Some(AttemptOutcome::Decided(Decision::sent_as_named(outgoing, id)))
}

/// Makes the last checks and calls the provider.
async fn deliver(
    scope: &SenderScope,
    account: Arc<Account>,
    outgoing: &Outgoing,
    to: String,
    to_kind: IdentityKind,
) -> AttemptOutcome {
    // There is no await between this check and the call, so a withdrawal that is acknowledged later finds the message
    // sent.
    if outgoing.is_of_campaign() {
        match find_withdrawal(scope, outgoing).await {
            Ok(None) => {}
            Ok(Some(error)) => return Decision::decided_now(DeliveryStatus::Failed(error), None),
            Err(reason) => return AttemptOutcome::Retry(SendFailure::Retry { reason, after: None }),
        }
    }
    // Without the lease, another process may have taken over and would send the message as well.
    if !scope.base.store.may_act() {
        let reason = "other processes may have taken over".to_owned();
        return AttemptOutcome::Retry(SendFailure::Retry { reason, after: None });
    }
    // Checked last, after every wait.
    if outgoing.is_removed() {
        return AttemptOutcome::Removed;
    }
    let file_accepted = outgoing.file_accepted.clone();
    let delivery = Delivery { account, to, to_kind, message: outgoing.message.clone(), file_accepted };
    let answer = call_provider(scope, delivery).await;
    match answer.inspect_err(|failure| scope.attempts.count_failure(failure)) {
        Ok(accepted) => {
            hotline_persistence::fail_point!("message_taken", |_| std::process::abort());
            scope.attempts.count_accepted();
            Decision::decided_now(DeliveryStatus::Sent, accepted.provider_message_id)
        }
        Err(SendFailure::Failed(error)) => Decision::decided_now(DeliveryStatus::Failed(error), None),
        Err(failure) => AttemptOutcome::Retry(failure),
    }
}

/// Calls the provider; all its answers to sends pass through here. Social channels also return each message as an echo.
async fn call_provider(scope: &SenderScope, delivery: Delivery) -> Result<Accepted, SendFailure> {
    let own_sends = &scope.inboxes.own_sends;
    let (message, file_accepted) = (delivery.message.clone(), delivery.file_accepted.clone());
    let channel = (message.company_id, message.channel_id);
    let is_echoed = !delivery.account.kind.has_phone();
    if is_echoed {
        own_sends.begin(channel, &message, file_accepted.get().is_some());
    }
    let outcome = scope.provider.send(delivery).await.map(Accepted::storable).map_err(SendFailure::storable);
    let outcome = outcome.map_err(|failure| match failure {
        // A reaction that is sent twice is shown once, so it is retried.
        SendFailure::Unknown { reason, .. } if message.reacts_to().is_some() => {
            SendFailure::Retry { reason, after: None }
        }
        failure => failure,
    });
    if is_echoed { own_sends.end(channel, &message, outcome, file_accepted.get()) } else { outcome }
}

/// The provider's id of a send in doubt, once a status has named it; `None` if none does within `time_max`.
pub(super) async fn find_provider_id(
    scope: &SenderScope,
    channel: ChannelKey,
    send: NamedSend,
    time_max: Duration,
) -> Option<String> {
    // The status may have arrived before a restart.
    match find_stored_id(scope, channel, send).await {
        Ok(Some(id)) => return Some(id),
        Ok(None) => {}
        Err(reason) => {
            let (NamedSend::Message(message) | NamedSend::Text(message)) = send;
            tracing::debug!(reason, message.id = %message, "could not look up the status of a message in doubt");
        }
    }
    scope.inboxes.named_messages.wait_for_provider_id(channel, send, time_max).await
}

/// The provider's id of a send that a stored status has named.
async fn find_stored_id(
    scope: &SenderScope,
    (company, channel): ChannelKey,
    send: NamedSend,
) -> Result<Option<String>, String> {
    let base = scope.base.clone();
    let query = async move {
        match send {
            NamedSend::Message(message) => {
                early_statuses::find_provider_id(base.db(company), company, channel, message).await
            }
            NamedSend::Text(message) => {
                let key = text_key(message);
                let stored = early_statuses::of_message(base.db(company), company, channel, &key).await;
                stored.map(|stored| (!stored.is_empty()).then_some(key))
            }
        }
    };
    let found = scope.base.background.spawn(query).await.map_err(|error| error.to_string())?;
    found.map_err(|error| error.to_string())
}

/// Why a campaign's message is withdrawn; `None` if it may be sent, as of the time of return. The tables are queried
/// only if there may have been a withdrawal since the message was decided or last checked.
async fn find_withdrawal(scope: &SenderScope, outgoing: &Outgoing) -> Result<Option<MessageError>, String> {
    let (company, id) = (outgoing.message.company_id, outgoing.message.id);
    let mut checked_version = scope.in_transit.checked_version(company, id);
    for _ in 0..CHECKS_MAX {
        if checked_version.is_some_and(|version| scope.in_transit.withdrawals.is_current(company, version)) {
            return Ok(None);
        }
        let version = scope.in_transit.withdrawals.version(company);
        let base = scope.base.clone();
        let query = async move {
            let db = base.reads().tables_as_of_now(company).await?;
            Ok::<_, Refusal>(messages::withdrawal_reason(db, company, id).await?)
        };
        let found = scope.base.background.spawn(query).await.map_err(|error| error.to_string())?;
        if let Some(error) = found.map_err(|refusal| refusal.to_string())? {
            return Ok(Some(error));
        }
        hotline_persistence::fail_point!("campaign_message_looked_at");
        scope.in_transit.record_check(company, id, version);
        checked_version = Some(version);
    }
    Err("contacts opt out faster than they can be checked".to_owned())
}

/// How the provider addresses the recipient; `None` if the contact cannot receive on this channel.
async fn find_address(scope: &SenderScope, outgoing: &Outgoing) -> Result<Option<(String, IdentityKind)>, String> {
    let (message, contact) = (&outgoing.message, outgoing.contact());
    let channel = (message.company_id, message.channel_id);
    let has_phone = scope
        .base
        .directory
        .company(channel.0)
        .and_then(|company| company.channels.get(&channel.1).map(|channel| channel.kind.has_phone()));
    if has_phone == Some(true)
        && let Some(number) = find_number(scope, outgoing).await?
    {
        return Ok(Some((number, IdentityKind::Number)));
    }
    // A contact's id on a phone channel is not cached: it may change, or be that of a group.
    let may_be_cached = has_phone == Some(false);
    if may_be_cached && let Some(address) = scope.inboxes.address(channel, contact) {
        return Ok(Some((address, IdentityKind::UserId)));
    }
    let base = scope.base.clone();
    let query = async move { contacts::address_of(base.db(channel.0), channel.0, channel.1, contact).await };
    let found = scope.base.background.spawn(query).await.map_err(|error| error.to_string())?;
    let address = found.map_err(|error| error.to_string())?;
    Ok(match address {
        Some((address, kind)) if may_be_cached => Some((scope.inboxes.cache_address(channel, contact, address), kind)),
        address => address,
    })
}

/// The recipient's number. It is read again if the contact has changed since the message was accepted.
async fn find_number(scope: &SenderScope, outgoing: &Outgoing) -> Result<Option<String>, String> {
    if !outgoing.is_number_stale {
        return Ok(outgoing.number.clone());
    }
    let (base, company, contact) = (scope.base.clone(), outgoing.message.company_id, outgoing.contact());
    let query = async move { contacts::find_ref(base.readers(), company, contact).await };
    let found = scope.base.background.spawn(query).await.map_err(|error| error.to_string())?;
    let found = found.map_err(|error| error.to_string())?;
    // A contact that has since been merged is still reached at its earlier number.
    Ok(found.map_or_else(|| outgoing.number.clone(), |contact| contact.number.map(String::from)))
}

/// Waits while the recipient is being merged or deleted. Its rows are locked meanwhile: a batch of the persister that
/// changes one of them would wait in the database, and with it the changes of other companies in the batch.
pub(super) async fn wait_until_unmarked(scope: &SenderScope, company: CompanyId, contact: ContactId) {
    while scope.tickets.is_marked(company, contact) {
        scope.tickets.wait_until_unmarked(company, contact).await;
    }
}

/// Records the attempts of a message in the log. Returns a place in the log once they are durable, as
/// [`record_outcome`] does.
pub(super) async fn record_attempt(scope: &SenderScope, outgoing: &Outgoing, row: AttemptRow) -> Option<Seq> {
    wait_until_unmarked(scope, outgoing.message.company_id, outgoing.contact()).await;
    scope.status_recorder.record_attempt(outgoing.message.channel_id, row).await
}

/// Records the outcome of a message in the log. Returns a place in the log at or after that entry, once the entry is
/// durable. `None`: the outcome cannot be recorded, and the message must not be sent again in this run.
pub(super) async fn record_outcome(scope: Arc<SenderScope>, outgoing: Outgoing, decision: Decision) -> Option<Seq> {
    wait_until_unmarked(&scope, outgoing.message.company_id, outgoing.contact()).await;
    let message = &outgoing.message;
    let Decision { delivery_status, at, provider_message_id, is_counted } = decision;
    let background = scope.base.background.clone();
    if let Some(target) = message.reacts_to() {
        let error = match delivery_status {
            DeliveryStatus::Failed(error) => Some(error),
            DeliveryStatus::Sent | DeliveryStatus::Delivered | DeliveryStatus::Read => None,
        };
        let revision = Revision::ReactionSent { id: message.id, error };
        let revise = Revise { message: target.id, revision, at, author: Author::AUTOMATION };
        let outcome = TicketOutcome::Reaction(Box::new(revise));
        return background.spawn(record_in_ticket(scope, outgoing, outcome)).await.ok().flatten();
    }
    let has_failed = matches!(delivery_status, DeliveryStatus::Failed(_));
    let attempt = outgoing.settle_attempts(!has_failed, is_counted);
    if message.after_send.is_none() && !delivery_status.is_opt_out() {
        let row = DeliveryStatusRow {
            company_id: message.company_id,
            ticket_id: message.ticket_id,
            message_id: message.id,
            delivery_status,
            at,
            provider_message_id,
            noted_at: None,
        };
        return scope.status_recorder.record(message.channel_id, row, attempt).await;
    }
    if let Some(attempt) = attempt {
        // If the attempt cannot be recorded, neither can the status.
        let _ = scope.status_recorder.record_attempt(message.channel_id, attempt).await;
    }
    // The message has a follow-up action, or its recipient opts out, which its ticket must decide.
    let progress = UpdateDeliveryStatus { message: outgoing.id(), delivery_status, at, provider_message_id };
    background.spawn(record_in_ticket(scope, outgoing, TicketOutcome::Status(progress))).await.ok().flatten()
}

/// An outcome that the message's ticket records.
enum TicketOutcome {
    Status(UpdateDeliveryStatus),
    Reaction(Box<Revise>),
}

/// Asks the ticket to record the outcome until it succeeds, because a message that was sent must not be sent again.
/// `None`: given up after [`DEFECTS_MAX`] defects.
async fn record_in_ticket(scope: Arc<SenderScope>, outgoing: Outgoing, outcome: TicketOutcome) -> Option<Seq> {
    let company = outgoing.message.company_id;
    let (mut pause, mut defects) = (RECORD_PAUSE_MIN, 0);
    loop {
        let (tickets, ticket) = (&scope.tickets, outgoing.ticket());
        let recorded = match &outcome {
            TicketOutcome::Status(progress) => tickets.record_status(company, ticket, progress.clone()),
            TicketOutcome::Reaction(revise) => tickets.record_reaction(company, ticket, Revise::clone(revise)),
        };
        match recorded.await {
            // The message was deleted with its contact: there is nothing to record.
            Ok(()) | Err(Refusal::NotFound) => return Some(scope.base.store.log.last_of(company)),
            Err(refusal @ Refusal::Defect(_)) => {
                defects += 1;
                if defects >= DEFECTS_MAX {
                    tracing::error!(%refusal, message.id = %outgoing.id(), company.id = %company, "could not record a message's status on its ticket");
                    return None;
                }
            }
            Err(refusal) => {
                tracing::debug!(%refusal, message.id = %outgoing.id(), "recording a message's status will be retried")
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(RECORD_PAUSE_MAX);
    }
}
