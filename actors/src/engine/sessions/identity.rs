//! Verified visitors, for whom the company vouches in an API request or by a signature: decides in which session they
//! continue.

use chrono::{DateTime, TimeDelta, Utc};
use hotline_persistence::key::KeyHash;
use hotline_persistence::tables::contacts::{self, SignedInContact, UnverifiedContact, Visitor};
use hotline_persistence::tables::events::current_author;
use hotline_persistence::tables::messages;
use hotline_persistence::tables::webchat_sessions::{self, SessionRow, SessionStatus};
use hotline_persistence::{ChannelId, CompanyId, ContactId, SessionId};
use serde_json::Value;

use super::Sessions;
use crate::Refusal;
use crate::clock::now;
use crate::keyed_locks::{KeyedGuard, KeyedLocks};
use crate::tickets::AttachedChanges;
use crate::webchat::{Admit, End, Leave, NewSession, Verify};

/// Locks of contacts whose identity is being established. They ensure that no session of an unknown visitor begins for
/// a contact that is becoming verified, and that two simultaneous sign-ins of one visitor end in one session.
pub(super) type VisitorLocks = KeyedLocks<(CompanyId, ContactId)>;

/// Holds the lock of a contact's sessions until dropped.
pub struct VisitorLock(#[allow(dead_code)] KeyedGuard<(CompanyId, ContactId)>);

/// A visitor with a signed identity.
#[derive(Clone, Debug)]
pub struct Identified {
    /// Their id on the company's website.
    pub external_id: String,
    /// Further details from the website.
    pub visitor: Visitor,
}

impl Sessions {
    /// Locks a contact's sessions. Never take a second lock while holding one.
    pub async fn lock_visitor(&self, company: CompanyId, contact: ContactId) -> VisitorLock {
        VisitorLock(self.visitor_locks.lock((company, contact)).await)
    }

    /// Records that the company vouches for a contact's identity. Unverified sessions of the contact end, because their
    /// visitors may be someone else.
    pub async fn vouch(&self, company: CompanyId, contact: ContactId) -> Result<(), Refusal> {
        let _lock = self.lock_visitor(company, contact).await;
        self.end_unverified(company, contact, None).await?;
        let changes = self.contacts.changes(company);
        changes.add([contact]);
        contacts::set_verified(self.base.db(company), company, contact).await?;
        changes.settle().await;
        Ok(())
    }

    async fn end_unverified(
        &self,
        company: CompanyId,
        contact: ContactId,
        except: Option<&SessionId>,
    ) -> Result<(), Refusal> {
        let db = self.base.reads().tables(company).await?;
        let is_verified = false;
        for (_, session) in webchat_sessions::active_of_contact(db, company, contact, is_verified).await? {
            if Some(&session) != except {
                match self.ask(company, &session, End { idle_since: None, attached: None, by: current_author() }).await
                {
                    Ok(_) | Err(Refusal::NotFound) => {}
                    Err(refusal) => return Err(refusal),
                }
            }
        }
        Ok(())
    }

    /// The contact of a signed identity, with its details filled in.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the database is unavailable; [`Refusal::NotFound`] when the contact was deleted
    /// meanwhile.
    pub async fn sign_in(&self, company: CompanyId, identity: &Identified) -> Result<SignedInContact, Refusal> {
        Ok(self.contact_of(company, identity, None).await?.0)
    }

    /// As [`Sessions::sign_in`], for a visitor who already has a session. The contact of an anonymous session becomes
    /// the identity's contact if the identity has none yet. The lock of that contact's sessions is then returned too,
    /// so that another sign-in looks for the contact's verified session only after this session is verified.
    async fn contact_of(
        &self,
        company: CompanyId,
        identity: &Identified,
        session: Option<&SessionRow>,
    ) -> Result<(SignedInContact, Option<VisitorLock>), Refusal> {
        let db = self.base.db(company);
        let (id, visitor) = (&identity.external_id, &identity.visitor);
        let changes = self.contacts.changes(company);
        let (signed_in, lock) = match session.filter(|session| session.is_anonymous()) {
            Some(session) => {
                let lock = self.lock_visitor(company, session.contact_id).await;
                self.end_unverified(company, session.contact_id, Some(&session.id)).await?;
                changes.add([session.contact_id]);
                let claimed_name =
                    session.claimed.as_ref().and_then(|claimed| claimed.get("name")).and_then(Value::as_str);
                let own_contact = UnverifiedContact { id: session.contact_id, claimed_name };
                let signed_in = contacts::sign_in(db, company, id, visitor, Some(own_contact)).await?;
                (signed_in, (signed_in.id == session.contact_id).then_some(lock))
            }
            None => (contacts::sign_in(db, company, id, visitor, None).await?, None),
        };
        let contact = contacts::find(db, company, signed_in.id).await?.ok_or(Refusal::NotFound)?;
        if visitor.adds_to(&contact) {
            changes.add([contact.id]);
            contacts::fill_empty_fields(db, company, contact.id, visitor).await?;
        }
        changes.settle().await;
        Ok((signed_in, lock))
    }

    /// Handles a signed identity that a visitor presents during a session. Either the session itself becomes verified,
    /// or the visitor continues in a session of the verified contact: the active one or a new one, opened by the token
    /// with this hash. A retry has the same result. Returns the session, and whether that token opens it.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the sign-in cannot be made durable; [`Refusal::NotFound`] when the contact was
    /// deleted meanwhile.
    pub async fn identify(
        &self,
        session: &SessionRow,
        identity: &Identified,
        token: KeyHash,
    ) -> Result<(SessionRow, bool), Refusal> {
        let company = session.company_id;
        let (signed_in, lock) = self.contact_of(company, identity, Some(session)).await?;
        if signed_in.id == session.contact_id {
            match self.ask(company, &session.id, Verify).await {
                // The session has ended: another one is used.
                Err(Refusal::Conflict(_)) => {}
                outcome => return outcome.map(|row| (row, false)),
            }
        }
        let lock = match lock {
            Some(lock) => lock,
            None => self.lock_visitor(company, signed_in.id).await,
        };
        let webchat_contact = (company, session.channel_id, signed_in.id);
        let successor = match self.admit(webchat_contact, token, None).await? {
            Some(row) => row,
            None => self.begin_verified(session, signed_in.id, token).await?,
        };
        drop(lock);
        hotline_persistence::fail_point!("visitor_admitted", |_| std::process::abort());
        if !session.verified {
            let name =
                self.contacts.get(company, signed_in.id).await?.map(|contact| contact.name.clone()).unwrap_or_default();
            let note = format!("The visitor signed in as {name} (contact {}).", signed_in.id);
            self.ask(company, &session.id, Leave { note }).await?;
            hotline_persistence::fail_point!("visitor_left", |_| std::process::abort());
        }
        Ok((successor, true))
    }

    /// Adds a token to the contact's active verified session in a webchat, if there is one. To be called while the
    /// contact is locked ([`Sessions::lock_visitor`]).
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the token cannot be made durable.
    pub async fn admit(
        &self,
        (company, webchat, contact): (CompanyId, ChannelId, ContactId),
        token: KeyHash,
        attached: Option<AttachedChanges<SessionRow>>,
    ) -> Result<Option<SessionRow>, Refusal> {
        let db = self.base.reads().tables(company).await?;
        let is_verified = true;
        for (channel, id) in webchat_sessions::active_of_contact(db, company, contact, is_verified).await? {
            if channel == webchat {
                match self.ask(company, &id, Admit { token, attached: attached.clone() }).await {
                    // The session has just ended.
                    Err(Refusal::Conflict(_) | Refusal::NotFound) => {}
                    outcome => return outcome.map(Some),
                }
            }
        }
        Ok(None)
    }

    async fn begin_verified(
        &self,
        session: &SessionRow,
        contact: ContactId,
        token: KeyHash,
    ) -> Result<SessionRow, Refusal> {
        let shown_from = self.visible_from(session.company_id, session.channel_id, contact).await?;
        let now = now();
        let row = SessionRow {
            company_id: session.company_id,
            id: SessionId::random(),
            channel_id: session.channel_id,
            contact_id: contact,
            ticket_id: None,
            status: SessionStatus::Active,
            token_hash: token.to_vec(),
            page: session.page.clone(),
            utm: session.utm.clone(),
            created_at: now,
            last_seen_at: now,
            ended_at: None,
            verified: true,
            claimed: None,
            shown_from,
            token_hashes: Vec::new(),
            by: Some(current_author()),
        };
        self.begin(NewSession { row, attached: None }).await
    }

    /// The time from which a contact's next session in a webchat shows messages: the creation of the first message that
    /// the last session missed, otherwise the end of the last session; `None` for the start of the new session.
    pub async fn visible_from(
        &self,
        company: CompanyId,
        channel: ChannelId,
        contact: ContactId,
    ) -> Result<Option<DateTime<Utc>>, Refusal> {
        let db = self.base.reads().tables(company).await?;
        let Some(last) = webchat_sessions::latest(db, company, channel, contact).await? else { return Ok(None) };
        let conversation = (channel, contact);
        // Messages may have been missed in two spans. The first begins with the messages that the last session shows,
        // and ends when that session began. The second is from when its visitor was last seen to its end, if it is
        // at least as long as the idle time; otherwise the visitor counts as present until the end.
        let idle_after = TimeDelta::from_std(self.base.options.session_idle_after).unwrap_or(TimeDelta::MAX);
        let spans = [
            last.shown_from.map(|from| (from, last.created_at)),
            last.ended_at.filter(|ended| *ended - last.last_seen_at >= idle_after).map(|to| (last.last_seen_at, to)),
        ];
        for span in spans.into_iter().flatten() {
            let missed = messages::first_undelivered_at(db, company, conversation, span).await?;
            if missed.is_some() {
                return Ok(missed);
            }
        }
        Ok(last.ended_at)
    }

    /// The time up to which an ended session shows messages, so that its token does not read those of other sessions:
    /// right before another session of the contact was open. What is sent before that is shown in both, because the
    /// visitor of an idle session may still look at it. `None` for an active session.
    pub async fn visible_until(&self, session: &SessionRow) -> Result<Option<DateTime<Utc>>, Refusal> {
        if session.status == SessionStatus::Active {
            return Ok(None);
        }
        let ended_at = session.ended_at.unwrap_or(session.last_seen_at);
        // A session that is not acknowledged yet may not be in the tables, but its messages are created later than now.
        let now = now();
        let db = self.base.reads().acknowledged_tables(session.company_id).await?;
        let next_open_at = webchat_sessions::next_open_at(db, session, ended_at).await?;
        // The resolution of the tables: a message of that very time belongs to the other session.
        Ok(Some(next_open_at.map_or(now, |at| at - TimeDelta::microseconds(1))))
    }
}
