//! What a channel's provider tells: a contact has written, or a message has come further. Each is taken once, and
//! durable when it is answered.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use hotline_persistence::tables::contacts::{self, Addressed, ContactRef, Numbered, Referral, ReferralRow};
use hotline_persistence::tables::early_statuses::{self, EarlyStatus};
use hotline_persistence::tables::messages::{self, MessageRow, Milestone, Passed};
use hotline_persistence::{Change, ChannelId, CompanyId, ContactId};
use serde_json::Value;

use super::{Core, Engine};
use crate::Refusal;
use crate::channels::{EARLY_MAX, Early, Inbox, SEEN_MAX, Turn};
use crate::clock::now;
use crate::seen::Membership;
use crate::tickets::{Do, Progress, Receive, Rider};

/// How often a contact is looked for anew because it was deleted meanwhile.
const CONTACT_ATTEMPTS_MAX: usize = 3;

/// How long a status waits for its message: a provider's answer takes seconds, a restart in between minutes.
const EARLY_KEPT: chrono::TimeDelta = chrono::TimeDelta::days(2);

/// How often those that waited long enough are forgotten, and how many at once.
const EARLY_SWEEP_EVERY: Duration = Duration::from_secs(600);
const EARLY_SWEPT_MAX: i64 = 10_000;

/// Pause before early statuses are looked at again after the database went away.
const RETRY_PAUSE: Duration = Duration::from_millis(250);

/// Messages a provider's watermark moves at once, and how often: more were never on their way to one contact.
const PASSED_MAX: i64 = 200;
const PASSED_ROUNDS_MAX: usize = 10;

/// What a provider says a contact has written.
#[derive(Clone, Debug)]
pub struct Inbound {
    /// What the provider calls the message.
    pub message_id: String,
    /// When it was written, as far as the provider says.
    pub written_at: Option<DateTime<Utc>>,
    /// Who wrote it.
    pub from: Sender,
    /// What they wrote, or what stands with the file.
    pub body: Option<String>,
    /// The file that came with it.
    pub media: Option<Value>,
    /// What the provider calls the message they reply to.
    pub quotes: Option<String>,
    /// The advertisement or link that brought them.
    pub referral: Referral,
}

/// Whom a provider names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sender {
    /// Their number, with other spellings of it; none where the provider does not tell it.
    pub number: Option<Number>,
    /// The provider's own id for them.
    pub address: Option<String>,
    /// Their name, as they gave it to the provider.
    pub name: Option<String>,
    /// What they are called where there is no name.
    pub fallback_name: String,
    /// Their name on the social channel.
    pub social_username: Option<String>,
    /// By which kind of channel they come.
    pub origin: &'static str,
}

/// A phone number as a provider writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// Digits.
    pub digits: String,
    /// The same number as it may be written elsewhere.
    pub others: Vec<String>,
    /// ISO 3166-1 alpha-2.
    pub country: Option<String>,
}

impl Engine {
    /// Takes what a contact has written: in the open ticket, else in a new one. None when it was taken before.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when it cannot be taken now: the provider is to repeat it.
    pub async fn take_in(
        &self,
        company: CompanyId,
        channel: ChannelId,
        what: Inbound,
    ) -> Result<Option<MessageRow>, Refusal> {
        let inbox = self.inbox(company, channel).await?;
        let turn = inbox.turn(&what.message_id).await;
        let is_known = match turn.known(what.written_at) {
            Membership::Present => true,
            Membership::Absent => false,
            Membership::Unknown => {
                self.reads().message_by_provider_id(company, channel, &what.message_id).await?.is_some()
            }
        };
        if is_known {
            turn.received(now());
            return Ok(None);
        }
        let id = what.message_id.clone();
        let taken = self.receive_from(company, channel, what, &turn).await?;
        turn.received(taken.created_at);
        self.core.inboxes.note((company, channel), &id, Passed { ticket_id: taken.ticket_id, id: taken.id });
        Ok(Some(taken))
    }

    async fn receive_from(
        &self,
        company: CompanyId,
        channel: ChannelId,
        what: Inbound,
        turn: &Turn,
    ) -> Result<MessageRow, Refusal> {
        let Inbound { message_id, written_at, from, body, media, quotes, referral } = what;
        let quoted = match quotes {
            Some(quotes) => self.passed(company, channel, &quotes).await,
            None => Ok(None),
        };
        // A quote is no reason to refuse what is said: without the database an old one is left out.
        let quoted = quoted.unwrap_or_else(|refusal| {
            tracing::debug!(%refusal, "a quoted message is not found now");
            None
        });
        let receive = Receive {
            body,
            media,
            quoted: quoted.map(|message| message.id),
            provider_message_id: Some(message_id),
            written_at,
            ..Receive::default()
        };
        let rider = (!referral.is_empty()).then(|| brought_by(referral));
        let what = Do { command: receive, rider };
        for _ in 0..CONTACT_ATTEMPTS_MAX {
            let contact = self.contact_from(company, channel, &from).await?;
            match self.receive(company, channel, contact.id, what.clone()).await {
                // Deleted since it was looked for.
                Err(Refusal::ContactNotFound | Refusal::NotFound) => {}
                Err(refusal) => {
                    turn.doubtful(now());
                    return Err(refusal);
                }
                Ok(message) => return Ok(message),
            }
        }
        Err(super::restless())
    }

    /// The contact a provider names: found, or created.
    async fn contact_from(
        &self,
        company: CompanyId,
        channel: ChannelId,
        from: &Sender,
    ) -> Result<Arc<ContactRef>, Refusal> {
        let kept = &self.core.contacts;
        let contact = match (&from.number, &from.address) {
            (Some(number), _) => {
                let mut spellings = std::iter::once(&number.digits).chain(&number.others);
                match spellings.find_map(|number| kept.with_number(company, number)) {
                    Some(contact) => contact,
                    None => self.load_numbered(company, number, from).await?,
                }
            }
            (None, Some(address)) => match kept.with_address(company, channel, address) {
                Some(contact) => contact,
                None => self.load_addressed(company, channel, address, from).await?,
            },
            (None, None) => return Err(Refusal::invalid("from", "must name the sender")),
        };
        if let (Some(_), Some(address)) = (&from.number, &from.address)
            && kept.with_address(company, channel, address).is_none()
        {
            // Should the provider not tell the number the next time.
            self.note_address(company, channel, address.clone(), contact.clone());
        }
        if let Some(name) = &from.name
            && contact.number.as_ref() == Some(&contact.name)
        {
            self.name(company, contact.id, name.clone());
        }
        Ok(contact)
    }

    async fn load_numbered(
        &self,
        company: CompanyId,
        number: &Number,
        from: &Sender,
    ) -> Result<Arc<ContactRef>, Refusal> {
        let _turn = self.core.contacts.looking(company).await;
        let new = Numbered { number: &number.digits, name: from.name.as_deref(), country: number.country.as_deref() };
        let db = self.core.store.db(company);
        let found = contacts::find_or_create_by_any_number(db, company, new, &number.others, from.origin).await?;
        Ok(self.remember(company, found))
    }

    async fn load_addressed(
        &self,
        company: CompanyId,
        channel: ChannelId,
        address: &str,
        from: &Sender,
    ) -> Result<Arc<ContactRef>, Refusal> {
        let _turn = self.core.contacts.looking(company).await;
        let new = Addressed {
            channel,
            address,
            name: from.name.as_deref().unwrap_or(&from.fallback_name),
            social_username: from.social_username.as_deref(),
            origin: from.origin,
        };
        let found = contacts::find_or_create_by_address(self.core.store.db(company), company, new).await?;
        let contact = self.remember(company, found);
        self.core.contacts.remember_address(company, channel, address, contact.id);
        Ok(contact)
    }

    /// Notes an address behind the answer: it is of use only once the number is not told any more.
    fn note_address(&self, company: CompanyId, channel: ChannelId, address: String, contact: Arc<ContactRef>) {
        let engine = self.clone();
        self.spawn(async move {
            let noted =
                contacts::note_address(engine.core.store.db(company), company, channel, &address, contact.id).await;
            match noted {
                Ok(()) => engine.core.contacts.remember_address(company, channel, &address, contact.id),
                Err(error) => tracing::debug!(%error, "a contact's address is noted with the next message"),
            }
        });
    }

    /// Calls a contact by the name they go by, who was called by their number, behind the answer.
    fn name(&self, company: CompanyId, contact: ContactId, name: String) {
        let engine = self.clone();
        self.spawn(async move {
            let changes = engine.contact_changes(company);
            changes.note([contact]);
            match contacts::name_numbered(engine.core.store.db(company), company, contact, &name).await {
                Ok(()) => changes.settle().await,
                Err(error) => tracing::debug!(%error, "a contact is named with the next message"),
            }
        });
    }

    /// A channel's inbox; read once, kept for the life of the process.
    async fn inbox(&self, company: CompanyId, channel: ChannelId) -> Result<Arc<Inbox>, Refusal> {
        let cell = self.core.inboxes.cell((company, channel));
        let load = || async {
            let db = self.reads().tables(company).await?;
            let limit = |max: usize| i64::try_from(max).unwrap_or(i64::MAX);
            let received = messages::received(db, company, channel, limit(SEEN_MAX)).await?;
            let early = early_statuses::of_channel(db, company, channel, limit(EARLY_MAX)).await?;
            let inbox = Inbox::of(&received, Early::of(&early, now()));
            self.settle_early(company, channel, early);
            Ok::<_, Refusal>(Arc::new(inbox))
        };
        cell.get_or_try_init(load).await.cloned()
    }

    /// The message a provider knows by an id, or none.
    async fn passed(&self, company: CompanyId, channel: ChannelId, id: &str) -> Result<Option<Passed>, Refusal> {
        if let Some(passed) = self.core.inboxes.passed((company, channel), id) {
            return Ok(Some(passed));
        }
        let found = self.reads().message_by_provider_id(company, channel, id).await?;
        let found = found.map(|message| Passed { ticket_id: message.ticket_id, id: message.id });
        if let Some(message) = found {
            self.core.inboxes.note((company, channel), id, message);
        }
        Ok(found)
    }

    /// A provider tells how far a message has come. It may do so before the outbox has noted what the provider calls
    /// the message; it is kept then, until the message is found.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when it cannot be taken now: the provider is to repeat it.
    pub async fn tell(
        &self,
        company: CompanyId,
        channel: ChannelId,
        provider_message_id: &str,
        milestone: Milestone,
        at: DateTime<Utc>,
    ) -> Result<(), Refusal> {
        let at = at.min(now());
        if let Some(message) = self.passed(company, channel, provider_message_id).await? {
            return self.progress(company, message, milestone, at).await;
        }
        let inbox = self.inbox(company, channel).await?;
        let early = EarlyStatus {
            company_id: company,
            channel_id: channel,
            provider_message_id: provider_message_id.to_owned(),
            milestone,
            at,
        };
        early_statuses::keep(self.core.store.db(company), &early).await?;
        inbox.early.note(provider_message_id, now());
        // Noted since we looked: who noted it did not yet see that something is kept.
        if self.passed(company, channel, provider_message_id).await?.is_some() {
            self.settle_early(company, channel, vec![provider_message_id.to_owned()]);
        }
        Ok(())
    }

    async fn progress(
        &self,
        company: CompanyId,
        message: Passed,
        milestone: Milestone,
        at: DateTime<Utc>,
    ) -> Result<(), Refusal> {
        let progress = Progress { message: message.id, milestone, at, provider_message_id: None };
        match self.ask(company, message.ticket_id, progress).await {
            // Deleted with its contact: there is nothing to tell of any more.
            Err(Refusal::NotFound) => Ok(()),
            outcome => outcome,
        }
    }

    /// A provider tells that everything it was given for a contact up to a time has come this far.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when it cannot be taken now: the provider is to repeat it.
    pub async fn tell_until(
        &self,
        company: CompanyId,
        channel: ChannelId,
        address: &str,
        milestone: Milestone,
        until: DateTime<Utc>,
    ) -> Result<(), Refusal> {
        let Some(contact) = self.addressed(company, channel, address).await? else { return Ok(()) };
        let status = milestone.status();
        let at = until.min(now());
        for _ in 0..PASSED_ROUNDS_MAX {
            let db = self.reads().tables(company).await?;
            let passed = messages::sent_until(db, company, channel, contact, until, status, PASSED_MAX).await?;
            if passed.is_empty() {
                break;
            }
            for message in passed {
                let progress =
                    Progress { message: message.id, milestone: milestone.clone(), at, provider_message_id: None };
                match self.ask(company, message.ticket_id, progress).await {
                    Ok(()) | Err(Refusal::NotFound) => {}
                    Err(refusal) => return Err(refusal),
                }
            }
        }
        Ok(())
    }

    /// A contact came by an advertisement or a link, without writing. One who never wrote is nobody yet: what brought
    /// them comes again with what they write.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when it cannot be taken now: the provider is to repeat it.
    pub async fn came(
        &self,
        company: CompanyId,
        channel: ChannelId,
        address: &str,
        referral: Referral,
    ) -> Result<(), Refusal> {
        let Some(contact) = self.addressed(company, channel, address).await? else { return Ok(()) };
        let row = ReferralRow { company_id: company, contact_id: contact, referral, at: now() };
        let (_, durable) = self.core.store.log.reserve()?.append(vec![Change::Referral(Box::new(row))])?;
        Ok(durable.reached().await?)
    }

    async fn addressed(
        &self,
        company: CompanyId,
        channel: ChannelId,
        address: &str,
    ) -> Result<Option<ContactId>, Refusal> {
        if let Some(contact) = self.core.contacts.with_address(company, channel, address) {
            return Ok(Some(contact.id));
        }
        let found = contacts::by_address(self.core.store.db(company), company, channel, address).await?;
        Ok(found.map(|contact| contact.id))
    }

    /// Gives messages what was told of them before they were known, as soon as the database answers.
    fn settle_early(&self, company: CompanyId, channel: ChannelId, ids: Vec<String>) {
        let engine = self.clone();
        self.spawn(async move {
            for id in ids {
                while let Err(refusal) = engine.give_early(company, channel, &id).await {
                    if !matches!(refusal, Refusal::Unavailable(_)) {
                        tracing::warn!(%refusal, company.id = %company, "an early status is not given");
                        break;
                    }
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
            }
        });
    }

    async fn give_early(&self, company: CompanyId, channel: ChannelId, id: &str) -> Result<(), Refusal> {
        let inbox = self.inbox(company, channel).await?;
        if !inbox.early.may_hold(id) {
            return Ok(());
        }
        // It waits on: the message is none of ours, or not noted yet.
        let Some(message) = self.passed(company, channel, id).await? else { return Ok(()) };
        let db = self.core.store.db(company);
        for early in early_statuses::of_message(db, company, channel, id).await? {
            self.progress(company, message, early.milestone, early.at).await?;
        }
        early_statuses::remove(db, company, channel, id).await?;
        inbox.early.remove(id);
        Ok(())
    }

    /// Finds the messages of what was told early before a restart, and forgets what belongs to none, for as long as
    /// the process lives.
    pub async fn keep_early(&self) {
        let mut clock = tokio::time::interval(EARLY_SWEEP_EVERY);
        loop {
            clock.tick().await;
            if let Err(refusal) = self.sweep_early().await {
                tracing::debug!(%refusal, "early statuses are swept later");
            }
        }
    }

    async fn sweep_early(&self) -> Result<(), Refusal> {
        let db = &self.core.store.housekeeping;
        let before = now() - EARLY_KEPT;
        while early_statuses::sweep(db, before, EARLY_SWEPT_MAX).await? == EARLY_SWEPT_MAX.unsigned_abs() {}
        self.core.inboxes.sweep_early(before);
        for (company, channel) in early_statuses::channels(db).await? {
            self.inbox(company, channel).await?;
        }
        Ok(())
    }
}

impl Core {
    /// Messages of a channel are known to their provider by these ids from now on.
    pub(crate) fn named(self: &Arc<Self>, company: CompanyId, channel: ChannelId, named: Vec<(String, Passed)>) {
        for (id, message) in named {
            self.inboxes.note((company, channel), &id, message);
            if self.inboxes.may_be_early((company, channel), &id) {
                Engine::of(self.clone()).settle_early(company, channel, vec![id]);
            }
        }
    }
}

/// What brought the contact, in one entry with what they wrote.
fn brought_by(referral: Referral) -> Rider<MessageRow> {
    Arc::new(move |message: &MessageRow| {
        vec![Change::Referral(Box::new(ReferralRow {
            company_id: message.company_id,
            contact_id: message.contact_id,
            referral: referral.clone(),
            at: message.created_at,
        }))]
    })
}
