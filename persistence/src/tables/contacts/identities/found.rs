//! Finds the contacts that have or had a number or a provider's id.

use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use sqlx::{FromRow, PgExecutor};

use super::{ContactRef, IdentityKind, Keys};
use crate::error::with_timeout;
use crate::{CompanyId, ContactId, Readers, Result, phone_numbers};

/// Selects the contacts that keys find, nearest first: by the address, by the number, by another spelling of it, or by
/// a former number.
const FIND: &str = "select c.id, c.name, c.number, c.verified, f.nearness, f.until, f.is_merged, f.is_suggested
    from (
        select a.contact_id as id, 0 as nearness, null::timestamptz as until, false as is_merged, exists (
                select from contact_merge_suggestions s join contacts o on o.company_id = s.company_id and o.id = s.other_id
                where s.company_id = $1 and s.contact_id = a.contact_id and o.number = any ($5)) as is_suggested
            from contact_addresses a where a.company_id = $1 and a.channel_id = $2 and a.address = $3
        union all select id, case when number = $4 then 1 else 2 end, null, false, false
            from contacts where company_id = $1 and number = any ($5)
        union all select contact_id, 3, until, merged, false
            from contact_numbers where company_id = $1 and number = any ($5) and until is not null) f
    join contacts c on c.company_id = $1 and c.id = f.id order by f.nearness, f.until desc, c.id";

#[derive(FromRow)]
struct Match {
    #[sqlx(flatten)]
    contact: ContactRef,
    /// 0 is the nearest.
    nearness: i32,
    until: Option<DateTime<Utc>>,
    is_merged: bool,
    is_suggested: bool,
}

/// The contacts that keys find.
#[derive(Default)]
pub(super) struct Matches {
    pub by_address: Option<ContactRef>,
    /// By the current number, in any spelling.
    pub by_number: Option<ContactRef>,
    /// By a former number: the contact that had it last.
    by_former_number: Option<ContactRef>,
    /// Until when `by_former_number` had the number.
    former_until: Option<DateTime<Utc>>,
    /// Whether a merge made the number a former one of `by_former_number`.
    is_merged: bool,
    /// Whether merging the contact with the address and the one with the number is suggested already.
    is_suggested: bool,
}

pub(super) async fn find(db: impl PgExecutor<'_>, company: CompanyId, keys: &Keys<'_>) -> Result<Matches> {
    let find = sqlx::query_as(FIND)
        .bind(company)
        .bind(keys.address.map(|address| address.channel))
        .bind(keys.address.map(|address| address.value))
        .bind(keys.number)
        .bind(keys.number.map(phone_numbers::spellings).unwrap_or_default());
    Ok(Matches::of(with_timeout(find.fetch_all(db)).await?))
}

impl Matches {
    fn of(found: Vec<Match>) -> Self {
        let mut matches = Self::default();
        for Match { contact, nearness, until, is_merged, is_suggested } in found {
            matches.is_suggested |= is_suggested;
            let place = match nearness {
                0 => &mut matches.by_address,
                1 | 2 => &mut matches.by_number,
                _ => {
                    if matches.by_former_number.is_none() {
                        (matches.former_until, matches.is_merged) = (until, is_merged);
                    }
                    &mut matches.by_former_number
                }
            };
            if place.is_none() {
                *place = Some(contact);
            }
        }
        matches
    }

    /// The contact with the nearest match.
    pub(super) fn nearest(&self) -> Option<&ContactRef> {
        self.by_address.as_ref().or(self.by_number.as_ref()).or(self.by_former_number.as_ref())
    }

    /// The contact that had the number at this time, and no longer has it. The number may be another contact's by now.
    pub(super) fn former_owner(&self, at: DateTime<Utc>) -> Option<&ContactRef> {
        self.by_former_number.as_ref().filter(|_| self.former_until.is_some_and(|until| until >= at))
    }

    /// The contacts that had the keys at this time, each with the key that finds it.
    pub(super) fn owners<'a>(
        &self,
        keys: &Keys<'a>,
        at: DateTime<Utc>,
    ) -> impl Iterator<Item = (ContactId, (IdentityKind, &'a str))> + use<'a> {
        let number = keys.number.map(|number| (IdentityKind::Number, number));
        let address = keys.address.map(|address| (address.kind, address.value));
        let owners =
            [(self.by_number.as_ref(), number), (self.former_owner(at), number), (self.by_address.as_ref(), address)];
        owners.map(|(owner, key)| Some((owner?.id, key?))).into_iter().flatten()
    }

    /// The contact with the number, if another contact has the address.
    pub(super) fn conflict(&self) -> Option<&ContactRef> {
        let by_address = self.by_address.as_ref()?;
        self.by_number.as_ref().filter(|by_number| by_number.id != by_address.id)
    }

    /// Whether the nearest contact neither has nor had the number.
    pub(super) fn lacks_number(&self) -> bool {
        let Some(contact) = self.nearest() else { return true };
        [&self.by_number, &self.by_former_number].into_iter().flatten().all(|found| found.id != contact.id)
    }

    /// Whether a merge made the number a former one of the nearest contact, and no contact has it now.
    pub(super) fn is_merged_number(&self) -> bool {
        let is_nearest = |former: &ContactRef| self.nearest().is_some_and(|contact| contact.id == former.id);
        self.is_merged && self.by_number.is_none() && self.by_former_number.as_ref().is_some_and(is_nearest)
    }

    /// The nearest contact, if [`super::identify`] has nothing to change: the contact has all of the keys, or merging
    /// it with the number's contact is suggested already.
    pub(super) fn settled_contact(&self, keys: &Keys<'_>) -> Option<ContactRef> {
        let is_settled = match (keys.number.is_some(), keys.address.is_some()) {
            (false, false) => false,
            (true, false) => !self.is_merged_number(),
            (false, true) => self.by_address.is_some(),
            (true, true) if self.conflict().is_some() => self.is_suggested,
            (true, true) => self.by_address.is_some() && !self.lacks_number() && !self.is_merged_number(),
        };
        self.nearest().filter(|_| is_settled).cloned()
    }
}

pub(super) async fn by_id(db: impl PgExecutor<'_>, company: CompanyId, id: ContactId) -> Result<Option<ContactRef>> {
    let find = sqlx::query_as("select id, name, number, verified from contacts where company_id = $1 and id = $2");
    with_timeout(find.bind(company).bind(id).fetch_optional(db)).await
}

/// The contact that has a number, in any spelling, or else the one that had it last; `None` if there is none.
pub async fn by_number(readers: &Readers, company: CompanyId, number: &str) -> Result<Option<ContactRef>> {
    let (number, spellings) = (number.to_owned(), phone_numbers::spellings(number));
    let found: Option<Match> = readers
        .read(company, move |db| {
            sqlx::query_as(FIND)
                .bind(company)
                .bind(None::<crate::ChannelId>)
                .bind(None::<String>)
                .bind(number.clone())
                .bind(spellings.clone())
                .fetch_optional(db)
                .boxed()
        })
        .await?;
    Ok(found.map(|found| found.contact))
}
