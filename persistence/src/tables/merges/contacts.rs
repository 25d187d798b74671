//! Merges a contact into another: everything that refers to the first is made to refer to the second.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgConnection};

use super::schedules::move_schedules;
use super::tickets::{SurvivingTicket, TicketMerge, absorb_ticket, cards_of, lock_tickets, move_rows};
use super::{MergeAuthor, MergeConflict, MergeOutcome, MergedNoun, ROWS_MAX, record_merge};
use crate::error::with_timeout;
use crate::id_blocks::IdBlocks;
use crate::table::{Expected, map_constraint};
use crate::tables::campaigns;
use crate::tables::cards::CardId;
use crate::tables::cards::events::{self as card_events, CardTracker};
use crate::tables::contacts::{self, ContactRow, ContactTracker, identities};
use crate::{CompanyId, ContactId, Error, Result, TicketId};

/// Two contacts to be merged.
#[derive(Clone, Debug)]
pub struct ContactMerge<'a> {
    pub company: CompanyId,
    /// The contact that stays.
    pub into: ContactId,
    /// The contact that is merged into it, and deleted.
    pub from: ContactId,
    /// The expected state of the contact that stays.
    pub expected: &'a Expected,
    pub author: MergeAuthor,
    pub at: DateTime<Utc>,
    /// Gives the events of tickets their ids.
    pub ids: &'a IdBlocks,
}

/// Merges a contact into another. The other's own values stay, and its empty fields are filled. Of two open tickets of
/// a channel, the newer is merged into the older. Returns the contact that stays.
///
/// # Errors
/// [`Error::NotFound`] when one of the contacts does not exist; [`Error::Changed`] when the one that stays is not in
/// the expected state.
pub async fn merge_contacts(db: &mut PgConnection, merge: &ContactMerge<'_>) -> Result<MergeOutcome<ContactRow>> {
    let ContactMerge { company, into, from, .. } = *merge;
    campaigns::exclude_starts(&mut *db, company).await?;
    identities::lock_contact_keys(&mut *db, company, &[into, from]).await?;
    let suggested = identities::merge_candidates(&mut *db, company, from).await?;
    let (into_row, from_row) = lock_pair(&mut *db, merge, &suggested).await?;
    if let Some(conflict) = find_conflict(&mut *db, company, &into_row, &from_row).await? {
        return Ok(Err(conflict));
    }
    let pairs = open_ticket_pairs(&mut *db, company, into, from).await?;
    let before = RecordsBefore::read(&mut *db, merge, suggested, &pairs).await?;
    // Moving messages takes long, so it comes before the locks on the zone map of tickets, for which the persister
    // waits.
    move_messages(&mut *db, company, from, into).await?;
    let mut locked_tickets = Vec::with_capacity(pairs.len());
    for (older, newer) in pairs {
        let author = merge.author.clone();
        let (at, ids) = (merge.at, merge.ids);
        let ticket_merge = TicketMerge { company, into: older, from: newer, contact: into, author, at, ids };
        let (older_row, newer_row) = lock_tickets(&mut *db, &ticket_merge).await?;
        move_rows(&mut *db, company, newer, older).await?;
        locked_tickets.push((ticket_merge, older_row, newer_row));
    }
    let mut surviving_tickets = Vec::with_capacity(locked_tickets.len());
    for (ticket_merge, older_row, newer_row) in locked_tickets {
        surviving_tickets.push(absorb_ticket(&mut *db, &ticket_merge, older_row, newer_row).await?);
    }
    move_conversations(&mut *db, company, from, into).await?;
    move_records(&mut *db, company, from, into).await?;
    move_recipients(&mut *db, company, from, into).await?;
    identities::move_identities(&mut *db, company, (from, into), into_row.adopted_number(&from_row), merge.at).await?;
    fill_and_delete(&mut *db, company, &into_row, &from_row).await?;
    record_merge(&mut *db, company, MergedNoun::Contact, (from.0, into.0), merge.at).await?;
    before.write_events(db, merge, surviving_tickets).await.map(Ok)
}

/// A locked contact, with the columns that decide whether and how it is merged.
#[derive(FromRow)]
struct LockedContact {
    id: ContactId,
    number: Option<String>,
    number_country: Option<String>,
    external_id: Option<String>,
    verified: bool,
    is_group: bool,
    updated_at: DateTime<Utc>,
}

impl LockedContact {
    /// The number that this contact takes over from `from`.
    fn adopted_number<'a>(&self, from: &'a Self) -> Option<&'a str> {
        from.number.as_deref().filter(|_| self.number.is_none())
    }

    /// The external id of this contact after the merge: a verified contact's comes first.
    fn merged_external_id(&self, from: &Self) -> Option<String> {
        let self_comes_first = self.verified || !from.verified;
        let (first, second) = if self_comes_first { (self, from) } else { (from, self) };
        first.external_id.clone().or_else(|| second.external_id.clone())
    }
}

/// Locks both contacts and returns them: the one that stays, then the one that is merged. A concurrent change of them,
/// or of a row that refers to them, commits before the merge or sees it. Also locks the contacts in `suggested`,
/// because the merge changes their suggestions.
async fn lock_pair(
    db: &mut PgConnection,
    merge: &ContactMerge<'_>,
    suggested: &[ContactId],
) -> Result<(LockedContact, LockedContact)> {
    // Weaker than the next lock: the suggested contacts are not deleted, so rows that refer to them may be written.
    let all = [&[merge.into, merge.from], suggested].concat();
    contacts::lock_rows(&mut *db, merge.company, &all).await?;
    let lock = sqlx::query_as(
        "select id, number, number_country, external_id, verified, is_group, updated_at from contacts
         where company_id = $1 and id = any ($2) order by id for update",
    );
    let mut rows: Vec<LockedContact> =
        with_timeout(lock.bind(merge.company).bind(vec![merge.into, merge.from]).fetch_all(db)).await?;
    let mut take = |id: ContactId| {
        let index = rows.iter().position(|row| row.id == id).ok_or(Error::NotFound("contact"))?;
        Ok::<_, Error>(rows.swap_remove(index))
    };
    let (into, from) = (take(merge.into)?, take(merge.from)?);
    if merge.expected.includes(into.updated_at) { Ok((into, from)) } else { Err(Error::Changed) }
}

async fn find_conflict(
    db: &mut PgConnection,
    company: CompanyId,
    into: &LockedContact,
    from: &LockedContact,
) -> Result<Option<MergeConflict>> {
    let has_verified_id = |row: &LockedContact| row.verified && row.external_id.is_some();
    if has_verified_id(into) && has_verified_id(from) {
        return Ok(Some(MergeConflict::TwoExternalIds));
    }
    // A group is never the same as another contact: what is written to one must not reach the other.
    if into.is_group || from.is_group {
        return Ok(Some(MergeConflict::Group));
    }
    let find = sqlx::query_as(
        "select exists (select from erasures where company_id = $1 and contact_id = any ($2) and done_at is null),
             exists (select from webchat_sessions where company_id = $1 and contact_id = any ($2)
                 and status = 'active' and not verified),
             exists (select from campaign_recipients where company_id = $1 and contact_id = any ($2)
                 and message_id is not null and status in ('pending', 'unknown')
                 group by campaign_id having count(*) > 1)",
    );
    let (is_being_erased, has_unverified_session, has_two_unknown_outcomes): (bool, bool, bool) =
        with_timeout(find.bind(company).bind(vec![into.id, from.id]).fetch_one(db)).await?;
    if is_being_erased {
        return Ok(Some(MergeConflict::Erasure));
    }
    // A recipient has one message, from which its outcome follows, so two with unknown outcomes cannot become one.
    if has_two_unknown_outcomes {
        return Ok(Some(MergeConflict::Campaign));
    }
    Ok((has_unverified_session && (into.verified || from.verified)).then_some(MergeConflict::UnverifiedSession))
}

/// The pairs of open tickets of both contacts on one channel: the older, which stays, and the newer, which is merged.
async fn open_ticket_pairs(
    db: &mut PgConnection,
    company: CompanyId,
    into: ContactId,
    from: ContactId,
) -> Result<Vec<(TicketId, TicketId)>> {
    let find = sqlx::query_as(
        "select case when i.is_older then i.id else f.id end, case when i.is_older then f.id else i.id end
         from tickets f cross join lateral (
             select t.id, (t.created_at, t.id) < (f.created_at, f.id) as is_older from tickets t
             where t.company_id = $1 and t.contact_id = $2 and t.channel_id = f.channel_id and t.status = 'open' offset 0) i
         where f.company_id = $1 and f.contact_id = $3 and f.status = 'open' order by f.id",
    );
    with_timeout(find.bind(company).bind(into).bind(from).fetch_all(db)).await
}

/// The records that the merge changes, as they are before it. Events show what has changed since.
struct RecordsBefore {
    /// The contact that stays.
    contact: ContactRow,
    /// The contact that is merged into `contact`.
    merged: ContactRow,
    /// The contacts for which a merge with `merged` was suggested, without the one that stays.
    suggested: Vec<ContactId>,
    tracker: ContactTracker,
    cards: CardTracker,
}

impl RecordsBefore {
    async fn read(
        db: &mut PgConnection,
        merge: &ContactMerge<'_>,
        mut suggested: Vec<ContactId>,
        pairs: &[(TicketId, TicketId)],
    ) -> Result<Self> {
        let ContactMerge { company, into, from, .. } = *merge;
        let contact = contacts::find(&mut *db, company, into).await?.ok_or(Error::NotFound("contact"))?;
        let merged = contacts::find(&mut *db, company, from).await?.ok_or(Error::NotFound("contact"))?;
        suggested.retain(|other| *other != into);
        let tracker = contacts::track_changes(&mut *db, company, &suggested).await?;
        let card_ids =
            sqlx::query_scalar("select card_id from card_contacts where company_id = $1 and contact_id = $2");
        let mut cards: Vec<CardId> = with_timeout(card_ids.bind(company).bind(from).fetch_all(&mut *db)).await?;
        for (_, newer) in pairs {
            cards.extend(cards_of(&mut *db, company, *newer).await?);
        }
        cards.sort_unstable();
        cards.dedup();
        let changed = [suggested.as_slice(), &[into, from]].concat();
        let cards = card_events::track(db, company, &cards, &changed).await?;
        Ok(Self { contact, merged, suggested, tracker, cards })
    }

    /// Writes the event of the contact that stays, then those of other records, and returns the contact. Also moves the
    /// scheduled messages, with their events.
    async fn write_events(
        self,
        db: &mut PgConnection,
        merge: &ContactMerge<'_>,
        surviving_tickets: Vec<SurvivingTicket>,
    ) -> Result<ContactRow> {
        let company = merge.company;
        let Self { contact, merged, suggested, tracker, cards } = self;
        let contact = contacts::record_merged(&mut *db, company, &contact, merged.id).await?;
        for ticket in surviving_tickets {
            ticket.write_event(&mut *db).await?;
        }
        move_schedules(&mut *db, company, &merged, &contact, merge.at).await?;
        tracker.record(&mut *db, &suggested).await?;
        cards.write_events(db).await?;
        Ok(contact)
    }
}

async fn move_messages(db: &mut PgConnection, company: CompanyId, from: ContactId, into: ContactId) -> Result<()> {
    loop {
        let update = sqlx::query(
            "update messages set contact_id = $3 where company_id = $1 and id = any (array(
                 select id from messages where company_id = $1 and contact_id = $2 order by id limit $4))",
        );
        let update = update.bind(company).bind(from).bind(into).bind(ROWS_MAX).execute(&mut *db);
        if with_timeout(update).await?.rows_affected() < ROWS_MAX.unsigned_abs() {
            return Ok(());
        }
    }
}

/// Moves tickets, sessions, and the last channel.
async fn move_conversations(db: &mut PgConnection, company: CompanyId, from: ContactId, into: ContactId) -> Result<()> {
    for statement in [
        "update tickets set contact_id = $3 where company_id = $1 and contact_id = $2",
        "update webchat_sessions set contact_id = $3 where company_id = $1 and contact_id = $2",
        "insert into contact_last_channels as l (company_id, contact_id, channel_id, at)
         select company_id, $3::bigint, channel_id, at from contact_last_channels where company_id = $1 and contact_id = $2
         on conflict (company_id, contact_id) do update set channel_id = excluded.channel_id, at = excluded.at
         where l.at < excluded.at",
    ] {
        with_timeout(sqlx::query(statement).bind(company).bind(from).bind(into).execute(&mut *db)).await?;
    }
    Ok(())
}

/// Moves tags, values of custom fields, memberships of lists, and links to cards.
async fn move_records(db: &mut PgConnection, company: CompanyId, from: ContactId, into: ContactId) -> Result<()> {
    for statement in [
        // Without tags and custom fields that are being deleted.
        "insert into contact_tags (company_id, contact_id, tag_id)
         select x.company_id, $3::bigint, x.tag_id from contact_tags x
         join tags t on t.company_id = x.company_id and t.id = x.tag_id
         where x.company_id = $1 and x.contact_id = $2 on conflict do nothing",
        "insert into contact_custom_field_values (company_id, contact_id, custom_field_id, value)
         select v.company_id, $3::bigint, v.custom_field_id, v.value from contact_custom_field_values v
         join custom_fields f on f.company_id = v.company_id and f.id = v.custom_field_id
         where v.company_id = $1 and v.contact_id = $2 on conflict do nothing",
        "insert into contact_list_contacts (company_id, contact_list_id, contact_id)
         select company_id, contact_list_id, $3::bigint from contact_list_contacts
         where company_id = $1 and contact_id = $2 on conflict do nothing",
        "insert into card_contacts (company_id, card_id, contact_id)
         select company_id, card_id, $3::bigint from card_contacts where company_id = $1 and contact_id = $2
         on conflict do nothing",
    ] {
        let insert = sqlx::query(statement).bind(company).bind(from).bind(into).execute(&mut *db);
        // A tag or field may be deleted meanwhile.
        with_timeout(insert).await.map_err(map_constraint(&[]))?;
    }
    for statement in [
        "delete from contact_list_contacts where company_id = $1 and contact_id = $2",
        "delete from card_contacts where company_id = $1 and contact_id = $2",
    ] {
        with_timeout(sqlx::query(statement).bind(company).bind(from).execute(&mut *db)).await?;
    }
    Ok(())
}

/// Moves the recipients of campaigns. If both contacts are recipients of a campaign, the one that was written to stays;
/// if both were, the one whose message has no outcome yet.
async fn move_recipients(db: &mut PgConnection, company: CompanyId, from: ContactId, into: ContactId) -> Result<()> {
    for statement in [
        "delete from campaign_recipients i using campaign_recipients f
         where f.company_id = $1 and f.contact_id = $2 and f.message_id is not null
             and i.company_id = f.company_id and i.campaign_id = f.campaign_id and i.contact_id = $3
             and (i.message_id is null or (f.status in ('pending', 'unknown') and i.status not in ('pending', 'unknown')))",
        "update campaign_recipients f set contact_id = $3 where f.company_id = $1 and f.contact_id = $2
             and not exists (select from campaign_recipients i where i.company_id = f.company_id
                 and i.campaign_id = f.campaign_id and i.contact_id = $3)",
    ] {
        with_timeout(sqlx::query(statement).bind(company).bind(from).bind(into).execute(&mut *db)).await?;
    }
    let delete = sqlx::query("delete from campaign_recipients where company_id = $1 and contact_id = $2");
    with_timeout(delete.bind(company).bind(from).execute(db)).await?;
    Ok(())
}

/// Fills the empty fields of the contact that stays, and deletes the other.
async fn fill_and_delete(
    db: &mut PgConnection,
    company: CompanyId,
    into: &LockedContact,
    from: &LockedContact,
) -> Result<()> {
    let fill = sqlx::query(
        "update contacts c set updated_at = greatest(now(), c.updated_at + interval '1 millisecond'),
             name = case when c.name in ($4, c.number, c.email)
                 and f.name not in ($4, coalesce(f.number, ''), coalesce(f.email, '')) then f.name else c.name end,
             email = coalesce(c.email, f.email), code = coalesce(c.code, f.code),
             cpf_cnpj = coalesce(c.cpf_cnpj, f.cpf_cnpj), origin = coalesce(c.origin, f.origin),
             profile_pic_url = coalesce(c.profile_pic_url, f.profile_pic_url),
             social_username = coalesce(c.social_username, f.social_username), lid = coalesce(c.lid, f.lid),
             source_url = coalesce(c.source_url, f.source_url), source_id = coalesce(c.source_id, f.source_id),
             headline = coalesce(c.headline, f.headline), media_type = coalesce(c.media_type, f.media_type),
             media_url = coalesce(c.media_url, f.media_url), utm_source = coalesce(c.utm_source, f.utm_source),
             utm_medium = coalesce(c.utm_medium, f.utm_medium), utm_campaign = coalesce(c.utm_campaign, f.utm_campaign),
             utm_id = coalesce(c.utm_id, f.utm_id), fbclid = coalesce(c.fbclid, f.fbclid),
             gclid = coalesce(c.gclid, f.gclid), ctwa_clid = coalesce(c.ctwa_clid, f.ctwa_clid),
             verified = c.verified or f.verified, marketing_opt_out = c.marketing_opt_out or f.marketing_opt_out
         from contacts f where c.company_id = $1 and c.id = $2 and f.company_id = $1 and f.id = $3",
    );
    let fill = fill.bind(company).bind(into.id).bind(from.id).bind(contacts::DEFAULT_NAME);
    with_timeout(fill.execute(&mut *db)).await?;
    let delete = sqlx::query("delete from contacts where company_id = $1 and id = $2");
    with_timeout(delete.bind(company).bind(from.id).execute(&mut *db)).await?;
    // The unique values of the deleted contact are free now.
    let adopted = into.adopted_number(from);
    let set_unique = sqlx::query(
        "update contacts set external_id = $3, number = coalesce($4, number),
             number_country = case when $4 is null then number_country else $5 end
         where company_id = $1 and id = $2",
    );
    let set_unique = set_unique.bind(company).bind(into.id).bind(into.merged_external_id(from)).bind(adopted);
    let set_unique = set_unique.bind(from.number_country.as_deref()).execute(db);
    with_timeout(set_unique).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contact(number: Option<&str>, external_id: Option<&str>, verified: bool) -> LockedContact {
        LockedContact {
            id: ContactId::new(1),
            number: number.map(str::to_owned),
            number_country: None,
            external_id: external_id.map(str::to_owned),
            verified,
            is_group: false,
            updated_at: DateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_number_is_adopted_only_where_there_is_none() {
        let (with, without) = (contact(Some("1"), None, false), contact(None, None, false));
        assert_eq!(without.adopted_number(&with), Some("1"));
        assert_eq!(
            (with.adopted_number(&contact(Some("2"), None, false)), with.adopted_number(&without)),
            (None, None)
        );
    }

    #[test]
    fn a_verified_id_comes_before_one_that_is_not() {
        let merged_id = |into: (Option<&str>, bool), from: (Option<&str>, bool)| {
            contact(None, into.0, into.1).merged_external_id(&contact(None, from.0, from.1))
        };
        assert_eq!(merged_id((Some("a"), false), (Some("b"), false)).as_deref(), Some("a"));
        assert_eq!(merged_id((Some("a"), false), (Some("b"), true)).as_deref(), Some("b"));
        assert_eq!(merged_id((None, true), (Some("b"), false)).as_deref(), Some("b"));
        assert_eq!(merged_id((None, false), (None, true)), None);
    }
}
