//! A company as files: one for each archived table, with a line of JSON for each row. Fields are named as in the API,
//! and secrets are left out.
//!
//! The tables are in the order in which their rows can be inserted. A test fails on a table of a company that is in
//! neither [`TABLES`] nor [`OMITTED`].

mod export;
mod import;
mod value;

pub use export::{CompanySnapshot, field_names};
pub use import::{Import, ImportError, LINE_BYTES_MAX, RowError};

/// A table of a company.
#[derive(Clone, Copy, Debug)]
pub struct ArchivedTable {
    /// The name of its file, without the extension.
    pub noun: &'static str,
    /// Its name in the database.
    pub name: &'static str,
    /// The column with the company's id.
    pub company_column: &'static str,
    /// The columns by which its rows are ordered.
    pub order_columns: &'static str,
    /// Columns that are secret, derived from others, or specific to the installation.
    pub omitted_columns: &'static [&'static str],
}

const fn table(noun: &'static str, name: &'static str, order_columns: &'static str) -> ArchivedTable {
    ArchivedTable { noun, name, company_column: "company_id", order_columns, omitted_columns: &[] }
}

const fn with_omitted(table: ArchivedTable, omitted_columns: &'static [&'static str]) -> ArchivedTable {
    ArchivedTable { omitted_columns, ..table }
}

/// The table with the company's own row. Its file comes first.
pub const COMPANY: ArchivedTable =
    ArchivedTable { company_column: "id", ..with_omitted(table("company", "companies", "id"), &["slot"]) };

/// The tables of a company that are archived, in the order of their import. Members of lists come before the lists, and
/// recipients before their campaigns: otherwise triggers would add them to the imported counts.
pub const TABLES: &[ArchivedTable] = &[
    table("retention", "retentions", "company_id"),
    with_omitted(table("profiles", "profiles", "id"), &["looks"]),
    with_omitted(table("users", "users", "id"), &["password_hash"]),
    table("formerUsers", "former_users", "id"),
    with_omitted(table("queues", "queues", "id"), &["looks"]),
    table("queueUsers", "queue_users", "queue_id, user_id"),
    with_omitted(table("wrapupCategories", "wrapup_categories", "id"), &["looks"]),
    with_omitted(table("wrapupTypes", "wrapup_types", "id"), &["looks"]),
    table("wrapupTypeQueues", "wrapup_type_queues", "wrapup_type_id, queue_id"),
    table("channels", "channels", "id"),
    with_omitted(table("tags", "tags", "id"), &["looks"]),
    table("customFields", "custom_fields", "id"),
    table("globalVariables", "global_variables", "id"),
    with_omitted(table("quickMessages", "quick_messages", "id"), &["looks"]),
    table("contacts", "contacts", "id"),
    table("contactAddresses", "contact_addresses", "channel_id, address"),
    table("contactNumbers", "contact_numbers", "number, contact_id"),
    table("contactMergeSuggestions", "contact_merge_suggestions", "contact_id, other_id"),
    table("merges", "merges", "noun, id"),
    table("contactLastChannels", "contact_last_channels", "contact_id"),
    table("contactTags", "contact_tags", "contact_id, tag_id"),
    table("contactCustomFieldValues", "contact_custom_field_values", "contact_id, custom_field_id"),
    table("contactListContacts", "contact_list_contacts", "contact_list_id, contact_id"),
    table("contactLists", "contact_lists", "id"),
    table("tickets", "tickets", "id"),
    table("ticketEvents", "ticket_events", "ticket_id, id"),
    table("messages", "messages", "id"),
    with_omitted(table("webchatSessions", "webchat_sessions", "id"), &["token_hash", "token_hashes"]),
    table("schedules", "schedules", "id"),
    table("campaignRecipients", "campaign_recipients", "campaign_id, contact_id"),
    table("campaigns", "campaigns", "id"),
    with_omitted(table("productCategories", "product_categories", "id"), &["looks"]),
    with_omitted(table("products", "products", "id"), &["looks"]),
    with_omitted(table("cardStatuses", "card_statuses", "id"), &["looks"]),
    with_omitted(table("businesses", "businesses", "id"), &["looks"]),
    with_omitted(table("cardOrigins", "card_origins", "id"), &["looks"]),
    table("boards", "boards", "id"),
    table("boardQueues", "board_queues", "board_id, queue_id"),
    table("boardLists", "board_lists", "id"),
    table("cards", "cards", "id"),
    table("cardContacts", "card_contacts", "card_id, contact_id"),
    table("cardProducts", "card_products", "id"),
    table("cardCustomFieldValues", "card_custom_field_values", "card_id, custom_field_id"),
    table("reportTickets", "report_tickets", "dimension, grain, at, key"),
    table("reportMessages", "report_messages", "dimension, grain, at, key"),
    table("reportWrapups", "report_wrapups", "grain, at, queue_id, wrapup_type_id"),
    table("reportLabels", "report_labels", "dimension, key"),
    with_omitted(
        table("webhooks", "webhooks", "id"),
        &["secret", "old_secret", "old_secret_until", "delivered_through", "failing_since"],
    ),
];

/// The other tables of a company, and why they are not archived.
pub const OMITTED: &[(&str, &str)] = &[
    ("tokens", "secrets"),
    ("person_sessions", "secrets"),
    ("second_factors", "secrets"),
    ("person_links", "secrets"),
    ("audit_log", "a record of the installation"),
    ("media", "maintained by triggers of messages"),
    ("zones", "computed after the import"),
    ("early_revisions", "reports of providers that wait for their message"),
    ("early_statuses", "reports of providers that wait for their message"),
    ("idempotency_keys", "responses for retries within a day, at the previous address"),
    ("events", "the event log starts empty"),
    ("event_counters", "the event log starts empty"),
    ("event_drafts", "empty between transactions"),
    ("webhook_deliveries", "deliveries of events, which are not archived"),
    ("removals", "an export waits until there are none"),
    ("cascades", "an export waits until there are none"),
    ("erasures", "an export waits until there are none in progress"),
    ("rejected_changes", "for the operator of the installation"),
];

/// The spelling of a column in the API.
pub(crate) fn camel_case(column: &str) -> String {
    let mut name = String::with_capacity(column.len());
    let mut is_next_upper = false;
    for character in column.chars() {
        match character {
            '_' => is_next_upper = true,
            _ if is_next_upper => {
                name.extend(character.to_uppercase());
                is_next_upper = false;
            }
            _ => name.push(character),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_spelled_as_in_the_api() {
        assert_eq!(["id", "company_id", "products_total_e4"].map(camel_case), ["id", "companyId", "productsTotalE4"]);
    }

    #[test]
    fn every_noun_and_table_is_listed_once() {
        let mut names: Vec<&str> = TABLES.iter().flat_map(|table| [table.noun, table.name]).collect();
        names.extend(OMITTED.iter().map(|(table, _)| table));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        // A noun that is spelled like its table was counted twice.
        let shared_count = TABLES.iter().filter(|table| table.noun == table.name).count();
        assert_eq!(names.len() + shared_count, count);
    }
}
