//! Revisions of a message after it was written: edits, its deletion, reactions.
//!
//! Each report has the time at which it happened. Applying one twice, or after a later one, changes nothing: providers
//! repeat their reports, in any order.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, FromRow, PgConnection};

use super::{ChangeCause, ChangedMessage, Direction, MessageError, MessageRow, ReactionSend};
use crate::document::{self, Document};
use crate::tables::source::Source;
use crate::tables::{text_enum, zones};
use crate::{CompanyId, ContactId, MessageId, TicketId, Timestamp, TokenId, UserId};

/// Maximum earlier texts of a message: apps allow edits for a few minutes. Beyond it, the second oldest is removed.
pub const EDITS_MAX: usize = 20;

/// Maximum reactions of a message, withdrawn ones included: one for each person of a large group.
pub const REACTIONS_MAX: usize = 256;

/// Maximum characters of a reaction: an emoji with its modifiers is shorter.
pub const EMOJI_CHARACTERS_MAX: usize = 32;

/// Everything that has happened to a message: its column `revisions`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Revisions {
    /// The time of its last edit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited_at: Option<DateTime<Utc>>,
    /// Its earlier texts, the oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<EarlierText>,
    /// When its author deleted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<DateTime<Utc>>,
    /// One reaction for each person, in the order of their first reactions; also withdrawn ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reactions: Vec<Reaction>,
    /// The company's reaction that is still to be sent to the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sending: Option<ReactionSend>,
}

/// A text that a message had before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EarlierText {
    /// The text.
    pub body: Option<String>,
    /// When it was replaced.
    pub at: DateTime<Utc>,
    /// The id of the edit that replaced it.
    pub id: String,
    /// When Hotline received that edit.
    pub noted_at: DateTime<Utc>,
}

text_enum! {
    /// Whose reaction it is.
    Reactor {
        /// The contact's, or somebody's in their group.
        Contact = "contact",
        /// The company's.
        User = "user",
    }
}

/// The reaction of one person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reaction {
    /// Identifies the person within this message: each person has one reaction.
    pub key: String,
    pub by: Reactor,
    /// `None`: it was withdrawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emoji: Option<String>,
    /// The contact's name at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integration_id: Option<TokenId>,
    /// Why the provider has refused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<MessageError>,
    /// For the company's reaction: the id with which it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_as: Option<MessageId>,
    /// For the company's reaction: the emoji that the contact saw before, and still sees if the provider refuses this
    /// one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    pub at: DateTime<Utc>,
}

impl Reaction {
    /// The reaction in the API's format; `None` if it was withdrawn.
    fn as_shown(&self) -> Option<Value> {
        let emoji = self.emoji.as_ref()?;
        let user = self.user_id.map(|id| json!({"id": id, "name": self.user_name}));
        Some(json!({"emoji": emoji, "by": self.by, "user": user, "name": self.name, "at": Timestamp(self.at)}))
    }

    /// The key of the company: a provider shows one reaction of it.
    pub const OF_COMPANY: &'static str = "company";

    /// The key of the contact of a conversation.
    pub const OF_CONTACT: &'static str = "contact";
}

/// One thing that happens to a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Revision {
    /// Its author has changed the text. `of` is the direction of the author's messages; `id` identifies the edit.
    Edited { of: Direction, body: Option<String>, id: String },
    /// Its author has deleted it. `of` is the direction of the author's messages.
    Deleted { of: Direction },
    /// Somebody has reacted, or withdrawn the reaction.
    Reacted(Reaction),
    /// The company reacts, or withdraws its reaction, through Hotline: it is sent to the provider.
    #[serde(rename = "Reacts")]
    ReactionToSend { reaction: Reaction, send: ReactionSend },
    /// The provider has accepted the company's reaction that was sent with this id, or it has failed (`error`).
    ReactionSent { id: MessageId, error: Option<MessageError> },
}

/// A revision of a message. Applying it twice, or after a later one, changes nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RevisionRow {
    pub company_id: CompanyId,
    pub ticket_id: TicketId,
    pub contact_id: ContactId,
    pub message_id: MessageId,
    pub revision: Revision,
    /// When it happened, by the provider's clock.
    #[serde(with = "chrono::serde::ts_microseconds")]
    pub at: DateTime<Utc>,
    /// When Hotline received it.
    #[serde(with = "chrono::serde::ts_microseconds")]
    pub noted_at: DateTime<Utc>,
    pub source: Source,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integration_id: Option<TokenId>,
}

/// The parts of a message that revisions change.
#[derive(Clone, Debug, PartialEq)]
pub struct Revisable {
    pub direction: Direction,
    pub body: Option<String>,
    pub revisions: Revisions,
}

impl Revisable {
    /// Applies a revision and returns the previous values of the changed fields; `None` if no shown field changes. For
    /// an edit they contain its id instead of the previous text, because that text may be deleted later.
    pub fn apply(&mut self, row: &RevisionRow) -> Option<Value> {
        if self.revisions.deleted_at.is_some() {
            return None;
        }
        match &row.revision {
            Revision::Edited { of, .. } | Revision::Deleted { of } if *of != self.direction => None,
            Revision::Edited { body, id, .. } => self.edit(body.as_deref(), id, row),
            Revision::Deleted { .. } => {
                *self = Self {
                    body: None,
                    revisions: Revisions { deleted_at: Some(row.at), ..Revisions::default() },
                    direction: self.direction,
                };
                Some(json!({"deletedAt": null}))
            }
            Revision::Reacted(reaction) => self.react(reaction),
            Revision::ReactionToSend { reaction, send } => {
                self.revisions.sending = Some(send.clone());
                self.react(reaction)
            }
            Revision::ReactionSent { id, error } => self.end_sending(*id, error.as_ref()),
        }
    }

    /// Ends the sending of the company's reaction with this id. A failure is recorded unless a later reaction has
    /// replaced this one; it may also arrive after the provider accepted the reaction.
    fn end_sending(&mut self, id: MessageId, error: Option<&MessageError>) -> Option<Value> {
        let is_sending = self.revisions.sending.take_if(|sending| sending.id == id).is_some();
        let failure = error?;
        let previous = self.shown_reactions();
        let is_refused = |reaction: &&mut Reaction| {
            reaction.key == Reaction::OF_COMPANY && (is_sending || reaction.sent_as == Some(id))
        };
        let reaction =
            self.revisions.reactions.iter_mut().find(is_refused).filter(|reaction| reaction.error.is_none())?;
        reaction.error = Some(failure.clone());
        // A refused withdrawal leaves the earlier emoji.
        reaction.emoji = reaction.emoji.take().or_else(|| reaction.before.clone());
        Some(previous)
    }

    fn shown_reactions(&self) -> Value {
        let shown: Vec<Value> = self.revisions.reactions.iter().filter_map(Reaction::as_shown).collect();
        json!({"reactions": shown})
    }

    fn edit(&mut self, body: Option<&str>, id: &str, row: &RevisionRow) -> Option<Value> {
        let Revisions { edited_at, edits, .. } = &mut self.revisions;
        let is_known = edits.iter().any(|edit| edit.id == id);
        if is_known || edited_at.is_some_and(|edited_at| row.at < edited_at) || self.body.as_deref() == body {
            return None;
        }
        let previous = json!({"editedAt": edited_at.map(Timestamp), EDIT_ID: id});
        let earlier = std::mem::replace(&mut self.body, body.map(str::to_owned));
        edits.push(EarlierText { body: earlier, at: row.at, id: id.to_owned(), noted_at: row.noted_at });
        if edits.len() > EDITS_MAX {
            edits.remove(1);
        }
        *edited_at = Some(row.at);
        Some(previous)
    }

    fn react(&mut self, reaction: &Reaction) -> Option<Value> {
        let previous = self.shown_reactions();
        let reactions = &mut self.revisions.reactions;
        match reactions.iter_mut().find(|known| known.key == reaction.key) {
            Some(known) if known.at > reaction.at => None,
            Some(known) => {
                let is_changed = (&known.emoji, &known.error) != (&reaction.emoji, &reaction.error);
                *known = reaction.clone();
                is_changed.then_some(previous)
            }
            None => {
                if reactions.len() >= REACTIONS_MAX {
                    reactions.remove(0);
                }
                reactions.push(reaction.clone());
                reaction.emoji.is_some().then_some(previous)
            }
        }
    }
}

/// The field of an event's previous values that identifies the edit. It is never shown.
pub const EDIT_ID: &str = "editId";

impl MessageRow {
    /// What has happened to the message; empty also if only a newer release can read it.
    pub fn revisions(&self) -> Revisions {
        self.revisions.as_ref().and_then(|value| Revisions::deserialize(value).ok()).unwrap_or_default()
    }

    /// The parts that revisions change.
    pub fn revisable(&self) -> Revisable {
        Revisable { direction: self.direction, body: self.body.clone(), revisions: self.revisions() }
    }
}

#[derive(FromRow)]
struct StoredMessage {
    company_id: CompanyId,
    id: MessageId,
    direction: Direction,
    body: Option<String>,
    #[sqlx(try_from = "Document")]
    revisions: Option<Value>,
}

/// The revisable parts of messages, by company and id.
pub(crate) type Revisables = HashMap<(CompanyId, MessageId), Revisable>;

/// Reads the revisable parts of these messages from the table.
pub(crate) async fn read_revisables(
    db: &mut PgConnection,
    keys: impl Iterator<Item = (CompanyId, MessageId)>,
) -> sqlx::Result<Revisables> {
    let (companies, ids): (Vec<_>, Vec<_>) = keys.unzip();
    let select = sqlx::query(
        "select m.company_id, m.id, m.direction, m.body, m.revisions from messages m
         join (select distinct * from unnest($1::bigint[], $2::bigint[])) as x (company_id, id) using (company_id, id)",
    );
    let found = select.bind(companies).bind(ids).fetch_all(db).await?;
    let stored: Vec<StoredMessage> = document::read_all(&found);
    let revisable = |row: StoredMessage| {
        let revisions = row.revisions.and_then(|value| Revisions::deserialize(value).ok()).unwrap_or_default();
        ((row.company_id, row.id), Revisable { direction: row.direction, body: row.body, revisions })
    };
    Ok(stored.into_iter().map(revisable).collect())
}

/// Revises messages in the order of the rows, and returns those that changed.
pub(crate) async fn revise(db: &mut PgConnection, rows: &[&RevisionRow]) -> sqlx::Result<Vec<ChangedMessage>> {
    let mut revisables = read_revisables(db, rows.iter().map(|row| (row.company_id, row.message_id))).await?;
    let before = revisables.clone();
    for row in rows {
        if let Some(revisable) = revisables.get_mut(&(row.company_id, row.message_id)) {
            // Invisible changes are stored too, such as the time of a withdrawn reaction.
            let _ = revisable.apply(row);
        }
    }
    revisables.retain(|key, revisable| before.get(key) != Some(revisable));
    let mut changed: Vec<_> = revisables.into_iter().collect();
    changed.sort_unstable_by_key(|(key, _)| *key);
    let update = sqlx::query_as(AssertSqlSafe(zones::wrap_message_update(
        "update messages m set body = x.body, revisions = x.revisions,
             media = case when x.is_deleted then null else m.media end,
             template = case when x.is_deleted then null else m.template end,
             interactive = case when x.is_deleted then null else m.interactive end,
             -- `via`, the app in which it was written, is not content and stays.
             content = case when not x.is_deleted then m.content
                 when m.content ? 'via' then jsonb_build_object('via', m.content -> 'via') end,
             updated_at = greatest(now(), coalesce(m.updated_at, m.created_at) + interval '1 millisecond')
         from unnest($1::bigint[], $2::bigint[], $3::text[], $4::boolean[], $5::jsonb[])
             as x (company, id, body, is_deleted, revisions)
         where m.company_id = x.company and m.id = x.id",
    )));
    let update = update
        .bind(changed.iter().map(|((company, _), _)| *company).collect::<Vec<_>>())
        .bind(changed.iter().map(|((_, id), _)| *id).collect::<Vec<_>>())
        .bind(changed.iter().map(|(_, message)| message.body.as_deref()).collect::<Vec<_>>())
        .bind(changed.iter().map(|(_, message)| message.revisions.deleted_at.is_some()).collect::<Vec<_>>())
        .bind(changed.iter().map(|(_, message)| json!(message.revisions)).collect::<Vec<_>>());
    Ok(ChangedMessage::from_rows(update.fetch_all(db).await?, ChangeCause::Revision))
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_700_000_000 + second, 0).expect("a time")
    }

    fn row(second: i64, revision: Revision) -> RevisionRow {
        RevisionRow {
            company_id: CompanyId::new(1),
            ticket_id: TicketId::new(1),
            contact_id: ContactId::new(1),
            message_id: MessageId::new(1),
            revision,
            at: at(second),
            noted_at: at(second),
            source: Source::Contact,
            user_id: None,
            user_name: None,
            integration_id: None,
        }
    }

    fn edit(second: i64, id: &str) -> RevisionRow {
        let body = Some(format!("text {id}"));
        row(second, Revision::Edited { of: Direction::Inbound, body, id: id.to_owned() })
    }

    fn reaction(second: i64, key: &str, emoji: Option<&str>) -> RevisionRow {
        let reaction = Reaction {
            key: key.to_owned(),
            by: Reactor::Contact,
            emoji: emoji.map(str::to_owned),
            name: None,
            user_id: None,
            user_name: None,
            integration_id: None,
            error: None,
            sent_as: None,
            before: None,
            at: at(second),
        };
        row(second, Revision::Reacted(reaction))
    }

    fn message() -> Revisable {
        Revisable { direction: Direction::Inbound, body: Some("first".to_owned()), revisions: Revisions::default() }
    }

    #[test]
    fn an_edit_keeps_the_earlier_text_and_counts_once_in_any_order() {
        let mut message = message();
        assert_eq!(message.apply(&edit(1, "a")), Some(json!({"editedAt": null, "editId": "a"})));
        assert_eq!(message.apply(&edit(3, "c")), Some(json!({"editedAt": Timestamp(at(1)), "editId": "c"})));
        for late in [edit(1, "a"), edit(3, "c"), edit(2, "b")] {
            assert_eq!(message.apply(&late), None, "{late:?}");
        }
        assert_eq!(message.body.as_deref(), Some("text c"));
        let texts: Vec<_> = message.revisions.edits.iter().map(|edit| edit.body.as_deref()).collect();
        assert_eq!(texts, [Some("first"), Some("text a")]);
        let own = row(4, Revision::Edited { of: Direction::Outbound, body: None, id: "d".to_owned() });
        assert_eq!(message.apply(&own), None, "the company cannot edit a contact's message");
    }

    #[test]
    fn of_many_edits_the_first_text_and_the_newest_texts_are_kept() {
        let mut message = message();
        for second in 0..100 {
            assert!(message.apply(&edit(second, &second.to_string())).is_some());
        }
        let edits = &message.revisions.edits;
        assert_eq!((edits.len(), edits[0].body.as_deref()), (EDITS_MAX, Some("first")));
        assert_eq!(edits[EDITS_MAX - 1].body.as_deref(), Some("text 98"));
    }

    #[test]
    fn a_deleted_message_keeps_only_the_time_of_its_deletion() {
        let mut message = message();
        message.apply(&edit(1, "a"));
        message.apply(&reaction(1, "contact", Some("x")));
        let deletion = row(2, Revision::Deleted { of: Direction::Inbound });
        assert_eq!(message.apply(&deletion), Some(json!({"deletedAt": null})));
        let expected = Revisions { deleted_at: Some(at(2)), ..Revisions::default() };
        assert_eq!((&message.body, &message.revisions), (&None, &expected));
        for later in [edit(3, "b"), reaction(3, "contact", Some("y")), deletion] {
            assert_eq!(message.apply(&later), None, "{later:?}");
        }
    }

    #[test]
    fn each_person_has_one_reaction_and_a_late_report_does_not_replace_a_newer_one() {
        let mut message = message();
        assert_eq!(message.apply(&reaction(1, "contact", Some("a"))), Some(json!({"reactions": []})));
        assert!(message.apply(&reaction(2, "company", Some("b"))).is_some());
        assert!(message.apply(&reaction(4, "contact", None)).is_some());
        assert_eq!(message.apply(&reaction(3, "contact", Some("c"))), None);
        assert_eq!(message.apply(&reaction(4, "contact", None)), None);
        let shown: Vec<_> =
            message.revisions.reactions.iter().filter_map(|reaction| reaction.emoji.as_deref()).collect();
        assert_eq!(shown, ["b"]);
        for person in 0..2 * REACTIONS_MAX {
            message.apply(&reaction(5, &person.to_string(), Some("d")));
        }
        assert_eq!(message.revisions.reactions.len(), REACTIONS_MAX);
    }

    #[test]
    fn a_reaction_of_the_company_is_to_be_sent_until_the_provider_accepts_it_or_it_fails() {
        let send = |id: i64, emoji: &str| {
            let RevisionRow { revision: Revision::Reacted(reaction), .. } = reaction(id, "company", Some(emoji)) else {
                panic!("a reaction")
            };
            let reaction = Reaction { sent_as: Some(MessageId::new(id)), ..reaction };
            let send = ReactionSend {
                id: MessageId::new(id),
                emoji: Some(emoji.to_owned()),
                to: "wamid.1".to_owned(),
                at: at(id),
            };
            row(id, Revision::ReactionToSend { reaction, send })
        };
        let sent =
            |id: i64, error: Option<MessageError>| row(9, Revision::ReactionSent { id: MessageId::new(id), error });
        let failure = MessageError { code: "131051".to_owned(), message: "no".to_owned() };
        let mut message = message();
        assert!(message.apply(&send(1, "a")).is_some());
        assert!(message.apply(&send(2, "b")).is_some());
        assert_eq!(message.apply(&sent(1, Some(failure.clone()))), None, "a later reaction has replaced it");
        assert_eq!(message.apply(&sent(2, None)), None);
        assert_eq!(message.revisions.sending, None);
        assert!(message.apply(&sent(2, Some(failure.clone()))).is_some(), "a failure after the acceptance");
        assert!(message.apply(&send(3, "c")).is_some());
        assert!(message.apply(&sent(3, Some(failure.clone()))).is_some());
        assert_eq!(message.apply(&sent(3, Some(failure.clone()))), None);
        assert_eq!(message.revisions.reactions[0].error.as_ref(), Some(&failure));
        assert!(message.apply(&send(4, "c")).is_some(), "sent again");
        assert_eq!(message.revisions.reactions[0].error, None);
        let mut withdrawal = send(5, "c");
        if let Revision::ReactionToSend { reaction, send } = &mut withdrawal.revision {
            (reaction.before, reaction.emoji, send.emoji) = (reaction.emoji.take(), None, None);
        }
        assert!(message.apply(&withdrawal).is_some());
        assert!(message.apply(&sent(5, Some(failure))).is_some());
        assert_eq!(message.revisions.reactions[0].emoji.as_deref(), Some("c"), "the contact still sees it");
    }
}
