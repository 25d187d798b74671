//! The channel of the last conversation of a contact.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, PgExecutor};

use super::ContactFilter;
use crate::error::with_timeout;
use crate::select::{PageRequest, Select};
use crate::table::Span;
use crate::{ChannelId, CompanyId, ContactId, Result};

/// Records on which channel a conversation with a contact started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContactChannel {
    pub company_id: CompanyId,
    pub contact_id: ContactId,
    pub channel_id: ChannelId,
    #[serde(with = "chrono::serde::ts_microseconds")]
    pub at: DateTime<Utc>,
}

/// Stores the last channel of contacts, skipping deleted ones. The contact's row is not touched: a conversation does
/// not change the contact.
pub(crate) async fn set_last_channel(
    db: &mut PgConnection,
    changes: &[&ContactChannel],
) -> std::result::Result<(), sqlx::Error> {
    sqlx::query(
        "insert into contact_last_channels as l (company_id, contact_id, channel_id, at)
         select x.company, x.contact, x.channel, x.at
         from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::timestamptz[]) as x (company, contact, channel, at)
         where exists (select from contacts c where c.company_id = x.company and c.id = x.contact)
         order by x.company, x.contact
         on conflict (company_id, contact_id) do update set channel_id = excluded.channel_id, at = excluded.at
         where (l.channel_id, l.at) is distinct from (excluded.channel_id, excluded.at)",
    )
    .bind(changes.iter().map(|change| change.company_id).collect::<Vec<_>>())
    .bind(changes.iter().map(|change| change.contact_id).collect::<Vec<_>>())
    .bind(changes.iter().map(|change| change.channel_id).collect::<Vec<_>>())
    .bind(changes.iter().map(|change| change.at).collect::<Vec<_>>())
    .execute(db)
    .await?;
    Ok(())
}

/// A channel with at most this many contacts has few: all of them are found before other conditions apply.
const FEW_CONTACTS_MAX: i64 = 10_000;

/// How a list of contacts `c` is filtered by their last channel.
///
/// With a search or a time span, PostgreSQL would join all contacts of the channel with all contacts that match the
/// other conditions, because it expects few of either. So if the channel has few contacts, they are found first;
/// otherwise each row of the list is checked individually: `offset 0` prevents a join, so that a list with time spans
/// is read in its order.
#[derive(Clone, Copy, Debug)]
pub(super) enum LastChannelFilter {
    /// PostgreSQL chooses the join; `None`: all contacts.
    Joined(Option<ChannelId>),
    /// The channel's few contacts are found first.
    Few(ChannelId),
    /// Each contact that a search finds is checked.
    EachFound(ChannelId),
    /// Each contact is checked in list order.
    EachInOrder(ChannelId),
}

impl LastChannelFilter {
    pub(super) async fn of(db: impl PgExecutor<'_>, company: CompanyId, filter: &ContactFilter) -> Result<Self> {
        let has_span = filter.created != Span::default() || filter.updated != Span::default();
        let Some(channel) = filter.channel_id.filter(|_| has_span || filter.search.is_some()) else {
            return Ok(Self::Joined(filter.channel_id));
        };
        let count = sqlx::query_scalar::<_, i64>(
            "select count(*) from (select from contact_last_channels where company_id = $1 and channel_id = $2 limit $3) l",
        );
        let count = with_timeout(count.bind(company).bind(channel).bind(FEW_CONTACTS_MAX + 1).fetch_one(db)).await?;
        Ok(match filter.search {
            _ if count <= FEW_CONTACTS_MAX => Self::Few(channel),
            Some(_) => Self::EachFound(channel),
            None => Self::EachInOrder(channel),
        })
    }

    /// Whether the channel has few contacts.
    pub(super) fn has_few_contacts(self) -> bool {
        matches!(self, Self::Few(_))
    }

    /// The channel, if it has many contacts.
    pub(super) fn channel_with_many_contacts(self) -> Option<ChannelId> {
        match self {
            Self::EachFound(channel) | Self::EachInOrder(channel) => Some(channel),
            _ => None,
        }
    }

    /// The start of the list's statement.
    pub(super) fn statement_start(self) -> &'static str {
        match self {
            Self::EachInOrder(_) => "with page as (select c.id from (select c.id, c.company_id from contacts c",
            _ => "with page as (select c.id from contacts c",
        }
    }

    /// Adds the condition to a list that begins with [`Self::statement_start`] and has all other conditions.
    pub(super) fn apply(self, list: Select, page: PageRequest) -> Select {
        const OF_CONTACT: &str = "exists (select from contact_last_channels l
            where l.company_id = c.company_id and l.contact_id = c.id and l.channel_id =";
        const OF_CHANNEL: &str = "c.id = any (array(select l.contact_id from contact_last_channels l
            where l.company_id = $1 and l.channel_id =";
        match self {
            Self::Joined(channel) => list.only_by(OF_CONTACT, channel, ")"),
            Self::Few(channel) => list.only_by(OF_CHANNEL, Some(channel), "))"),
            Self::EachFound(channel) => list.only_by(OF_CONTACT, Some(channel), " offset 0)"),
            Self::EachInOrder(channel) => {
                list.order_within_group("c.id", page, ") c").only_by(OF_CONTACT, Some(channel), " offset 0)")
            }
        }
    }
}
