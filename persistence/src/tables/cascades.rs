//! What the deletion of a record changes on others: their change, with their event and their `updatedAt`.
//!
//! A record may be on a million others. They are changed in steps, each of its own transaction with its events, and the
//! record is deleted with the last ones. So a step holds up no one, takes little memory, and a crash between two leaves a
//! record that can be deleted again.

use sqlx::{AssertSqlSafe, PgConnection};

use super::businesses::BusinessId;
use super::card_origins::CardOriginId;
use super::card_statuses::CardStatusId;
use super::cards;
use super::contacts;
use super::custom_fields::CustomFieldId;
use super::product_categories::ProductCategoryId;
use super::tags::TagId;
use crate::error::with_timeout;
use crate::table::CHANGED_AT;
use crate::{CardId, CompanyId, ContactId, ProductId, QueueId, Result, TicketId, UserId};

/// Maximum records of a kind that one step changes: a card may show a hundred contacts, and is read twice.
pub const STEP_RECORDS: i64 = 50;

/// A record that is being deleted, and that others show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Cascade {
    Tag(TagId),
    CustomField(CustomFieldId),
    CardStatus(CardStatusId),
    Business(BusinessId),
    CardOrigin(CardOriginId),
    Product(ProductId),
    ProductCategory(ProductCategoryId),
    User(UserId),
    Queue(QueueId),
    /// Of a contact: the cards that show it, and those made from its tickets.
    Contact(ContactId),
}

/// How the records of a kind show the one that is deleted.
struct Shown {
    /// What the records are.
    of: Of,
    /// Selects the ids of those that show it: company `$1`, its id `$2`, at most `$3`.
    find: &'static str,
    /// Takes it from some of them: company `$1`, its id `$2`, their ids `$3`.
    take: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Contacts,
    Cards,
    /// Records without events, of which only `updated_at` moves.
    Others(&'static str),
}

impl Cascade {
    fn id(self) -> i64 {
        match self {
            Self::Tag(id) => id.0,
            Self::CustomField(id) => id.0,
            Self::CardStatus(id) => id.0,
            Self::Business(id) => id.0,
            Self::CardOrigin(id) => id.0,
            Self::Product(id) => id.0,
            Self::ProductCategory(id) => id.0,
            Self::User(id) => id.0,
            Self::Queue(id) => id.0,
            Self::Contact(id) => id.0,
        }
    }

    /// The table of the record.
    fn table(self) -> &'static str {
        match self {
            Self::Tag(_) => "tags",
            Self::CustomField(_) => "custom_fields",
            Self::CardStatus(_) => "card_statuses",
            Self::Business(_) => "businesses",
            Self::CardOrigin(_) => "card_origins",
            Self::Product(_) => "products",
            Self::ProductCategory(_) => "product_categories",
            Self::User(_) => "users",
            Self::Queue(_) => "queues",
            Self::Contact(_) => "contacts",
        }
    }

    /// Who shows it: each table with a foreign key to what is deleted.
    fn shown(self) -> &'static [Shown] {
        match self {
            Self::Tag(_) => &[Shown {
                of: Of::Contacts,
                find: "select contact_id from contact_tags where company_id = $1 and tag_id = $2 limit $3",
                take: "delete from contact_tags where company_id = $1 and tag_id = $2 and contact_id = any ($3)",
            }],
            Self::CustomField(_) => &[
                Shown {
                    of: Of::Contacts,
                    find: "select contact_id from contact_custom_field_values
                        where company_id = $1 and custom_field_id = $2 limit $3",
                    take: "delete from contact_custom_field_values
                        where company_id = $1 and custom_field_id = $2 and contact_id = any ($3)",
                },
                Shown {
                    of: Of::Cards,
                    find: "select card_id from card_custom_field_values
                        where company_id = $1 and custom_field_id = $2 limit $3",
                    take: "delete from card_custom_field_values
                        where company_id = $1 and custom_field_id = $2 and card_id = any ($3)",
                },
            ],
            Self::CardStatus(_) => &[Shown {
                of: Of::Cards,
                find: "select id from cards where company_id = $1 and status_id = $2 order by id limit $3",
                take: "update cards set status_id = null where company_id = $1 and status_id = $2 and id = any ($3)",
            }],
            Self::Business(_) => &[Shown {
                of: Of::Cards,
                find: "select id from cards where company_id = $1 and business_id = $2 order by id limit $3",
                take: "update cards set business_id = null where company_id = $1 and business_id = $2 and id = any ($3)",
            }],
            Self::CardOrigin(_) => &[Shown {
                of: Of::Cards,
                find: "select id from cards where company_id = $1 and origin_id = $2 order by id limit $3",
                take: "update cards set origin_id = null where company_id = $1 and origin_id = $2 and id = any ($3)",
            }],
            Self::Product(_) => &[Shown {
                of: Of::Cards,
                find: "select distinct card_id from card_products where company_id = $1 and product_id = $2 limit $3",
                take: "update card_products set product_id = null
                    where company_id = $1 and product_id = $2 and card_id = any ($3)",
            }],
            Self::ProductCategory(_) => &[Shown {
                of: Of::Others("products"),
                find: "select id from products where company_id = $1 and category_id = $2 order by id limit $3",
                take: "update products set category_id = null
                    where company_id = $1 and category_id = $2 and id = any ($3)",
            }],
            Self::User(_) => &[
                Shown {
                    of: Of::Cards,
                    find: "select id from cards where company_id = $1 and assigned_user_id = $2 order by id limit $3",
                    take: "update cards set assigned_user_id = null
                        where company_id = $1 and assigned_user_id = $2 and id = any ($3)",
                },
                Shown {
                    of: Of::Others("boards"),
                    find: "select id from boards where company_id = $1 and created_by_user_id = $2 limit $3",
                    take: "update boards set created_by_user_id = null
                        where company_id = $1 and created_by_user_id = $2 and id = any ($3)",
                },
            ],
            Self::Queue(_) => &[
                Shown {
                    of: Of::Others("users"),
                    find: "select user_id from queue_users where company_id = $1 and queue_id = $2 limit $3",
                    take: "delete from queue_users where company_id = $1 and queue_id = $2 and user_id = any ($3)",
                },
                Shown {
                    of: Of::Others("wrapup_types"),
                    find: "select wrapup_type_id from wrapup_type_queues where company_id = $1 and queue_id = $2 limit $3",
                    take: "delete from wrapup_type_queues
                        where company_id = $1 and queue_id = $2 and wrapup_type_id = any ($3)",
                },
                Shown {
                    of: Of::Others("boards"),
                    find: "select board_id from board_queues where company_id = $1 and queue_id = $2 limit $3",
                    take: "delete from board_queues where company_id = $1 and queue_id = $2 and board_id = any ($3)",
                },
            ],
            Self::Contact(_) => &[
                Shown {
                    of: Of::Cards,
                    find: "select card_id from card_contacts where company_id = $1 and contact_id = $2 limit $3",
                    take: "delete from card_contacts where company_id = $1 and contact_id = $2 and card_id = any ($3)",
                },
                Shown {
                    of: Of::Cards,
                    find:
                        "select k.id from tickets t join cards k on k.company_id = t.company_id and k.ticket_id = t.id
                        where t.company_id = $1 and t.contact_id = $2 limit $3",
                    take: "update cards k set ticket_id = null from tickets t
                        where t.company_id = $1 and t.contact_id = $2 and k.company_id = t.company_id
                            and k.ticket_id = t.id and k.id = any ($3)",
                },
                Shown {
                    of: Of::Others("contact_lists"),
                    find: "select contact_list_id from contact_list_contacts
                        where company_id = $1 and contact_id = $2 limit $3",
                    take: "delete from contact_list_contacts
                        where company_id = $1 and contact_id = $2 and contact_list_id = any ($3)",
                },
            ],
        }
    }
}

/// Locks a record that is being deleted, so that no other begins to show it; false if it is not there.
///
/// # Errors
/// When the database cannot answer.
pub async fn hold(db: &mut PgConnection, company: CompanyId, cascade: Cascade) -> Result<bool> {
    let held = format!("select from {} where company_id = $1 and id = $2 for update", cascade.table());
    let held = sqlx::query(AssertSqlSafe(held)).bind(company).bind(cascade.id());
    Ok(with_timeout(held.fetch_optional(db)).await?.is_some())
}

/// Whether others show a record.
///
/// # Errors
/// When the database cannot answer.
pub async fn is_shown(db: &mut PgConnection, company: CompanyId, cascade: Cascade) -> Result<bool> {
    for Shown { find, .. } in cascade.shown() {
        let find = sqlx::query_scalar(*find).bind(company).bind(cascade.id()).bind(1_i64);
        let found: Option<i64> = with_timeout(find.fetch_optional(&mut *db)).await?;
        if found.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Takes a record from up to [`STEP_RECORDS`] others of each kind, with their events. Returns whether that may not have been
/// all.
///
/// # Errors
/// When the database cannot answer.
pub async fn step(db: &mut PgConnection, company: CompanyId, cascade: Cascade) -> Result<bool> {
    let mut has_more = false;
    for Shown { of, find, take } in cascade.shown() {
        let find = sqlx::query_scalar(*find).bind(company).bind(cascade.id()).bind(STEP_RECORDS);
        let mut ids: Vec<i64> = with_timeout(find.fetch_all(&mut *db)).await?;
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() {
            continue;
        }
        has_more |= i64::try_from(ids.len()).unwrap_or(i64::MAX) >= STEP_RECORDS;
        let take = sqlx::query(*take).bind(company).bind(cascade.id()).bind(&ids);
        match of {
            Of::Contacts => {
                let contacts: Vec<ContactId> = ids.iter().copied().map(ContactId::new).collect();
                let held = sqlx::query(
                    "select from contacts where company_id = $1 and id = any ($2) order by id for no key update",
                );
                with_timeout(held.bind(company).bind(&contacts).execute(&mut *db)).await?;
                let watched = contacts::watch(&mut *db, company, &contacts).await?;
                with_timeout(take.execute(&mut *db)).await?;
                watched.tell(&mut *db, &contacts).await?;
            }
            Of::Cards => {
                let cards: Vec<CardId> = ids.iter().copied().map(CardId::new).collect();
                let watched = cards::told::watch(&mut *db, company, &cards).await?;
                with_timeout(take.execute(&mut *db)).await?;
                watched.tell(&mut *db).await?;
            }
            Of::Others(table) => {
                with_timeout(take.execute(&mut *db)).await?;
                let date =
                    format!("update {table} set updated_at = {CHANGED_AT} where company_id = $1 and id = any ($2)");
                with_timeout(sqlx::query(AssertSqlSafe(date)).bind(company).bind(&ids).execute(&mut *db)).await?;
            }
        }
    }
    Ok(has_more)
}

/// Takes deleted tickets from the cards that were made from them, with their events.
///
/// # Errors
/// When the database cannot answer.
pub(crate) async fn forget_tickets(db: &mut PgConnection, company: CompanyId, tickets: &[TicketId]) -> Result<()> {
    loop {
        let find = sqlx::query_scalar(
            "select id from cards where company_id = $1 and ticket_id = any ($2) order by id limit $3",
        );
        let find = find.bind(company).bind(tickets).bind(STEP_RECORDS).fetch_all(&mut *db);
        let ids: Vec<CardId> = with_timeout(find).await?;
        if ids.is_empty() {
            return Ok(());
        }
        let watched = cards::told::watch(&mut *db, company, &ids).await?;
        let free = sqlx::query("update cards set ticket_id = null where company_id = $1 and id = any ($2)");
        with_timeout(free.bind(company).bind(&ids).execute(&mut *db)).await?;
        watched.tell(&mut *db).await?;
    }
}
