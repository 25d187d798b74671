//! What the deletion of a record changes in the records that refer to it: their content, events and `updatedAt`
//! ([decision 50](../../../../docs/decisions/0050-shared-records-are-deleted-in-steps.md)). A record shows another one
//! if its representation in the API contains it.
//!
//! A million records may refer to one. That one is deleted first, and a row of `cascades` records that references to it
//! remain. Steps then remove these references, each in its own transaction with its events. Remaining references are
//! never visible, because every read joins the table of the deleted record. A change that replaces references does not
//! touch those to a deleted record, which the steps remove, or it removes them first ([`settle`]).

mod steps;

use super::businesses::BusinessId;
use super::card_origins::CardOriginId;
use super::card_statuses::CardStatusId;
use super::custom_fields::CustomFieldId;
use super::product_categories::ProductCategoryId;
use super::tags::TagId;
use crate::table::CHANGED_AT;
use crate::{ContactId, ProductId, QueueId, UserId};

pub use steps::{
    DeletedRecord, STEP_RECORDS, companies, count_failure, find, finish, lock_record, record_deletion,
    remove_references_at_once, settle, step, unfinished,
};
pub(crate) use steps::{deleted_contacts, unlink_tickets};

macro_rules! cascades {
    ($($name:ident($id:ty) is $noun:literal in $table:literal),+ $(,)?) => {
        /// A deleted record that other records show.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Cascade {
            $($name($id)),+
        }

        impl Cascade {
            /// One of each kind, with the id 0.
            pub const EVERY: &'static [Self] = &[$(Self::$name(<$id>::new(0))),+];

            fn id(self) -> i64 {
                match self { $(Self::$name(id) => id.0),+ }
            }

            /// The word for its kind in the table `cascades`.
            fn noun(self) -> &'static str {
                match self { $(Self::$name(_) => $noun),+ }
            }

            /// The table of the record.
            pub fn table(self) -> &'static str {
                match self { $(Self::$name(_) => $table),+ }
            }

            fn of(noun: &str, id: i64) -> Option<Self> {
                match noun { $($noun => Some(Self::$name(<$id>::new(id))),)+ _ => None }
            }
        }
    };
}

cascades! {
    Tag(TagId) is "tag" in "tags",
    CustomField(CustomFieldId) is "custom_field" in "custom_fields",
    CardStatus(CardStatusId) is "card_status" in "card_statuses",
    Business(BusinessId) is "business" in "businesses",
    CardOrigin(CardOriginId) is "card_origin" in "card_origins",
    Product(ProductId) is "product" in "products",
    ProductCategory(ProductCategoryId) is "product_category" in "product_categories",
    User(UserId) is "user" in "users",
    Queue(QueueId) is "queue" in "queues",
    Contact(ContactId) is "contact" in "contacts",
}

/// A reference to a record that may be deleted.
#[derive(Clone, Copy, Debug)]
pub struct Reference {
    /// The table with the reference.
    pub table: &'static str,
    /// Its column with the record's id.
    pub column: &'static str,
    /// The table's column with the id of the owner: the record that shows the deleted one.
    owner_column: &'static str,
    owner: RecordKind,
    /// Whether the removal deletes the row; otherwise it clears the column.
    is_link: bool,
    /// Further assignments when the column is cleared: `, column = value`.
    extra_assignments: &'static str,
    /// The data of the reference that the event needs: an SQL expression over the row.
    event_data: &'static str,
    /// When the reference is removed.
    pub when: When,
}

/// The kind of the records that show the deleted one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordKind {
    Contacts,
    Cards,
    /// Records of this table, which have no events: only their `updated_at` changes.
    Others(&'static str),
}

impl RecordKind {
    fn table(self) -> &'static str {
        match self {
            Self::Contacts => "contacts",
            Self::Cards => "cards",
            Self::Others(table) => table,
        }
    }
}

/// When references are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// In the transaction that deletes the record: a company has few, and a foreign key removes those that are missed.
    AtOnce,
    /// In steps after the deletion: there may be a million. A trigger refuses new ones.
    InSteps,
}

impl Reference {
    /// A row that links the record to its owner.
    const fn link(
        table: &'static str,
        column: &'static str,
        owner_column: &'static str,
        owner: RecordKind,
        when: When,
    ) -> Self {
        Self {
            table,
            column,
            owner_column,
            owner,
            is_link: true,
            extra_assignments: "",
            event_data: "null::text",
            when,
        }
    }

    /// A column of the owner.
    const fn column(table: &'static str, column: &'static str, owner: RecordKind, when: When) -> Self {
        Self { is_link: false, ..Self::link(table, column, "id", owner, when) }
    }

    const fn with_extra_assignments(self, extra_assignments: &'static str) -> Self {
        Self { extra_assignments, ..self }
    }

    const fn with_event_data(self, event_data: &'static str) -> Self {
        Self { event_data, ..self }
    }

    /// Selects the ids of the owners: company `$1`, the deleted record's id `$2`, at most `$3`.
    pub fn find_sql(&self) -> String {
        let Self { table, column, owner_column, .. } = self;
        // The index on such a column yields the ids in order.
        let order = if *owner_column == "id" { " order by id" } else { "" };
        format!("select {owner_column} from {table} where company_id = $1 and {column} = $2{order} limit $3")
    }

    /// Locks some owners, in the order of their ids: company `$1`, their ids `$2`.
    pub fn lock_owners_sql(&self) -> String {
        let table = self.owner.table();
        format!("select from {table} where company_id = $1 and id = any ($2) order by id for no key update")
    }

    /// Removes the reference from some owners, and returns their ids with `event_data`: company `$1`, the
    /// deleted record's id `$2`, the owners' ids `$3`.
    pub fn remove_sql(&self) -> String {
        let Self { table, column, owner_column, extra_assignments, event_data, .. } = self;
        let condition = format!(
            "where company_id = $1 and {column} = $2 and {owner_column} = any ($3) \
             returning {owner_column}, {event_data}"
        );
        if self.is_link {
            format!("delete from {table} {condition}")
        } else {
            format!("update {table} set {column} = null{extra_assignments} {condition}")
        }
    }

    /// Sets the `updated_at` of owners without events: company `$1`, their ids `$2`. `None` for owners with events.
    pub fn touch_sql(&self) -> Option<String> {
        let RecordKind::Others(table) = self.owner else { return None };
        Some(format!("update {table} set updated_at = {CHANGED_AT} where company_id = $1 and id = any ($2)"))
    }
}

impl Cascade {
    /// Every reference to the deleted record.
    pub fn references(self) -> &'static [Reference] {
        use RecordKind::{Cards, Contacts, Others};
        use When::{AtOnce, InSteps};
        match self {
            Self::Tag(_) => const { &[Reference::link("contact_tags", "tag_id", "contact_id", Contacts, InSteps)] },
            Self::CustomField(_) => {
                const {
                    &[
                        Reference::link(
                            "contact_custom_field_values",
                            "custom_field_id",
                            "contact_id",
                            Contacts,
                            InSteps,
                        )
                        .with_event_data("value"),
                        Reference::link("card_custom_field_values", "custom_field_id", "card_id", Cards, InSteps)
                            .with_event_data("value"),
                    ]
                }
            }
            Self::CardStatus(_) => const { &[Reference::column("cards", "status_id", Cards, InSteps)] },
            Self::Business(_) => const { &[Reference::column("cards", "business_id", Cards, InSteps)] },
            Self::CardOrigin(_) => const { &[Reference::column("cards", "origin_id", Cards, InSteps)] },
            Self::Product(_) => {
                const {
                    let lines = Reference::link("card_products", "product_id", "card_id", Cards, InSteps)
                        .with_event_data("id::text");
                    &[Reference { is_link: false, ..lines }]
                }
            }
            Self::ProductCategory(_) => {
                const { &[Reference::column("products", "category_id", Others("products"), InSteps)] }
            }
            Self::User(_) => {
                const {
                    &[
                        // In reports, a won or lost card stays the user's.
                        Reference::column("cards", "assigned_user_id", Cards, InSteps).with_extra_assignments(
                            ", former_user_id = case when won or lost then assigned_user_id end",
                        ),
                        Reference::column("boards", "created_by_user_id", Others("boards"), AtOnce),
                    ]
                }
            }
            Self::Queue(_) => {
                const {
                    &[
                        // Boards before users, as in the deletion of a user.
                        Reference::link("board_queues", "queue_id", "board_id", Others("boards"), AtOnce),
                        Reference::link(
                            "wrapup_type_queues",
                            "queue_id",
                            "wrapup_type_id",
                            Others("wrapup_types"),
                            AtOnce,
                        ),
                        Reference::link("queue_users", "queue_id", "user_id", Others("users"), AtOnce),
                    ]
                }
            }
            Self::Contact(_) => {
                const {
                    &[
                        Reference::link("card_contacts", "contact_id", "card_id", Cards, InSteps),
                        Reference::link(
                            "contact_list_contacts",
                            "contact_id",
                            "contact_list_id",
                            Others("contact_lists"),
                            AtOnce,
                        ),
                    ]
                }
            }
        }
    }

    fn references_when(self, when: When) -> impl Iterator<Item = &'static Reference> {
        self.references().iter().filter(move |reference| reference.when == when)
    }

    /// Locks the record and selects its view, the JSON that other records show of it: company `$1`, its id `$2`.
    pub fn lock_sql(self) -> String {
        format!("select {} from {} where company_id = $1 and id = $2 for update", self.view_sql(), self.table())
    }

    /// The SQL expression for the record's view. The deletion of a contact uses the whole contact instead.
    fn view_sql(self) -> &'static str {
        match self {
            Self::Tag(_) | Self::CardStatus(_) => "jsonb_build_object('id', id, 'name', name, 'color', color)",
            Self::CustomField(_) => "jsonb_build_object('key', key, 'customFieldId', id, 'name', name, 'type', type)",
            Self::Business(_) | Self::CardOrigin(_) | Self::User(_) => "jsonb_build_object('id', id, 'name', name)",
            Self::Product(_) | Self::ProductCategory(_) | Self::Queue(_) | Self::Contact(_) => {
                "jsonb_build_object('id', id)"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cascade_is_found_by_its_noun() {
        for cascade in Cascade::EVERY {
            assert_eq!(Cascade::of(cascade.noun(), cascade.id()), Some(*cascade));
            assert!(!cascade.references().is_empty(), "{cascade:?}");
        }
        assert_eq!(Cascade::of("ticket", 1), None);
    }

    #[test]
    fn a_link_is_deleted_and_a_column_is_cleared() {
        let sql = |cascade: Cascade| cascade.references()[0].remove_sql();
        assert_eq!(
            sql(Cascade::Tag(TagId::new(1))),
            "delete from contact_tags where company_id = $1 and tag_id = $2 and contact_id = any ($3) \
             returning contact_id, null::text"
        );
        assert_eq!(
            sql(Cascade::Product(ProductId::new(1))),
            "update card_products set product_id = null where company_id = $1 and product_id = $2 and card_id = any ($3) \
             returning card_id, id::text"
        );
    }
}
