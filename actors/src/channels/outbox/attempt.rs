//! One attempt to hand one message over, and what is told of its end.

use std::sync::Arc;
use std::time::Duration;

use hotline_persistence::tables::contacts;
use hotline_persistence::tables::messages::{MessageError, Milestone};

use super::{Outboxes, Outgoing};
use crate::Refusal;
use crate::channels::{Account, Delivery, SendFailure};
use crate::clock::now;
use crate::engine::{Core, Engine};
use crate::tickets::Progress;

/// First and longest pause before a ticket is told once more.
const TELL_PAUSE_MIN: Duration = Duration::from_millis(50);
const TELL_PAUSE_MAX: Duration = Duration::from_secs(5);

/// Defects in a row after which a ticket is not told any more in this run.
const DEFECTS_MAX: u32 = 5;

/// How an attempt ended.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The ticket knows what has become of the message.
    Done,
    /// The ticket cannot be told. The message must not be sent again in this run.
    Untold,
    /// It is as it was.
    Later(SendFailure),
}

/// Hands a message over and tells its ticket.
pub(super) async fn send(core: Arc<Core>, outboxes: Arc<Outboxes>, account: Arc<Account>, what: Outgoing) -> Outcome {
    // Effects never precede durability.
    if let Err(error) = core.store.log.synced(what.seq).await {
        return Outcome::Later(SendFailure::Retry { reason: error.to_string(), after: None });
    }
    let to = match address(&core, &outboxes, &what).await {
        Ok(Some(to)) => to,
        Ok(None) => {
            let message = "the contact cannot be reached on this channel".to_owned();
            let error = MessageError { code: "ERR_CONTACT_UNREACHABLE".to_owned(), message };
            return tell(&core, &what, Milestone::Failed(error), None).await;
        }
        Err(error) => return Outcome::Later(SendFailure::Retry { reason: error.to_string(), after: None }),
    };
    let delivery = Delivery { account, to, message: what.message.clone() };
    match outboxes.provider.send(delivery).await {
        Ok(accepted) => {
            fail::fail_point!("message_taken", |_| std::process::abort());
            tell(&core, &what, Milestone::Sent, accepted.provider_message_id).await
        }
        Err(SendFailure::Failed(error)) => tell(&core, &what, Milestone::Failed(error), None).await,
        Err(failure) => Outcome::Later(failure),
    }
}

/// Gives a message up.
pub(super) async fn give_up(core: Arc<Core>, what: Outgoing, failure: SendFailure) -> Outcome {
    let message = match failure {
        SendFailure::Retry { reason, .. } | SendFailure::TokenRefused { reason } => reason,
        SendFailure::ChannelPaced { .. } => "the channel sends faster than its provider allows".to_owned(),
        SendFailure::RecipientPaced { .. } => "the recipient receives more than the provider allows".to_owned(),
        SendFailure::Failed(error) => error.message,
    };
    let error = MessageError { code: "ERR_GIVEN_UP".to_owned(), message };
    tell(&core, &what, Milestone::Failed(error), None).await
}

/// How the provider addresses the recipient.
async fn address(
    core: &Core,
    outboxes: &Outboxes,
    what: &Outgoing,
) -> Result<Option<String>, hotline_persistence::Error> {
    let message = &what.message;
    let channel = (message.company_id, message.channel_id);
    let has_phone = core
        .directory
        .company(channel.0)
        .and_then(|company| company.channels.get(&channel.1).map(|channel| channel.kind.has_phone()));
    if let Some(number) = what.number.as_ref().filter(|_| has_phone == Some(true)) {
        return Ok(Some(number.clone()));
    }
    let key = (channel, what.contact());
    if let Some(address) = outboxes.addresses.get(&key) {
        return Ok(Some(address));
    }
    let address = contacts::address_of(&core.store.db, channel.0, channel.1, what.contact()).await?;
    if let Some(address) = &address {
        outboxes.addresses.insert(key, address.clone());
    }
    Ok(address)
}

/// Tells the ticket, for as long as it takes: what was sent once must not be sent again.
async fn tell(core: &Arc<Core>, what: &Outgoing, milestone: Milestone, provider_message_id: Option<String>) -> Outcome {
    let engine = Engine::of(core.clone());
    let progress = Progress { message: what.id(), milestone, at: now(), provider_message_id };
    let (mut pause, mut defects) = (TELL_PAUSE_MIN, 0);
    loop {
        match engine.ask(what.message.company_id, what.ticket(), progress.clone()).await {
            // With its contact, the message has gone: nobody needs to know.
            Ok(()) | Err(Refusal::NotFound) => return Outcome::Done,
            Err(refusal @ Refusal::Defect(_)) => {
                defects += 1;
                if defects >= DEFECTS_MAX {
                    tracing::error!(%refusal, message.id = %what.id(), company.id = %what.message.company_id, "a ticket cannot be told what has become of a message");
                    return Outcome::Untold;
                }
            }
            Err(refusal) => tracing::debug!(%refusal, message.id = %what.id(), "a ticket is told later"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(TELL_PAUSE_MAX);
    }
}
